"""Discord, over its gateway and REST API by discord.py. `adapter` is imported with the settings, the rest only if an
account is configured."""
