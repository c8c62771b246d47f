"""How the runs of a timer ended: its occurrences and the inbox side by side."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select

from services.store.inbox import INBOX
from services.store.occurrences import OCCURRENCES
from services.store.port import Query, Statement

_LATEST = Statement(
    "timer_outcomes.latest",
    select(INBOX.c.id, INBOX.c.reason, INBOX.c.received_ms)
    .join(OCCURRENCES, OCCURRENCES.c.turn_id == INBOX.c.id)
    .where(
        OCCURRENCES.c.timer_id == bindparam("timer_id"),
        INBOX.c.id < bindparam("before_id"),
        INBOX.c.reason != literal_column("'waiting'"),
    )
    .order_by(INBOX.c.id.desc())
    .limit(bindparam("count")),
)


def latest(timer_id: int, *, before_turn: int, count: int) -> Query:
    """At most `count` of its runs that have ended, of the turns before that one, newest first: `id`, `reason`,
    `received_ms`."""
    return _LATEST.query(timer_id=timer_id, before_id=before_turn, count=count)
