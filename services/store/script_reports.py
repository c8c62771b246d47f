"""All that scripts have kept, for a person who looks."""

from __future__ import annotations

from sqlalchemy import select

from services.store.port import Query, Statement
from services.store.script_memory import SCRIPT_MEMORY
from services.store.script_rows import SCRIPT_ROWS

_ROWS = Statement(
    "script_reports.rows",
    select(SCRIPT_ROWS.c.table_name, SCRIPT_ROWS.c.row_id, SCRIPT_ROWS.c.fields).order_by(
        SCRIPT_ROWS.c.table_name, SCRIPT_ROWS.c.number
    ),
)
_MEMORIES = Statement(
    "script_reports.memories",
    select(SCRIPT_MEMORY.c.owner, SCRIPT_MEMORY.c.name, SCRIPT_MEMORY.c.value).order_by(
        SCRIPT_MEMORY.c.owner, SCRIPT_MEMORY.c.name
    ),
)


def rows() -> Query:
    """Every row of every table of every bot: `table_name`, `row_id` and `fields`, in JSON."""
    return _ROWS.query()


def memories() -> Query:
    """Everything remembered: `owner`, `name` and `value`, in JSON."""
    return _MEMORIES.query()
