"""Occurrences of timers: the next one of each, snoozed and past ones, and how their runs ended."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, delete, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text
from services.store.turns.inbox import INBOX
from services.store.turns.outbox import OUTBOX

OCCURRENCES = table(
    "occurrences",
    integer("id", primary_key=True),
    integer("timer_id"),
    text("wall"),
    integer("due_ms"),
    integer("snoozed"),
    text("state"),
    integer("over_ms", nullable=True),
    integer("turn_id", nullable=True),
    text("problem"),
)
IS_DUE = OCCURRENCES.c.state == "due"
_ZONES_APART_MS = 2 * 86_400_000
"""Upper bound of the distance between the same wall time in two zones; it was never much more than a day."""
_DISPATCHED = OCCURRENCES.c.turn_id.is_not(None)
_NEXT = (OCCURRENCES.c.timer_id, OCCURRENCES.c.snoozed)
Index("occurrences_once", OCCURRENCES.c.timer_id, OCCURRENCES.c.wall, unique=True)
Index("occurrences_due", OCCURRENCES.c.due_ms, OCCURRENCES.c.id, sqlite_where=IS_DUE, postgresql_where=IS_DUE)
Index("occurrences_next", *_NEXT, unique=True, sqlite_where=IS_DUE, postgresql_where=IS_DUE)
Index("occurrences_turns", OCCURRENCES.c.turn_id, sqlite_where=_DISPATCHED, postgresql_where=_DISPATCHED)
_THIS = OCCURRENCES.c.id == bindparam("row_id")
_OF_TIMER = OCCURRENCES.c.timer_id == bindparam("timer")

_ADD = Statement("occurrences.add", insert_new(OCCURRENCES))
_DROP = Statement("occurrences.drop", delete(OCCURRENCES).where(_OF_TIMER, IS_DUE))
_DROP_SNOOZED = Statement(
    "occurrences.drop_snoozed", delete(OCCURRENCES).where(_OF_TIMER, IS_DUE, OCCURRENCES.c.snoozed == 1)
)
_CLOSE = Statement(
    "occurrences.close",
    update(OCCURRENCES)
    .where(_THIS, IS_DUE)
    .values(state=bindparam("new_state"), over_ms=bindparam("at_ms"), problem=bindparam("why")),
)
_UNDELIVERED = Statement(
    "occurrences.undelivered",
    update(OCCURRENCES)
    .where(
        OCCURRENCES.c.turn_id
        == select(OUTBOX.c.turn_id).where(OUTBOX.c.id == bindparam("outbox_id")).scalar_subquery(),
        OCCURRENCES.c.state == "fired",
    )
    .values(state="undeliverable", problem=bindparam("why")),
)
_MOVE = Statement(
    "occurrences.move",
    update(OCCURRENCES).where(_THIS, IS_DUE).values(due_ms=bindparam("new_due_ms"), wall=bindparam("new_wall")),
)
_OVER_SINCE = Statement(
    "occurrences.over_since",
    select(OCCURRENCES.c.wall).where(_OF_TIMER, ~IS_DUE, OCCURRENCES.c.due_ms >= bindparam("since_ms")),
)


def add(*, id: int, timer_id: int, wall: str, due_ms: int, snoozed: bool) -> Write:
    """Add a future occurrence. The unit is undone if the timer had this wall time before or has a next one."""
    return _ADD.write_expecting(
        1,
        id=id,
        timer_id=timer_id,
        wall=wall,
        due_ms=due_ms,
        snoozed=int(snoozed),
        state="due",
        over_ms=None,
        turn_id=None,
        problem="",
    )


def drop(timer_id: int) -> Write:
    """Delete the timer's occurrences that are not over, snoozed ones included."""
    return _DROP.write(timer=timer_id)


def drop_snoozed(timer_id: int) -> Write:
    """Delete the timer's snoozed occurrence, but not the next one of its rule."""
    return _DROP_SNOOZED.write(timer=timer_id)


def close(id: int, state: str, why: str, at_ms: int) -> Write:
    """Set the final `state` of an occurrence that was not dispatched, with the reason `why`. The unit is undone if it
    was over before."""
    return _CLOSE.write_expecting(1, row_id=id, new_state=state, why=why, at_ms=at_ms)


def undelivered(outbox_id: int, why: str) -> Write:
    """Mark the occurrence whose turn sent the failed message `outbox_id` as undeliverable. Touches no row if no timer
    sent the message."""
    return _UNDELIVERED.write(outbox_id=outbox_id, why=why)


def move(id: int, wall: str, due_ms: int) -> Write:
    """Move a due occurrence. Touches no row if it is over; rejected if the timer had that wall time before."""
    return _MOVE.write(row_id=id, new_wall=wall, new_due_ms=due_ms)


def over_since(timer_id: int, since_ms: int) -> Query:
    """`wall` of past occurrences that may coincide with one due from `since_ms` on. A wall time that has passed in one
    zone may still come in another, so two more days are included."""
    return _OVER_SINCE.query(timer=timer_id, since_ms=since_ms - _ZONES_APART_MS)


_LATEST = Statement(
    "timer_outcomes.latest",
    select(INBOX.c.id, INBOX.c.reason, INBOX.c.received_ms)
    .join(OCCURRENCES, OCCURRENCES.c.turn_id == INBOX.c.id)
    .where(
        OCCURRENCES.c.timer_id == bindparam("timer_id"),
        INBOX.c.id < bindparam("before_id"),
        INBOX.c.reason != "waiting",
    )
    .order_by(INBOX.c.id.desc())
    .limit(bindparam("count")),
)


def latest(timer_id: int, *, before_turn: int, count: int) -> Query:
    """At most `count` ended runs of the timer, of turns before `before_turn`, newest first: `id`, `reason`,
    `received_ms`."""
    return _LATEST.query(timer_id=timer_id, before_id=before_turn, count=count)
