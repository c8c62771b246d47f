"""Everything that arrived, once: the row that makes a message accepted, its turn, and how it ended.

A message that is to be answered is its own turn: the turn has the row's id and lives while the reason is `waiting`.
One row for both is two writes and two pages less in every turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Index, and_, bindparam, func, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import delete_batch, integer, table, text

INBOX = table(
    "inbox",
    integer("id", primary_key=True),
    text("key"),
    text("chat"),
    text("native_id"),
    text("sender"),
    text("sender_name"),
    text("kind"),
    text("body"),
    integer("received_ms"),
    text("reason"),
    text("detail"),
    integer("turn_id", nullable=True),
    integer("question_id", nullable=True),
    integer("ended_ms", nullable=True),
    integer("epoch"),
    integer("attempts"),
)
WAITING: ColumnElement[str] = literal_column("'waiting'")
Index("inbox_once", INBOX.c.key, unique=True)
Index(
    "inbox_waiting",
    INBOX.c.id,
    sqlite_where=INBOX.c.reason == WAITING,
    postgresql_where=INBOX.c.reason == WAITING,
)


class Event(NamedTuple):
    """What an event is known by, and whose it is."""

    key: str
    chat: str
    native_id: str
    sender: str
    sender_name: str
    kind: str


_TAKEN = ("id", *Event._fields)


def _taken(name: str, more: Sequence[str], constants: Mapping[str, Any]) -> Statement:
    takes = (*_TAKEN, *more)
    values = {given: bindparam(given, type_=INBOX.c[given].type) for given in takes}
    once = insert(INBOX).values({**values, **constants, "attempts": 0})
    return Statement(name, once.on_conflict_do_nothing(index_elements=["key"]), takes)


_WAITS_FOR_ANSWER = {"reason": WAITING, "detail": ""}
# What is null is left out: to bind it costs the driver more than a text does.
_ACCEPT = _taken("inbox.accept", ("body", "received_ms", "turn_id", "epoch"), _WAITS_FOR_ANSWER)
_ACCEPT_ANSWER = _taken(
    "inbox.accept_answer", ("body", "received_ms", "turn_id", "question_id", "epoch"), _WAITS_FOR_ANSWER
)
_NOTE = _taken("inbox.note", ("received_ms", "reason", "detail", "ended_ms"), {"body": "", "epoch": 0})
GAVE_UP: ColumnElement[str] = literal_column("'gave_up'")
MAY_RUN = INBOX.c.body != literal_column("''")
"""It waits, or was given up and may be retried."""
IS_DEAD = and_(INBOX.c.reason == GAVE_UP, MAY_RUN)
"""Given up, and still with what is needed to try it again."""
_RETRIED_EPOCH: ColumnElement[int] = literal_column("0")
"""In place of the process: none has taken up the retry yet."""
_TAKE_UP = Statement(
    "inbox.take_up",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING)
    .values(epoch=bindparam("new_epoch"), attempts=bindparam("new_attempts")),
)
_END = Statement(
    "inbox.end",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING)
    .values(
        reason=bindparam("new_reason"),
        detail=bindparam("new_detail"),
        ended_ms=bindparam("at_ms"),
        body=literal_column("''"),
    ),
    takes=("new_reason", "new_detail", "at_ms", "row_id"),
)
_GIVE_UP = Statement(
    "inbox.give_up",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING)
    .values(reason=GAVE_UP, detail=bindparam("new_detail"), ended_ms=bindparam("at_ms")),
)
_RETRY = Statement(
    "inbox.retry",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), IS_DEAD)
    .values(reason=WAITING, detail="", ended_ms=None, epoch=_RETRIED_EPOCH, attempts=0),
)
_DROP_BODY = Statement(
    "inbox.drop_body", update(INBOX).where(INBOX.c.id == bindparam("row_id"), IS_DEAD).values(body="")
)
_CHANGED = Statement("inbox.changed", update(INBOX).where(INBOX.c.key == bindparam("of_key"), IS_DEAD).values(body=""))
_AMEND = Statement(
    "inbox.amend",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason != WAITING)
    .values(reason=bindparam("new_reason"), detail=bindparam("new_detail")),
)
_REPLACE = Statement(
    "inbox.replace",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING)
    .values(body=bindparam("new_body")),
)
_WAITING_ROWS = Statement(
    "inbox.waiting",
    select(INBOX.c.id, INBOX.c.body, INBOX.c.question_id, INBOX.c.attempts)
    .where(INBOX.c.reason == WAITING, INBOX.c.epoch != _RETRIED_EPOCH)
    .order_by(INBOX.c.id),
)
_RETRIED = Statement(
    "inbox.retried",
    select(INBOX.c.id, INBOX.c.body, INBOX.c.question_id)
    .where(INBOX.c.reason == WAITING, INBOX.c.epoch == _RETRIED_EPOCH)
    .order_by(INBOX.c.id),
)
_KNOWN = Statement("inbox.known", select(INBOX.c.id).where(INBOX.c.key == bindparam("key")))
_NEWEST_RECEIVED = Statement(
    "inbox.newest_received",
    select(func.max(INBOX.c.id).label("id")).where(
        INBOX.c.id >= bindparam("from_id"), INBOX.c.received_ms < bindparam("before_ms")
    ),
)
_FORGET = Statement(
    "inbox.forget",
    delete_batch(
        INBOX,
        INBOX.c.id < bindparam("before_id"),
        INBOX.c.reason != WAITING,
        or_(INBOX.c.reason != GAVE_UP, INBOX.c.ended_ms < bindparam("ended_before_ms")),
    ),
)


def accept(id: int, event: Event, *, body: str, received_ms: int, epoch: int, question_id: int | None = None) -> Write:
    """Take an event in as a turn of its own, which the process `epoch` is to answer and which may answer the question
    `question_id`; touches no row when one with this key was taken before."""
    if question_id is None:
        return _ACCEPT.write_row((id, *event, body, received_ms, id, epoch))
    return _ACCEPT_ANSWER.write_row((id, *event, body, received_ms, id, question_id, epoch))


def note(id: int, event: Event, *, received_ms: int, reason: str, detail: str = "") -> Write:
    """Take an event in that ends with that, and why: no process is to answer it. Touches no row when one with this key
    was taken before."""
    return _NOTE.write_row((id, *event, received_ms, reason, detail, received_ms))


def take_up(id: int, epoch: int, attempts: int) -> Write:
    """The process `epoch` runs a turn that an earlier one left. `attempts`: its runs, this one included."""
    return _TAKE_UP.write(row_id=id, new_epoch=epoch, new_attempts=attempts)


def end(id: int, reason: str, detail: str, at_ms: int) -> Write:
    """How the event ended; the unit is undone when it had ended before. What was said is forgotten here: nothing needs
    it any more, and where it may be read, edited and deleted is history."""
    return _END.write_row((reason, detail, at_ms, id), 1)


def give_up(id: int, detail: str, at_ms: int) -> Write:
    """End the turn as given up. It keeps its body, for a retry. The unit is undone when it had ended before."""
    return _GIVE_UP.write_expecting(1, row_id=id, new_detail=detail, at_ms=at_ms)


def retry(id: int) -> Write:
    """Let a turn that was given up wait again, for whichever process takes it up. Touches no row where there is nothing
    to retry."""
    return _RETRY.write(row_id=id)


def drop_body(id: int) -> Write:
    """A turn that was given up is not to be retried. Touches no row where there is nothing to retry."""
    return _DROP_BODY.write(row_id=id)


def changed(key: str) -> Write:
    """The message of that key was edited or deleted: if it was given up, it cannot be retried as it was."""
    return _CHANGED.write(of_key=key)


def amend(id: int, reason: str, detail: str) -> Write:
    """Another reason for an event that has ended; touches no row while it waits, or when it was forgotten."""
    return _AMEND.write(row_id=id, new_reason=reason, new_detail=detail)


def replace(id: int, body: str) -> Write:
    """Another text for a message that still waits; touches no row when it was answered meanwhile."""
    return _REPLACE.write(row_id=id, new_body=body)


def waiting() -> Query:
    """The turns that are not over, oldest first: `id`, `body`, `question_id`, `attempts`. Without the retries that no
    process has taken up."""
    return _WAITING_ROWS.query()


def retried() -> Query:
    """The retries that no process has taken up: `id`, `body`, `question_id`."""
    return _RETRIED.query()


def known(key: str) -> Query:
    """A row when the event of that key was taken in before."""
    return _KNOWN.query(key=key)


def newest_received(from_id: int, before_ms: int) -> Query:
    """The highest `id`, of those from `from_id` on, of what was received before that time; null where there is none."""
    return _NEWEST_RECEIVED.query(from_id=from_id, before_ms=before_ms)


def forget(before_id: int, before_ms: int) -> Write:
    """Drop what ended and is older than that id; what was given up only if that was before `before_ms`. Redeliveries
    are recognised only while the row is kept."""
    return _FORGET.write(before_id=before_id, ended_before_ms=before_ms)
