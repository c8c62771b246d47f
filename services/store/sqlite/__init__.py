"""SQLite store.

Writer, reader, lock, integrity, free space and copies. Used by `bot.database` and commands.
"""
