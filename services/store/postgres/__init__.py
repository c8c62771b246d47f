"""PostgreSQL store.

Connections, writer, its locks, upgrade, copies, and the jobs and notifications of a cluster. Used by `bot.database`,
`bot.cluster` and `rollcall migrate`.
"""
