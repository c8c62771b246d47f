"""What became of messages: the inbox and the history of one chat side by side, for those who explain."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select

from services.store.history import HISTORY
from services.store.inbox import INBOX
from services.store.port import Query, Statement

_ROWS = select(
    INBOX.c.id,
    INBOX.c.native_id,
    INBOX.c.sender_name,
    INBOX.c.received_ms,
    INBOX.c.reason,
    INBOX.c.detail,
    HISTORY.c.text,
)
_LAST = Statement(
    "outcomes.last",
    _ROWS.join(HISTORY, HISTORY.c.id == INBOX.c.id)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        HISTORY.c.from_bot == literal_column("0"),
        INBOX.c.native_id != bindparam("but"),
        INBOX.c.kind == literal_column("'message'"),
    )
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count"))
    .offset(bindparam("skip")),
)
_EVENTS = _ROWS.join(HISTORY, HISTORY.c.id == INBOX.c.id, isouter=True)
# The keys of a message and of its changes stand together in the index: they begin alike.
_OF_NATIVE = Statement(
    "outcomes.of_native",
    _EVENTS.where(
        INBOX.c.key >= bindparam("first_key"),
        INBOX.c.key < bindparam("after_keys"),
        INBOX.c.chat == bindparam("chat"),
        INBOX.c.native_id == bindparam("native_id"),
    ).order_by(INBOX.c.id),
)
_IN_CHAT = Statement(
    "outcomes.in_chat", _EVENTS.where(INBOX.c.chat == bindparam("chat"), INBOX.c.id == bindparam("row_id"))
)


def last(chat: str, but_native_id: str, count: int, skip: int = 0) -> Query:
    """`count` messages that everybody in `chat` has seen, newest first, without the `skip` newest and the one of that
    id. Each with its `text`, empty where it was taken back."""
    return _LAST.query(chat=chat, but=but_native_id, count=count, skip=skip)


def of_native(chat: str, native_id: str) -> Query:
    """The message of `chat` with the network's id `native_id`, and its changes, oldest first; `text` is null for what
    is no part of the history."""
    first = f"{native_id}\n{chat}"
    return _OF_NATIVE.query(first_key=first, after_keys=f"{first}\x0b", chat=chat, native_id=native_id)


def in_chat(chat: str, id: int) -> Query:
    """The event of that id, if it came from `chat`."""
    return _IN_CHAT.query(chat=chat, row_id=id)
