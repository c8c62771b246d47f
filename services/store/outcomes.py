"""What became of messages: the inbox and the history of one chat side by side, for those who explain; and beside them
what was to run by the clock and did not work."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select

from services.store.history import HISTORY
from services.store.inbox import INBOX
from services.store.occurrences import OCCURRENCES
from services.store.port import Query, Statement
from services.store.timers import TIMERS

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
_TIMER = TIMERS.join(OCCURRENCES, OCCURRENCES.c.timer_id == TIMERS.c.id).join(
    INBOX, INBOX.c.id == OCCURRENCES.c.turn_id
)
_OF_TIMERS = select(
    INBOX.c.id,
    INBOX.c.native_id,
    INBOX.c.sender_name,
    INBOX.c.received_ms,
    INBOX.c.reason,
    INBOX.c.detail,
    TIMERS.c.title.label("text"),
).select_from(_TIMER)
# What went well is there to be read, and people who ask why mean what is not.
_LAST_TIMERS = Statement(
    "outcomes.last_timers",
    _OF_TIMERS.where(
        TIMERS.c.chat == bindparam("chat"),
        TIMERS.c.private_to.is_(None),
        INBOX.c.reason.not_in([literal_column("'timer'"), literal_column("'waiting'")]),
    )
    .order_by(INBOX.c.id.desc())
    .limit(bindparam("count")),
)
_TIMER_IN_CHAT = Statement(
    "outcomes.timer_in_chat",
    _OF_TIMERS.add_columns(TIMERS.c.private_to).where(
        TIMERS.c.chat == bindparam("chat"), INBOX.c.id == bindparam("row_id")
    ),
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


def last(chat: str, but_native_id: str, count: int) -> Query:
    """`count` messages that everybody in `chat` has seen, newest first, without the one of that id. Each with its
    `text`, empty where it was taken back."""
    return _LAST.query(chat=chat, but=but_native_id, count=count)


def of_native(chat: str, native_id: str) -> Query:
    """The message of `chat` with the network's id `native_id`, and its changes, oldest first; `text` is null for what
    is no part of the history."""
    first = f"{native_id}\n{chat}"
    return _OF_NATIVE.query(first_key=first, after_keys=f"{first}\x0b", chat=chat, native_id=native_id)


def in_chat(chat: str, id: int) -> Query:
    """The event of that id, if it came from `chat`."""
    return _IN_CHAT.query(chat=chat, row_id=id)


def last_timers(chat: str, count: int) -> Query:
    """`count` runs by the clock, for everybody in `chat`, that ended otherwise than they should, newest first; `text`
    is what the timer is called."""
    return _LAST_TIMERS.query(chat=chat, count=count)


def timer_in_chat(chat: str, id: int) -> Query:
    """The run by the clock of that id, however it ended, if it was in `chat`; `private_to` is the key of the only
    member whom it may be shown, null for everybody."""
    return _TIMER_IN_CHAT.query(chat=chat, row_id=id)
