"""Discord, with discord.py."""
