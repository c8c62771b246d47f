"""Web access.

HTTP client that refuses private networks, addresses, and readers of feeds, search results and weather.
"""
