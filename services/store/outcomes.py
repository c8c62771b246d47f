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
    .limit(bindparam("count")),
)
_FIND = Statement(
    "outcomes.find",
    _ROWS.join(HISTORY, HISTORY.c.id == INBOX.c.id, isouter=True).where(INBOX.c.key == bindparam("key")),
)


def last(chat: str, but_native_id: str, count: int) -> Query:
    """The last `count` messages that everybody in `chat` has seen, newest first, without the one of that id. Each with
    its `text`, empty where it was taken back."""
    return _LAST.query(chat=chat, but=but_native_id, count=count)


def find(key: str) -> Query:
    """The event of that key; `text` is null where it is no part of the history."""
    return _FIND.query(key=key)
