"""Outcomes of messages, for explanations, and dead letters."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, func, literal_column, select, union_all, update

from services.store.chats.history import HISTORY
from services.store.port import Query, Row, Statement, Write
from services.store.schema import TEXT
from services.store.turns import inbox, outbox
from services.store.turns.inbox import INBOX
from services.store.turns.occurrences import OCCURRENCES
from services.store.turns.outbox import OUTBOX
from services.store.turns.timers import TIMERS

_FACTS = [INBOX.c[name] for name in ("id", "native_id", "sender_name", "received_ms", "reason", "detail")]
_ROWS = select(*_FACTS, HISTORY.c.text)
_LAST = Statement(
    "outcomes.last",
    _ROWS.join(HISTORY, HISTORY.c.id == INBOX.c.id)
    .where(
        HISTORY.c.chat == bindparam("chat"),
        HISTORY.c.from_bot == 0,
        INBOX.c.native_id != bindparam("but"),
        INBOX.c.kind == "message",
    )
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count")),
)
_CONVERSATION = Statement(
    "outcomes.conversation",
    select(HISTORY.c.id, HISTORY.c.from_bot, HISTORY.c.sender_name, INBOX.c.reason, INBOX.c.received_ms)
    .join(INBOX, INBOX.c.id == HISTORY.c.id, isouter=True)
    .where(HISTORY.c.chat == bindparam("chat"))
    .order_by(HISTORY.c.id.desc())
    .limit(bindparam("count")),
)
_TIMER = TIMERS.join(OCCURRENCES, OCCURRENCES.c.timer_id == TIMERS.c.id).join(
    INBOX, INBOX.c.id == OCCURRENCES.c.turn_id
)
_OF_TIMERS = select(*_FACTS, TIMERS.c.title.label("text")).select_from(_TIMER)
# Without successful runs, which can be seen in the chat.
_LAST_TIMERS = Statement(
    "outcomes.last_timers",
    _OF_TIMERS.where(
        TIMERS.c.chat == bindparam("chat"), TIMERS.c.private_to.is_(None), INBOX.c.reason.not_in(["timer", "waiting"])
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
# The keys of a message and of its changes have a common prefix, so they are adjacent in the index.
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


def conversation(chat: str, count: int) -> Query:
    """The latest `count` messages of the chat, newest first: `id`, `from_bot`, `sender_name`, and `reason` and
    `received_ms`, which are null for messages of the bot."""
    return _CONVERSATION.query(chat=chat, count=count)


def last(chat: str, but_native_id: str, count: int) -> Query:
    """The last `count` messages visible to everybody in `chat`, newest first, except `but_native_id`: `id`,
    `native_id`, `sender_name`, `received_ms`, `reason`, `detail`, and `text`, empty if it was deleted."""
    return _LAST.query(chat=chat, but=but_native_id, count=count)


def of_native(chat: str, native_id: str) -> Query:
    """The message of `chat` with the network's id `native_id`, and its changes, oldest first, with the columns of
    `last`; `text` is null if it is not in the history."""
    first = f"{native_id}\n{chat}"
    return _OF_NATIVE.query(first_key=first, after_keys=f"{first}\x0b", chat=chat, native_id=native_id)


def in_chat(chat: str, id: int) -> Query:
    """The event with that id, with the columns of `last`; no row unless it came from `chat`."""
    return _IN_CHAT.query(chat=chat, row_id=id)


def last_timers(chat: str, count: int) -> Query:
    """The last `count` ended timer runs without success visible to everybody in `chat`, newest first; `text` is the
    timer's title."""
    return _LAST_TIMERS.query(chat=chat, count=count)


def timer_in_chat(chat: str, id: int) -> Query:
    """The timer run with that id, with any outcome, and no row unless it was in `chat`; `private_to` is the key of the
    only member who may see it, null for everybody."""
    return _TIMER_IN_CHAT.query(chat=chat, row_id=id)


COUNTER = "dead_letters"
"""Counter in `changes`, increased by a command that retries or drops dead letters."""


class DeadKind(StrEnum):
    """The table that a dead letter is in."""

    TURN = "turn"
    MESSAGE = "message"
    TIMER = "timer"


# An occurrence that was dispatched has a row in the outbox, which is listed instead.
_IS_DEAD_MOMENT = and_(OCCURRENCES.c.state == "undeliverable", OCCURRENCES.c.turn_id.is_(None))
_EXISTING_TIMER = and_(TIMERS.c.id == OCCURRENCES.c.timer_id, TIMERS.c.state != "removed")
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
    .select_from(OCCURRENCES.join(TIMERS, _EXISTING_TIMER))
    .where(_IS_DEAD_MOMENT)
)
_ALL = union_all(_TURNS, _MESSAGES, _TIMERS).subquery("dead")
EVERYTHING = Statement("dead_letters.all", select(_ALL).order_by(_ALL.c.at_ms, _ALL.c.id)).query()
"""All dead letters, oldest first: `kind`, `id`, `chat`, `name` (its author or owner), `at_ms` (when it was given
up), `why`, `body` (JSON), `text` (null: not in the history), `timer_id`."""
_OF_ID = Statement("dead_letters.of_id", select(_ALL).where(_ALL.c.id == bindparam("row_id")))
COUNTS = Statement(
    "dead_letters.counts", select(_ALL.c.kind, func.count().label("count")).group_by(_ALL.c.kind)
).query()
"""Number of dead letters by `kind`, as `count`; kinds without dead letters are left out."""
_THIS = OCCURRENCES.c.id == bindparam("row_id")
_SNOOZED = OCCURRENCES.alias("snoozed")
_RETRY_MOMENT = Statement(
    "dead_letters.retry_moment",
    update(OCCURRENCES)
    .where(
        _THIS,
        _IS_DEAD_MOMENT,
        exists().where(_EXISTING_TIMER),
        # A timer has at most one snoozed occurrence that is due.
        ~exists().where(
            _SNOOZED.c.timer_id == OCCURRENCES.c.timer_id, _SNOOZED.c.snoozed == 1, _SNOOZED.c.state == "due"
        ),
    )
    # The old wall time names a rejected event, and no event key is accepted twice.
    .values(state="due", snoozed=1, over_ms=None, problem="", wall=bindparam("new_wall")),
)
_REVIVE = Statement(
    "dead_letters.revive_timer",
    update(TIMERS)
    .where(TIMERS.c.id == bindparam("of_timer"), TIMERS.c.state == "ended")
    .values(state="active", ended_ms=None),
)
_DROP_MOMENT = Statement(
    "dead_letters.drop_moment", update(OCCURRENCES).where(_THIS, _IS_DEAD_MOMENT).values(state="dropped")
)


def of_id(id: int) -> Query:
    """The dead letter with that id, with the columns of `EVERYTHING`; no row if it was retried or dropped."""
    return _OF_ID.query(row_id=id)


def retry(row: Row, instant: str) -> list[Write]:
    """Retry `row`; a running daemon claims it when COUNTER has increased. `instant`: the present, written by
    `services.times.recurrence.instant_text`; the new wall time of an occurrence. The first write touches no row if it
    was retried or dropped meanwhile, or cannot be due now."""
    match DeadKind(row["kind"]):
        case DeadKind.TURN:
            return [inbox.retry(row["id"])]
        case DeadKind.MESSAGE:
            return [outbox.retry(row["id"])]
        case DeadKind.TIMER:
            retried = _RETRY_MOMENT.write(row_id=row["id"], new_wall=instant)
            return [retried, _REVIVE.write(of_timer=row["timer_id"])]


def drop(row: Row) -> Write:
    """Drop the dead letter `row` for good, so that it cannot be retried. Touches no row if it was retried or dropped
    meanwhile."""
    match DeadKind(row["kind"]):
        case DeadKind.TURN:
            return inbox.drop_body(row["id"])
        case DeadKind.MESSAGE:
            return outbox.drop(row["id"])
        case DeadKind.TIMER:
            return _DROP_MOMENT.write(row_id=row["id"])
