"""PostgreSQL store.

Connections, writer, its locks, upgrade and copies. Used by `bot.database` and `rollcall migrate`.
"""
