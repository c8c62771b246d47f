"""Opening the database.

Opened and upgraded, or reached next to a running daemon. Used by wiring and commands.
"""
