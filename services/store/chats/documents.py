"""JSON documents of chats, one of each kind per chat, with a version that increases by one with each change."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text, upsert

DOCUMENTS = table(
    "chat_documents",
    text("chat", primary_key=True),
    text("kind", primary_key=True),
    integer("version"),
    text("body"),
    integer("changed_ms"),
)
_PUT = Statement("documents.put", upsert(DOCUMENTS, where=lambda new: DOCUMENTS.c.version + 1 == new.version))
_THIS = (DOCUMENTS.c.chat == bindparam("chat")) & (DOCUMENTS.c.kind == bindparam("kind"))
_ONE = Statement("documents.one", select(DOCUMENTS.c.version, DOCUMENTS.c.body).where(_THIS))


def put(chat: str, kind: str, *, version: int, body: str, at_ms: int) -> Write:
    """Write `version` of the document, the first one or the successor of the stored one. Conflict if it is not."""
    return _PUT.write_expecting(1, chat=chat, kind=kind, version=version, body=body, changed_ms=at_ms)


def one(chat: str, kind: str) -> Query:
    """`version` and `body` of the document; no row before its first version."""
    return _ONE.query(chat=chat, kind=kind)
