"""PostgreSQL store.

Connections, writer, lease of the leader and upgrade. Used by `bot.database`.
"""
