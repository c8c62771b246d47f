"""Dead letters: what was given up and may be retried. A view of the rows of three tables: turns that were given up
(inbox), messages that no network took (outbox), and moments of timers that could not be delivered (occurrences)."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, func, literal_column, select, union_all, update

from services.store import inbox, outbox
from services.store.history import HISTORY
from services.store.inbox import INBOX
from services.store.occurrences import OCCURRENCES
from services.store.outbox import OUTBOX
from services.store.port import Query, Row, Statement, Write
from services.store.schema import INTEGER, TEXT
from services.store.timers import TIMERS

COUNTER = "dead_letters"
"""In `changes`: raised by a command that retries or drops some."""


class DeadKind(StrEnum):
    """Which table a dead letter stands in."""

    TURN = "turn"
    MESSAGE = "message"
    TIMER = "timer"


# What did fire has a row in the outbox, which stands for it.
_IS_DEAD_MOMENT = and_(OCCURRENCES.c.state == literal_column("'undeliverable'"), OCCURRENCES.c.turn_id.is_(None))
_KEPT_TIMER = and_(TIMERS.c.id == OCCURRENCES.c.timer_id, TIMERS.c.state != literal_column("'removed'"))
_NONE: ColumnElement[int] = literal_column("0")
_TURNS: Select[tuple[object, ...]] = (
    select(
        literal_column("'turn'", TEXT).label("kind"),
        INBOX.c.id,
        INBOX.c.chat,
        INBOX.c.sender_name.label("name"),
        INBOX.c.ended_ms.label("at_ms"),
        INBOX.c.detail.label("why"),
        INBOX.c.body,
        HISTORY.c.text,
        _NONE.label("timer_id"),
    )
    .select_from(INBOX.outerjoin(HISTORY, HISTORY.c.id == INBOX.c.id))
    .where(inbox.IS_DEAD)
)
_MESSAGES: Select[tuple[object, ...]] = select(
    literal_column("'message'", TEXT).label("kind"),
    OUTBOX.c.id,
    OUTBOX.c.chat,
    literal_column("''", TEXT).label("name"),
    OUTBOX.c.at_ms,
    OUTBOX.c.problem.label("why"),
    OUTBOX.c.body,
    literal_column("''", TEXT).label("text"),
    _NONE.label("timer_id"),
).where(outbox.IS_FAILED)
_TIMERS: Select[tuple[object, ...]] = (
    select(
        literal_column("'timer'", TEXT).label("kind"),
        OCCURRENCES.c.id,
        TIMERS.c.chat,
        TIMERS.c.owner_name.label("name"),
        OCCURRENCES.c.over_ms.label("at_ms"),
        OCCURRENCES.c.problem.label("why"),
        literal_column("''", TEXT).label("body"),
        TIMERS.c.title.label("text"),
        TIMERS.c.id.label("timer_id"),
    )
    .select_from(OCCURRENCES.join(TIMERS, _KEPT_TIMER))
    .where(_IS_DEAD_MOMENT)
)
_ALL = union_all(_TURNS, _MESSAGES, _TIMERS).subquery("dead")
_LIST = Statement("dead_letters.all", select(_ALL).order_by(_ALL.c.at_ms, _ALL.c.id))
_OF_ID = Statement("dead_letters.of_id", select(_ALL).where(_ALL.c.id == bindparam("row_id", type_=INTEGER)))
_COUNTS = Statement("dead_letters.counts", select(_ALL.c.kind, func.count().label("count")).group_by(_ALL.c.kind))
_THIS = OCCURRENCES.c.id == bindparam("row_id", type_=INTEGER)
_SNOOZED = OCCURRENCES.alias("snoozed")
_RETRY_MOMENT = Statement(
    "dead_letters.retry_moment",
    update(OCCURRENCES)
    .where(
        _THIS,
        _IS_DEAD_MOMENT,
        exists().where(_KEPT_TIMER),
        # A timer has at most one moment that is due beside those of its rule.
        ~exists().where(
            _SNOOZED.c.timer_id == OCCURRENCES.c.timer_id,
            _SNOOZED.c.snoozed == literal_column("1"),
            _SNOOZED.c.state == literal_column("'due'"),
        ),
    )
    # Its old name is that of the event which was refused, and no event is taken in twice.
    .values(state="due", snoozed=1, over_ms=None, problem="", wall=bindparam("new_wall", type_=TEXT)),
)
_REVIVE = Statement(
    "dead_letters.revive_timer",
    update(TIMERS)
    .where(TIMERS.c.id == bindparam("of_timer", type_=INTEGER), TIMERS.c.state == literal_column("'ended'"))
    .values(state="active", ended_ms=None),
)
_DROP_MOMENT = Statement(
    "dead_letters.drop_moment", update(OCCURRENCES).where(_THIS, _IS_DEAD_MOMENT).values(state="dropped")
)


def everything() -> Query:
    """All of them, oldest first: `kind`, `id`, `chat`, `name` (who wrote or owns it), `at_ms` (when it was given up),
    `why`, `body` (JSON), `text` (null: the message is no part of the history), `timer_id`."""
    return _LIST.query()


def of_id(id: int) -> Query:
    """The one of that id, with the same columns."""
    return _OF_ID.query(row_id=id)


def counts() -> Query:
    """How many there are of each `kind`, as `count`."""
    return _COUNTS.query()


def retry(row: Row, instant: str) -> list[Write]:
    """Try `row` again; a daemon that runs takes it up when COUNTER has risen. `instant`: the present, as
    `services.recurrence.instant_text` writes it, which becomes the name of a timer's moment. The first write touches no
    row where it was retried or dropped meanwhile, or cannot be due now."""
    match DeadKind(row["kind"]):
        case DeadKind.TURN:
            return [inbox.retry(row["id"])]
        case DeadKind.MESSAGE:
            return [outbox.retry(row["id"])]
        case DeadKind.TIMER:
            again = _RETRY_MOMENT.write(row_id=row["id"], new_wall=instant)
            return [again, _REVIVE.write(of_timer=row["timer_id"])]


def drop(row: Row) -> Write:
    """Never try `row` again. Touches no row where it was retried or dropped meanwhile."""
    match DeadKind(row["kind"]):
        case DeadKind.TURN:
            return inbox.drop_body(row["id"])
        case DeadKind.MESSAGE:
            return outbox.drop(row["id"])
        case DeadKind.TIMER:
            return _DROP_MOMENT.write(row_id=row["id"])
