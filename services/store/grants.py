"""What chats have allowed for always, and who did."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

GRANTS = table(
    "grants",
    integer("id", primary_key=True),
    text("chat"),
    text("digest"),
    text("function"),
    text("arguments"),
    text("given_by"),
    text("given_by_name"),
    integer("given_ms"),
    integer("revoked_ms", nullable=True),
    text("revoked_by", nullable=True),
)
_HOLDS = GRANTS.c.revoked_ms.is_(None)
Index("grants_once", GRANTS.c.chat, GRANTS.c.digest, unique=True, sqlite_where=_HOLDS, postgresql_where=_HOLDS)

_GIVE = Statement(
    "grants.give",
    insert(GRANTS)
    .values({column.name: bindparam(column.name, type_=column.type) for column in GRANTS.columns})
    .on_conflict_do_nothing(),
)
_REVOKE = Statement(
    "grants.revoke",
    update(GRANTS)
    .where(GRANTS.c.chat == bindparam("in_chat"), GRANTS.c.digest == bindparam("with_digest"), _HOLDS)
    .values(revoked_ms=bindparam("now_ms"), revoked_by=bindparam("by")),
)
_HOLDING = Statement("grants.holding", select(GRANTS).where(_HOLDS).order_by(GRANTS.c.id))
_OF_CHAT = Statement(
    "grants.of_chat", select(GRANTS).where(GRANTS.c.chat == bindparam("chat"), _HOLDS).order_by(GRANTS.c.id)
)


def give(
    *,
    id: int,
    chat: str,
    digest: str,
    function: str,
    arguments: str,
    given_by: str,
    given_by_name: str,
    given_ms: int,
) -> Write:
    """Allow for always. Nothing where it is allowed already."""
    return _GIVE.write(
        id=id,
        chat=chat,
        digest=digest,
        function=function,
        arguments=arguments,
        given_by=given_by,
        given_by_name=given_by_name,
        given_ms=given_ms,
        revoked_ms=None,
        revoked_by=None,
    )


def revoke(chat: str, digest: str, by: str, now_ms: int) -> Write:
    """Allow it no longer."""
    return _REVOKE.write(in_chat=chat, with_digest=digest, by=by, now_ms=now_ms)


def holding() -> Query:
    """All that holds, in every chat."""
    return _HOLDING.query()


def of_chat(chat: str) -> Query:
    """What holds in one chat, oldest first."""
    return _OF_CHAT.query(chat=chat)
