"""Matrix networks."""
