"""PostgreSQL store.

Connections, writer, lease of the leader, upgrade and copies. Used by `bot.database` and `rollcall migrate`.
"""
