"""Audit rows, change counters that other processes watch, and small values that survive a restart."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import binds, integer, table, text, upsert

AUDIT = table(
    "audit",
    integer("id", primary_key=True),
    integer("at_ms"),
    text("actor"),
    text("chat"),
    text("action"),
    text("detail"),
)
Index("audit_by_chat", AUDIT.c.chat, AUDIT.c.id)

_NOTE = Statement("audit.note", insert(AUDIT).values(binds(AUDIT)))
_LAST = Statement("audit.last", select(AUDIT).order_by(AUDIT.c.id.desc()).limit(bindparam("count")))


def note(*, id: int, at_ms: int, actor: str, chat: str, action: str, detail: str) -> Write:
    """Add an audit row; rows are never changed."""
    return _NOTE.write(id=id, at_ms=at_ms, actor=actor, chat=chat, action=action, detail=detail)


def last(count: int) -> Query:
    """All columns of the newest `count` audit rows, newest first."""
    return _LAST.query(count=count)


CURSORS = table("cursors", text("name", primary_key=True), text("value"), integer("at_ms"))

_SET = Statement("cursors.set", upsert(CURSORS))
_GET = Statement("cursors.get", select(CURSORS.c.value).where(CURSORS.c.name == bindparam("name")))


def advance(name: str, value: str, at_ms: int) -> Write:
    """Store `value` under `name`, replacing an earlier one, in the unit that accepts the data that was read."""
    return _SET.write(name=name, value=value, at_ms=at_ms)


def get(name: str) -> Query:
    """The `value` stored under `name`; no row if the name is unknown."""
    return _GET.query(name=name)


CHANGES = table("changes", text("name", primary_key=True), integer("count"))

_CHANGES_INSERT = insert(CHANGES).values(name=bindparam("name"), count=1)
_RAISE = Statement(
    "changes.raise", _CHANGES_INSERT.on_conflict_do_update(index_elements=["name"], set_={"count": CHANGES.c.count + 1})
)
COUNTERS = Statement("changes.all", select(CHANGES.c.name, CHANGES.c.count)).query()
"""`name` and `count` of all change counters."""


def touch(name: str) -> Write:
    """Increase the change counter `name`, in the unit that makes the change."""
    return _RAISE.write(name=name)
