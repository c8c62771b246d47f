"""What alembic runs for every command: the caller's connection, in the caller's transaction.

So a migration is done as a whole or not at all, however it ends: SQLite can undo changes of the schema too.
"""

from __future__ import annotations

from alembic import context

_given = context.config.attributes
context.configure(
    connection=_given["connection"],
    target_metadata=_given.get("tables"),
    render_as_batch=True,  # SQLite changes a column only by copying its table
)
context.run_migrations()
