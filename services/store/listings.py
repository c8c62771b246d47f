"""Queries of lists for operators: open questions, timers and notes."""

from __future__ import annotations

from sqlalchemy import bindparam, func, literal_column, or_, select

from services.store.chats.memory import NOTES
from services.store.port import Query, Statement
from services.store.schema import TEXT
from services.store.turns.inbox import INBOX
from services.store.turns.occurrences import OCCURRENCES
from services.store.turns.pending import PENDING
from services.store.turns.timers import TIMERS

_OPEN = Statement(
    "listings.open_questions",
    select(PENDING, INBOX.c.sender_name)
    .join(INBOX, INBOX.c.id == PENDING.c.turn_id, isouter=True)
    .where(PENDING.c.state == "open")
    .order_by(PENDING.c.id)
    .limit(bindparam("count")),
)
_NEXT = (
    select(OCCURRENCES.c.timer_id, func.min(OCCURRENCES.c.due_ms).label("next_ms"))
    .where(OCCURRENCES.c.state == "due")
    .group_by(OCCURRENCES.c.timer_id)
    .subquery("next")
)
_TIMERS = Statement(
    "listings.timers",
    select(TIMERS, _NEXT.c.next_ms)
    .join(_NEXT, _NEXT.c.timer_id == TIMERS.c.id, isouter=True)
    .where(TIMERS.c.state.in_(["active", "paused"]))
    .order_by(_NEXT.c.next_ms.is_(None), _NEXT.c.next_ms, TIMERS.c.id)
    .limit(bindparam("count")),
)
_WORDS = bindparam("words", type_=TEXT)
_NOTES = Statement(
    "listings.notes",
    select(NOTES)
    .where(
        NOTES.c.ended_ms.is_(None),
        or_(literal_column("''") == _WORDS, func.lower(NOTES.c.text).contains(_WORDS), NOTES.c.chat == _WORDS),
    )
    .order_by(NOTES.c.at_ms.desc(), NOTES.c.chat, NOTES.c.number)
    .limit(bindparam("count")),
)


def open_questions(count: int) -> Query:
    """The oldest open questions: all columns, and `sender_name`, the author of the message that led to it (null if its
    row was deleted)."""
    return _OPEN.query(count=count)


def timers(count: int) -> Query:
    """Active and paused timers of all chats, the next due first: all columns, and `next_ms` (null without one)."""
    return _TIMERS.query(count=count)


def notes(words: str, count: int) -> Query:
    """The newest notes with `words` (lower case) in their text, or of the chat with that key; all for no words."""
    return _NOTES.query(words=words, count=count)
