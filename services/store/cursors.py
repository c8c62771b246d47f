"""How far each platform has read, and other small facts of the daemon that survive a restart."""

from __future__ import annotations

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

CURSORS = table("cursors", text("name", primary_key=True), text("value"), integer("at_ms"))

_INSERT = insert(CURSORS).values({column.name: bindparam(column.name) for column in CURSORS.columns})
_SET = Statement(
    "cursors.set",
    _INSERT.on_conflict_do_update(
        index_elements=["name"], set_={"value": _INSERT.excluded.value, "at_ms": _INSERT.excluded.at_ms}
    ),
)
_GET = Statement("cursors.get", select(CURSORS.c.value).where(CURSORS.c.name == bindparam("name")))


def advance(name: str, value: str, at_ms: int) -> Write:
    """Remember `value` under `name`; belongs into the unit that accepts what was read."""
    return _SET.write(name=name, value=value, at_ms=at_ms)


def get(name: str) -> Query:
    """The `value` under `name`."""
    return _GET.query(name=name)
