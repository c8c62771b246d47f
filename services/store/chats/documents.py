"""JSON documents of chats, one of each kind per chat, with a version that increases with each change."""

from __future__ import annotations

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, integer, table, text

DOCUMENTS = table(
    "chat_documents",
    text("chat", primary_key=True),
    text("kind", primary_key=True),
    integer("version"),
    text("body"),
    integer("changed_ms"),
)
_THIS = (DOCUMENTS.c.chat == bindparam("chat", type_=TEXT)) & (DOCUMENTS.c.kind == bindparam("kind", type_=TEXT))
_ADD = Statement(
    "documents.add",
    insert(DOCUMENTS)
    .values({column.name: bindparam(column.name, type_=column.type) for column in DOCUMENTS.columns})
    .on_conflict_do_nothing(),
)
_CHANGE = Statement(
    "documents.change",
    update(DOCUMENTS)
    .where(_THIS & (DOCUMENTS.c.version == bindparam("before", type_=INTEGER)))
    .values(
        version=bindparam("after", type_=INTEGER),
        body=bindparam("new", type_=TEXT),
        changed_ms=bindparam("at_ms", type_=INTEGER),
    ),
)
_ONE = Statement("documents.one", select(DOCUMENTS.c.version, DOCUMENTS.c.body).where(_THIS))


def put(chat: str, kind: str, *, before: int, body: str, at_ms: int) -> Write:
    """Replace version `before` of the document, 0 if there is none yet, by the next one. Conflict if it has another
    version by now."""
    if before == 0:
        return _ADD.write_expecting(1, chat=chat, kind=kind, version=1, body=body, changed_ms=at_ms)
    return _CHANGE.write_expecting(1, chat=chat, kind=kind, before=before, after=before + 1, new=body, at_ms=at_ms)


def one(chat: str, kind: str) -> Query:
    """`version` and `body` of the document; no row if there is none yet."""
    return _ONE.query(chat=chat, kind=kind)
