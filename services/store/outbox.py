"""What is to be sent, until the network has it."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import delete_batch, integer, table, text

OUTBOX = table(
    "outbox",
    integer("id", primary_key=True),
    text("key"),
    integer("turn_id"),
    integer("history_id", nullable=True),
    text("chat"),
    text("body"),
    text("state"),
    integer("epoch"),
    integer("attempts"),
    integer("at_ms"),
    text("native_id", nullable=True),
    text("problem"),
)
_OPEN = OUTBOX.c.state.in_([literal_column("'pending'"), literal_column("'sending'")])
Index("outbox_once", OUTBOX.c.key, unique=True)
Index("outbox_open", OUTBOX.c.id, sqlite_where=_OPEN, postgresql_where=_OPEN)

_GIVEN = ("id", "key", "turn_id", "history_id", "chat", "body", "state", "epoch", "at_ms")
_PUT = Statement(
    "outbox.put",
    insert(OUTBOX)
    .values({name: bindparam(name, type_=OUTBOX.c[name].type) for name in _GIVEN} | {"attempts": 0, "problem": ""})
    .on_conflict_do_nothing(index_elements=["key"]),
    takes=_GIVEN,
)
_CLAIM = Statement(
    "outbox.claim",
    update(OUTBOX)
    .where(OUTBOX.c.id == bindparam("row_id"), _OPEN)
    .values(state="sending", epoch=bindparam("new_epoch"), attempts=OUTBOX.c.attempts + literal_column("1")),
)
_SENT = Statement(
    "outbox.sent",
    update(OUTBOX).where(OUTBOX.c.id == bindparam("row_id")).values(state="sent", native_id=bindparam("new_native_id")),
    takes=("new_native_id", "row_id"),
)
_FAILED = Statement(
    "outbox.failed",
    update(OUTBOX).where(OUTBOX.c.id == bindparam("row_id")).values(state="failed", problem=bindparam("why")),
)
_UNSENT = Statement("outbox.unsent", select(OUTBOX).where(_OPEN).order_by(OUTBOX.c.id))
_TURN_OF = Statement(
    "outbox.turn_of",
    select(OUTBOX.c.turn_id)
    .where(OUTBOX.c.chat == bindparam("chat"), OUTBOX.c.native_id == bindparam("native_id"))
    .order_by(OUTBOX.c.id.desc())
    .limit(literal_column("1")),
)
_FORGET = Statement("outbox.forget", delete_batch(OUTBOX, OUTBOX.c.id < bindparam("before_id"), ~_OPEN))


def put(
    *, id: int, key: str, turn_id: int, history_id: int | None, chat: str, body: str, state: str, epoch: int, at_ms: int
) -> Write:
    """A message to send. `state` is `sending` where this process sends it at once and a second send does no harm, else
    `pending`. Nothing when an earlier attempt of the turn put it there."""
    return _PUT.write_row((id, key, turn_id, history_id, chat, body, state, epoch, at_ms))


def claim(id: int, epoch: int) -> Write:
    """This process is about to send it."""
    return _CLAIM.write(row_id=id, new_epoch=epoch)


def sent(id: int, native_id: str) -> Write:
    """The network has it."""
    return _SENT.write_row((native_id, id))


def failed(id: int, problem: str) -> Write:
    """It is given up."""
    return _FAILED.write(row_id=id, why=problem)


def unsent() -> Query:
    """All that the network may not have, in the order in which it was said."""
    return _UNSENT.query()


def turn_of(chat: str, native_id: str) -> Query:
    """The `turn_id` of the message that the bot sent to `chat` and the network calls `native_id`."""
    return _TURN_OF.query(chat=chat, native_id=native_id)


def forget(before_id: int) -> Write:
    """Drop what was sent or given up and is older than that id."""
    return _FORGET.write(before_id=before_id)
