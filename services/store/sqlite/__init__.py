"""SQLite store.

Writer, reader, lock, integrity and free space. Used by `bot.database` and commands.
"""
