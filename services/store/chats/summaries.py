"""Summaries of the part of a chat that is older than the messages shown to a model."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from services.store.chats.history import HISTORY
from services.store.port import Query, Statement, Write
from services.store.schema import binds, integer, replacing, table, text

SUMMARIES = table(
    "summaries",
    text("chat", primary_key=True),
    text("part", primary_key=True),
    text("text"),
    integer("until_id"),
    integer("at_ms"),
)

_OF = and_(SUMMARIES.c.chat == bindparam("chat"), SUMMARIES.c.part == bindparam("part"))
_GET = Statement("summaries.get", select(SUMMARIES.c.text, SUMMARIES.c.until_id).where(_OF))
_UNTIL_NOW = func.coalesce(select(SUMMARIES.c.until_id).where(_OF).scalar_subquery(), 0)
_UNCHANGED = (
    select(func.count().label("count"))
    .select_from(HISTORY)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        HISTORY.c.id > bindparam("after"),
        HISTORY.c.id <= bindparam("until_id"),
        HISTORY.c.change == "",
    )
)
_UNCHANGED_ROWS = _UNCHANGED.scalar_subquery()
_UNCHANGED_COUNT = Statement("summaries.unchanged", _UNCHANGED)
# Only if none of its messages was changed, deleted or erased meanwhile: none of them must survive in a summary.
_EXISTS = exists().where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.id == bindparam("until_id"))
_INSERT = insert(SUMMARIES).from_select(
    list(binds(SUMMARIES)),
    select(*binds(SUMMARIES).values()).where(
        bindparam("after") == _UNTIL_NOW, bindparam("unchanged") == _UNCHANGED_ROWS, _EXISTS
    ),
)
_PUT = Statement("summaries.put", replacing(SUMMARIES, _INSERT))
_ROW_OF = (
    select(func.min(HISTORY.c.id))
    .where(HISTORY.c.chat == bindparam("chat"), HISTORY.c.native_id == bindparam("native_id"))
    .scalar_subquery()
)
# If the row was pruned, the message may be in any of them.
_FORGET = Statement(
    "summaries.forget",
    delete(SUMMARIES).where(SUMMARIES.c.chat == bindparam("chat"), SUMMARIES.c.until_id >= func.coalesce(_ROW_OF, 0)),
)
_FORGET_CHAT = Statement("summaries.forget_chat", delete(SUMMARIES).where(SUMMARIES.c.chat == bindparam("chat")))


def get(chat: str, part: str) -> Query:
    """The summary of a part of `chat`: `text`, and `until_id`, the last history row it covers. `part`: empty for the
    whole chat, else the member or thread. No row if there is no summary."""
    return _GET.query(chat=chat, part=part)


def put(chat: str, part: str, text: str, *, after: int, until_id: int, unchanged: int, at_ms: int) -> Write:
    """Store a summary made of the one that ended at `after` (0: none) and the rows up to `until_id`; `unchanged` of
    these rows had not been edited or deleted. Touches no row if that has changed since, or if the last row was
    deleted."""
    values = {"chat": chat, "part": part, "text": text, "after": after, "until_id": until_id, "at_ms": at_ms}
    return _PUT.write(**values, unchanged=unchanged)


def unchanged(chat: str, after: int, until_id: int) -> Query:
    """Number of rows of `chat` with after < id <= until_id that were not edited or deleted, as `count`."""
    return _UNCHANGED_COUNT.query(chat=chat, after=after, until_id=until_id)


def forget(chat: str, native_id: str) -> Write:
    """Delete the summaries of `chat` that may contain the message `native_id`: all of them if its row no longer
    exists."""
    return _FORGET.write(chat=chat, native_id=native_id)


def forget_chat(chat: str) -> Write:
    """Delete all summaries of `chat`."""
    return _FORGET_CHAT.write(chat=chat)
