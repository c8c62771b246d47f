"""PostgreSQL store.

Connections, writer, its locks and upgrade. Used by `bot.database`.
"""
