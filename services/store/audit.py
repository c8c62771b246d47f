"""Who changed what: settings of chats, rights, and everything an operator does to a live daemon."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, select
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import delete_batch, integer, table, text

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

_NOTE = Statement("audit.note", insert(AUDIT).values({column.name: bindparam(column.name) for column in AUDIT.columns}))
_LAST = Statement("audit.last", select(AUDIT).order_by(AUDIT.c.id.desc()).limit(bindparam("count")))
_FORGET = Statement(
    "audit.forget",
    delete_batch(AUDIT, AUDIT.c.id < bindparam("before_id"), AUDIT.c.at_ms < bindparam("before_ms")),
)


def note(*, id: int, at_ms: int, actor: str, chat: str, action: str, detail: str) -> Write:
    """One act; rows are never changed."""
    return _NOTE.write(id=id, at_ms=at_ms, actor=actor, chat=chat, action=action, detail=detail)


def last(count: int) -> Query:
    """The newest `count` acts, newest first."""
    return _LAST.query(count=count)


def forget(before_id: int, before_ms: int) -> Write:
    """Drop what was done before that instant, of the rows before that id."""
    return _FORGET.write(before_id=before_id, before_ms=before_ms)
