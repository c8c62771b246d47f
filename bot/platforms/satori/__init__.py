"""The Satori platform: gateways of many networks."""
