"""Settings and texts.

Models of all sections, the loader with places and suggestions, and the bot's sentences. Imports no other floor.
"""
