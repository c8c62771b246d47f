"""Due occurrences joined with their timers, for the dispatcher."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, func, or_, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER
from services.store.turns.occurrences import IS_DUE, OCCURRENCES
from services.store.turns.timers import TIMERS

_TIMER = TIMERS.c.id == OCCURRENCES.c.timer_id
_BOTH = OCCURRENCES.join(TIMERS, _TIMER)
_OTHER = OCCURRENCES.alias("other")
_PLACE = (OCCURRENCES.c.due_ms, OCCURRENCES.c.id)
_NOW = bindparam("now_ms", type_=INTEGER)
_AFTER = or_(
    OCCURRENCES.c.due_ms > bindparam("after_ms"),
    and_(OCCURRENCES.c.due_ms == bindparam("after_ms"), OCCURRENCES.c.id > bindparam("after_id")),
)

_CLAIM = Statement(
    "due.claim",
    update(OCCURRENCES)
    .where(
        OCCURRENCES.c.id == bindparam("row_id"),
        IS_DUE,
        select(1).where(_TIMER, TIMERS.c.revision == bindparam("known_revision")).exists(),
        ~select(1)
        .where(
            _OTHER.c.timer_id == OCCURRENCES.c.timer_id,
            _OTHER.c.wall == bindparam("new_wall"),
            _OTHER.c.id != OCCURRENCES.c.id,
        )
        .exists(),
    )
    .values(
        state="fired",
        wall=bindparam("new_wall"),
        due_ms=bindparam("new_due_ms"),
        over_ms=_NOW,
        turn_id=bindparam("of_turn"),
    ),
)
_PAGE = Statement(
    "due.page",
    select(OCCURRENCES.c.id, OCCURRENCES.c.due_ms, TIMERS.c.chat, TIMERS.c.kind)
    .select_from(_BOTH)
    .where(IS_DUE, OCCURRENCES.c.due_ms <= _NOW, _AFTER)
    .order_by(*_PLACE)
    .limit(bindparam("most")),
)
_ROW = Statement(
    "due.row",
    select(
        TIMERS, OCCURRENCES.c.id.label("occurrence_id"), OCCURRENCES.c.wall, OCCURRENCES.c.due_ms, OCCURRENCES.c.snoozed
    )
    .select_from(_BOTH)
    .where(OCCURRENCES.c.id == bindparam("row_id"), IS_DUE),
)
_SOONEST = Statement(
    "due.soonest",
    select(func.min(OCCURRENCES.c.due_ms).label("due_ms")).where(IS_DUE, OCCURRENCES.c.due_ms > bindparam("after_ms")),
)
_OVERDUE = Statement(
    "due.overdue",
    select(func.count().label("count")).select_from(
        select(1).where(IS_DUE, OCCURRENCES.c.due_ms <= _NOW).limit(bindparam("most")).subquery()
    ),
)
_TO_COME = Statement(
    "due.to_come",
    select(
        OCCURRENCES.c.id,
        OCCURRENCES.c.wall,
        OCCURRENCES.c.due_ms,
        OCCURRENCES.c.snoozed,
        OCCURRENCES.c.timer_id,
        TIMERS.c.rule,
        TIMERS.c.zone,
        TIMERS.c.done,
    )
    .select_from(_BOTH)
    .where(IS_DUE, _AFTER)
    .order_by(*_PLACE)
    .limit(bindparam("most")),
)


def claim(id: int, *, revision: int, wall: str, due_ms: int, now_ms: int, turn_id: int) -> Write:
    """Record that the turn `turn_id` handles the occurrence, with that wall time. The unit is undone if it was claimed
    before, if the timer is no longer at `revision`, or if it has another occurrence with that wall time."""
    return _CLAIM.write_expecting(
        1, row_id=id, known_revision=revision, new_wall=wall, new_due_ms=due_ms, now_ms=now_ms, of_turn=turn_id
    )


def page(now_ms: int, after: tuple[int, int], most: int) -> Query:
    """At most `most` occurrences due by `now_ms`, soonest first, after the position (`due_ms`, `id`): `id`, `due_ms`,
    and the timer's `chat` and `kind`."""
    return _PAGE.query(now_ms=now_ms, after_ms=after[0], after_id=after[1], most=most)


def row(id: int) -> Query:
    """A due occurrence with its timer: `occurrence_id`, `wall`, `due_ms`, `snoozed`, and the timer's columns. No row if
    it is over or was removed."""
    return _ROW.query(row_id=id)


def soonest(after_ms: int) -> Query:
    """Time of the next occurrence after `after_ms`, as `due_ms`; null if none is due."""
    return _SOONEST.query(after_ms=after_ms)


def overdue(now_ms: int, most: int) -> Query:
    """Number of occurrences due by `now_ms`, as `count`; counts at most `most`."""
    return _OVERDUE.query(now_ms=now_ms, most=most)


def to_come(after: tuple[int, int], most: int) -> Query:
    """At most `most` of all future and due occurrences, soonest first, after the position (`due_ms`, `id`): `id`,
    `wall`, `due_ms`, `snoozed`, `timer_id`, and the timer's `rule`, `zone` and `done`."""
    return _TO_COME.query(after_ms=after[0], after_id=after[1], most=most)
