"""Received events, each stored once: the row that makes a message accepted, its turn, and how it ended.

A message that is answered is its own turn: the turn has the row's id and is active while the reason is `waiting`. One
row for both saves two writes and two pages per turn.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Index, and_, bindparam, func, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text

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
WAITING = "waiting"
Index("inbox_once", INBOX.c.key, unique=True)
Index(
    "inbox_waiting",
    INBOX.c.id,
    sqlite_where=INBOX.c.reason == WAITING,
    postgresql_where=INBOX.c.reason == WAITING,
)


_THIS = INBOX.c.id == bindparam("row_id")


class Event(NamedTuple):
    """Identity and sender of a received event; `key` is the same for a redelivery."""

    key: str
    chat: str
    native_id: str
    sender: str
    sender_name: str
    kind: str


_ONCE = insert_new(INBOX, "key")
_ACCEPT = Statement("inbox.accept", _ONCE, takes=INBOX.columns.keys())
_NOTE = Statement("inbox.note", _ONCE, takes=INBOX.columns.keys())
GAVE_UP = "gave_up"
MAY_RUN = INBOX.c.body != ""
"""Condition: waiting, or given up and still retryable."""
IS_DEAD = and_(INBOX.c.reason == GAVE_UP, MAY_RUN)
"""Condition: given up, with the body that a retry needs."""
_RETRIED_EPOCH = 0
"""Epoch of retries that no process has claimed yet."""
_WHILE_WAITING = update(INBOX).where(_THIS, INBOX.c.reason == WAITING)
_TAKE_UP = Statement(
    "inbox.take_up", _WHILE_WAITING.values(epoch=bindparam("new_epoch"), attempts=bindparam("new_attempts"))
)
_BEGIN_ATTEMPT = Statement(
    "inbox.begin_attempt", _WHILE_WAITING.values(epoch=bindparam("attempt"), attempts=INBOX.c.attempts + 1)
)
_OF_ATTEMPT = Statement(
    "inbox.of_attempt",
    select(INBOX.c.id, INBOX.c.body, INBOX.c.question_id, INBOX.c.attempts, INBOX.c.detail).where(
        _THIS, INBOX.c.reason == WAITING, INBOX.c.epoch == bindparam("attempt")
    ),
)
STOP_REQUESTED = "stop_requested"
_REQUEST_STOP = Statement("inbox.request_stop", _WHILE_WAITING.values(detail=STOP_REQUESTED))
_END = Statement(
    "inbox.end",
    _WHILE_WAITING.values(
        reason=bindparam("new_reason"), detail=bindparam("new_detail"), ended_ms=bindparam("at_ms"), body=""
    ),
    takes=("new_reason", "new_detail", "at_ms", "row_id"),
)
_GIVE_UP = Statement(
    "inbox.give_up",
    _WHILE_WAITING.values(reason=GAVE_UP, detail=bindparam("new_detail"), ended_ms=bindparam("at_ms")),
)
_RETRY = Statement(
    "inbox.retry",
    update(INBOX)
    .where(_THIS, IS_DEAD)
    .values(reason=WAITING, detail="", ended_ms=None, epoch=_RETRIED_EPOCH, attempts=0),
)
_DROP_BODY = Statement("inbox.drop_body", update(INBOX).where(_THIS, IS_DEAD).values(body=""))
_CHANGED = Statement("inbox.changed", update(INBOX).where(INBOX.c.key == bindparam("of_key"), IS_DEAD).values(body=""))
_AMEND = Statement(
    "inbox.amend",
    update(INBOX)
    .where(_THIS, INBOX.c.reason != WAITING)
    .values(reason=bindparam("new_reason"), detail=bindparam("new_detail")),
)
_REPLACE = Statement("inbox.replace", _WHILE_WAITING.values(body=bindparam("new_body")))
WAITING_TURNS = Statement(
    "inbox.waiting",
    select(INBOX.c.id, INBOX.c.chat, INBOX.c.body, INBOX.c.question_id, INBOX.c.attempts)
    .where(INBOX.c.reason == WAITING, INBOX.c.epoch != _RETRIED_EPOCH)
    .order_by(INBOX.c.id),
).query()
"""Turns that have not ended, oldest first: `id`, `chat`, `body`, `question_id`, `attempts`. Excludes unclaimed
retries."""
RETRIED = Statement(
    "inbox.retried",
    select(INBOX.c.id, INBOX.c.body, INBOX.c.question_id)
    .where(INBOX.c.reason == WAITING, INBOX.c.epoch == _RETRIED_EPOCH)
    .order_by(INBOX.c.id),
).query()
"""Turns to be retried that no process has claimed, oldest first: `id`, `body`, `question_id`."""
_KNOWN = Statement("inbox.known", select(INBOX.c.id).where(INBOX.c.key == bindparam("key")))
_NEWEST_RECEIVED = Statement(
    "inbox.newest_received",
    select(func.max(INBOX.c.id).label("id")).where(
        INBOX.c.id >= bindparam("from_id"), INBOX.c.received_ms < bindparam("before_ms")
    ),
)


def accept(id: int, event: Event, *, body: str, received_ms: int, epoch: int, question_id: int | None = None) -> Write:
    """Accept an event as a turn for the process `epoch`, which may answer the question `question_id`. Touches no row if
    an event with this key was accepted before."""
    return _ACCEPT.write_row((id, *event, body, received_ms, WAITING, "", id, question_id, None, epoch, 0))


def note(id: int, event: Event, *, received_ms: int, reason: str, detail: str = "") -> Write:
    """Record an event that is not answered, with its reason and detail. Touches no row if an event with this key was
    recorded before."""
    return _NOTE.write_row((id, *event, "", received_ms, reason, detail, None, None, received_ms, 0, 0))


def take_up(id: int, epoch: int, attempts: int) -> Write:
    """Assign a turn left by an earlier process to the process `epoch`. `attempts`: its runs, including this one.
    Touches no row if it has ended."""
    return _TAKE_UP.write(row_id=id, new_epoch=epoch, new_attempts=attempts)


def begin_attempt(id: int, attempt: int) -> Write:
    """Begin the attempt of that unique id, and count it: earlier attempts, which may still run, can write no more.
    Touches no row if the turn has ended."""
    return _BEGIN_ATTEMPT.write(row_id=id, attempt=attempt)


def of_attempt(id: int, attempt: int) -> Query:
    """The turn: `id`, `body`, `question_id`, `attempts` (with this one), `detail`; no row if a later attempt has
    begun."""
    return _OF_ATTEMPT.query(row_id=id, attempt=attempt)


def request_stop(id: int) -> Write:
    """Mark the waiting turn as stopped by a member (`detail` is STOP_REQUESTED), for an attempt that begins later.
    Touches no row if it has ended."""
    return _REQUEST_STOP.write(row_id=id)


def end(id: int, reason: str, detail: str, at_ms: int) -> Write:
    """End the event with a reason; the unit is undone if it had ended before. The body is cleared: the message remains
    in the history, where it may be read, edited and deleted."""
    return _END.write_row((reason, detail, at_ms, id), 1)


def give_up(id: int, detail: str, at_ms: int) -> Write:
    """End the turn as given up; the body is kept for a retry. The unit is undone if it had ended before."""
    return _GIVE_UP.write_expecting(1, row_id=id, new_detail=detail, at_ms=at_ms)


def retry(id: int) -> Write:
    """Make a turn that was given up wait again, for any process. Touches no row if it cannot be retried."""
    return _RETRY.write(row_id=id)


def drop_body(id: int) -> Write:
    """Make a turn that was given up final. Touches no row if it cannot be retried."""
    return _DROP_BODY.write(row_id=id)


def changed(key: str) -> Write:
    """Make the message with that key unretryable if it was given up, because it was edited or deleted; otherwise
    touches no row."""
    return _CHANGED.write(of_key=key)


def amend(id: int, reason: str, detail: str) -> Write:
    """Change the reason of an ended event; touches no row while it waits or if it was deleted."""
    return _AMEND.write(row_id=id, new_reason=reason, new_detail=detail)


def replace(id: int, body: str) -> Write:
    """Change the body of a waiting message; touches no row if it was answered meanwhile."""
    return _REPLACE.write(row_id=id, new_body=body)


def known(key: str) -> Query:
    """`id` of the event with that key, if it was accepted or recorded before; else no row."""
    return _KNOWN.query(key=key)


def newest_received(from_id: int, before_ms: int) -> Query:
    """The highest `id`, at least `from_id`, of the events received before that time (milliseconds), as `id`; null if
    there are none."""
    return _NEWEST_RECEIVED.query(from_id=from_id, before_ms=before_ms)
