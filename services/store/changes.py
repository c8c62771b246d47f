"""Counters that rise when a row changes which a running daemon has read: how another process makes it look again."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

CHANGES = table("changes", text("name", primary_key=True), integer("count"))

_INSERT = insert(CHANGES).values(name=bindparam("name"), count=literal_column("1"))
_RAISE = Statement(
    "changes.raise",
    _INSERT.on_conflict_do_update(index_elements=["name"], set_={"count": CHANGES.c.count + literal_column("1")}),
)
_ALL = Statement("changes.all", select(CHANGES.c.name, CHANGES.c.count))


def touch(name: str) -> Write:
    """Say that what `name` stands for has changed; belongs into the unit that changes it."""
    return _RAISE.write(name=name)


def counters() -> Query:
    """All counters: `name`, `count`."""
    return _ALL.query()
