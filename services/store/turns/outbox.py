"""Outgoing messages, with the state of their delivery."""

from __future__ import annotations

from sqlalchemy import Index, bindparam, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text

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
_THIS = OUTBOX.c.id == bindparam("row_id")
IS_OPEN = OUTBOX.c.state.in_(["pending", "sending"])
Index("outbox_once", OUTBOX.c.key, unique=True)
Index("outbox_open", OUTBOX.c.id, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)

_PUT = Statement("outbox.put", insert_new(OUTBOX, "key"), takes=OUTBOX.columns.keys())
_CLAIM = Statement(
    "outbox.claim",
    update(OUTBOX)
    .where(_THIS, IS_OPEN)
    .values(state="sending", epoch=bindparam("new_epoch"), attempts=OUTBOX.c.attempts + 1),
)
_SENT = Statement(
    "outbox.sent",
    update(OUTBOX).where(_THIS).values(state="sent", native_id=bindparam("new_native_id")),
    takes=("new_native_id", "row_id"),
)
_ERASE = Statement("outbox.erase", update(OUTBOX).where(_THIS).values(body="{}"))
_FAILED = Statement(
    "outbox.failed",
    update(OUTBOX).where(_THIS).values(state="failed", problem=bindparam("why"), at_ms=bindparam("failed_ms")),
)
IS_FAILED = OUTBOX.c.state == "failed"
NOBODY = 0
"""Epoch of messages that no process has claimed yet: of workers, and of retries."""
_RETRY = Statement(
    "outbox.retry", update(OUTBOX).where(_THIS, IS_FAILED).values(state="pending", problem="", epoch=NOBODY)
)
_DROP = Statement("outbox.drop", update(OUTBOX).where(_THIS, IS_FAILED).values(state="dropped"))
_DROP_UNSENT = Statement(
    "outbox.drop_unsent",
    update(OUTBOX).where(_THIS, IS_OPEN).values(state="dropped", problem=bindparam("why")),
)
UNCLAIMED = Statement(
    "outbox.unclaimed", select(OUTBOX).where(IS_OPEN, OUTBOX.c.epoch == NOBODY).order_by(OUTBOX.c.id)
).query()
"""Open messages that no process has claimed, all columns, in order."""
_KEYS = Statement(
    "outbox.keys",
    select(OUTBOX.c.key).where(OUTBOX.c.key >= bindparam("first_key"), OUTBOX.c.key < bindparam("after_keys")),
)
_BODY = Statement("outbox.body", select(OUTBOX.c.body).where(OUTBOX.c.key == bindparam("key")))
_STATUS_OF = Statement("outbox.status_of", select(OUTBOX).where(OUTBOX.c.key == bindparam("key")))
_END_STATUS = Statement(
    "outbox.end_status",
    # Without the native id, the message is found as that of the answer only.
    update(OUTBOX).where(OUTBOX.c.key == bindparam("status_key")).values(state="dropped", native_id=None),
)
UNSENT = Statement(
    "outbox.unsent", select(OUTBOX).where(IS_OPEN, OUTBOX.c.epoch != NOBODY).order_by(OUTBOX.c.id)
).query()
"""Open messages (pending or sending), all columns, in order; the network may have received some. Excludes unclaimed
ones."""
_TURN_OF = Statement(
    "outbox.turn_of",
    select(OUTBOX.c.turn_id)
    .where(OUTBOX.c.chat == bindparam("chat"), OUTBOX.c.native_id == bindparam("native_id"))
    .order_by(OUTBOX.c.id.desc())
    .limit(1),
)


_HELD = OUTBOX.c.state == "held"
HELD = Statement("outbox.held", select(OUTBOX).where(_HELD).order_by(OUTBOX.c.id)).query()
"""Messages that are sent after the quiet hours of their chats, all columns, in order. Not indexed."""
_END_HELD = Statement(
    "outbox.end_held",
    update(OUTBOX).where(_THIS, _HELD).values(state=bindparam("new_state"), body=bindparam("new_body")),
)


def end_held(id: int, state: str, body: str) -> Write:
    """Set state and body of a held message: `pending`, to be sent, or `merged` into another one. The unit is undone if
    it is not held."""
    return _END_HELD.write_expecting(1, row_id=id, new_state=state, new_body=body)


def put(
    *, id: int, key: str, turn_id: int, history_id: int | None, chat: str, body: str, state: str, epoch: int, at_ms: int
) -> Write:
    """Add an outgoing message. `state` is `sending` if this process sends it at once and a repeated send is harmless,
    else `pending`. Touches no row if an earlier attempt of the turn added it."""
    return _PUT.write_row((id, key, turn_id, history_id, chat, body, state, epoch, 0, at_ms, None, ""))


def claim(id: int, epoch: int) -> Write:
    """Mark an open message as about to be sent by the process `epoch`, and count the attempt. Touches no row if it is
    closed."""
    return _CLAIM.write(row_id=id, new_epoch=epoch)


def sent(id: int, native_id: str) -> Write:
    """Mark a message as accepted by the network, with the network's id of it."""
    return _SENT.write_row((native_id, id))


def erase(id: int) -> Write:
    """Delete the content of a message that is not sent again."""
    return _ERASE.write(row_id=id)


def failed(id: int, problem: str, at_ms: int) -> Write:
    """Mark a message as given up at that time (milliseconds since 1970 UTC), with the reason."""
    return _FAILED.write(row_id=id, why=problem, failed_ms=at_ms)


def retry(id: int) -> Write:
    """Queue a message that was given up again, for any process. Touches no row if it was not given up."""
    return _RETRY.write(row_id=id)


def drop(id: int) -> Write:
    """Make a message that was given up final. Touches no row if it was not given up."""
    return _DROP.write(row_id=id)


def drop_unsent(id: int, problem: str) -> Write:
    """Drop a message without sending it, because too many are queued. Touches no row that is not open."""
    return _DROP_UNSENT.write(row_id=id, why=problem)


def keys(turn_id: int) -> Query:
    """The `key` of each message that the turn put into the outbox."""
    return _KEYS.query(first_key=f"{turn_id}:", after_keys=f"{turn_id};")


def body(key: str) -> Query:
    """The `body` of the message with that idempotency key; no row if it is unknown or deleted."""
    return _BODY.query(key=key)


def status_key(turn_id: int) -> str:
    """The `key` of the turn's status message."""
    return f"status:{turn_id}"


def status_of(turn_id: int) -> Query:
    """The row of the turn's status message, all columns; no row if it has none."""
    return _STATUS_OF.query(key=status_key(turn_id))


def end_status(turn_id: int) -> Write:
    """Close the turn's status message, which is deleted or has become the answer. Touches no row if there is none."""
    return _END_STATUS.write(status_key=status_key(turn_id))


def turn_of(chat: str, native_id: str) -> Query:
    """The `turn_id` of the message to `chat` with the network's id `native_id`; no row if it is unknown."""
    return _TURN_OF.query(chat=chat, native_id=native_id)
