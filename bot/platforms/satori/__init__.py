"""The Satori platform, for networks behind a gateway."""
