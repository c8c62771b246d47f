"""Opening the database.

Opened and upgraded, reached next to a running daemon, and led by one daemon at a time. Used by wiring and commands.
"""
