"""Functions that look something up on the web: news, search, weather."""
