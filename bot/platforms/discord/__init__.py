"""The Discord platform.

Uses discord.py. `adapter` is imported with the settings, the rest only to open an account.
"""
