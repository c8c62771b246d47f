"""Everything that arrived, once: the row that makes a message accepted, its turn, and how it ended.

A message that is to be answered is its own turn: the turn has the row's id and lives while the reason is `waiting`.
One row for both is two writes and two pages less in every turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Index, bindparam, delete, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

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
_TAKE_UP = Statement(
    "inbox.take_up",
    update(INBOX)
    .where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING)
    .values(epoch=bindparam("new_epoch"), attempts=INBOX.c.attempts + literal_column("1")),
)
_WAITS = Statement(
    "inbox.waits",
    update(INBOX).where(INBOX.c.id == bindparam("row_id"), INBOX.c.reason == WAITING).values(attempts=INBOX.c.attempts),
    takes=("row_id",),
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
    .where(INBOX.c.reason == WAITING)
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
    delete(INBOX).where(INBOX.c.id < bindparam("before_id"), INBOX.c.reason != WAITING),
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


def take_up(id: int, epoch: int) -> Write:
    """Another process takes up a turn that a dead one left: counts an attempt."""
    return _TAKE_UP.write(row_id=id, new_epoch=epoch)


def waits(id: int) -> Write:
    """Changes nothing; the unit is undone when the turn of that id is not there, or over."""
    return _WAITS.write_row((id,), 1)


def end(id: int, reason: str, detail: str, at_ms: int) -> Write:
    """How the event ended; the unit is undone when it had ended before. What was said is forgotten here: nothing needs
    it any more, and where it may be read, edited and deleted is history."""
    return _END.write_row((reason, detail, at_ms, id), 1)


def amend(id: int, reason: str, detail: str) -> Write:
    """Another reason for an event that has ended; touches no row while it waits, or when it was forgotten."""
    return _AMEND.write(row_id=id, new_reason=reason, new_detail=detail)


def replace(id: int, body: str) -> Write:
    """Another text for a message that still waits; touches no row when it was answered meanwhile."""
    return _REPLACE.write(row_id=id, new_body=body)


def waiting() -> Query:
    """The turns that are not over, oldest first: `id`, `body`, `question_id`, `attempts`."""
    return _WAITING_ROWS.query()


def known(key: str) -> Query:
    """A row when the event of that key was taken in before."""
    return _KNOWN.query(key=key)


def newest_received(from_id: int, before_ms: int) -> Query:
    """The highest `id`, of those from `from_id` on, of what was received before that time; null where there is none."""
    return _NEWEST_RECEIVED.query(from_id=from_id, before_ms=before_ms)


def forget(before_id: int) -> Write:
    """Drop what ended and is older than that id. Redeliveries are recognised only while the row is kept."""
    return _FORGET.write(before_id=before_id)
