"""Alembic environment: uses the caller's connection and transaction.

So a migration is applied completely or not at all; SQLite can roll back schema changes, too.
"""

from __future__ import annotations

from alembic import context

_attributes = context.config.attributes
context.configure(
    connection=_attributes["connection"],
    target_metadata=_attributes.get("tables"),
    render_as_batch=True,  # SQLite can alter a column only by copying the table
)
context.run_migrations()
