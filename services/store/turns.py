"""Turns: messages being answered, with the model's answers that a restart must not ask for again."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Index, bindparam, delete, exists, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.inbox import INBOX
from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

TURNS = table(
    "turns",
    integer("id", primary_key=True),
    text("chat"),
    text("bot"),
    text("state"),
    integer("epoch"),
    integer("attempts"),
    integer("queued_ms"),
    integer("ended_ms", nullable=True),
)
_DONE: ColumnElement[str] = literal_column("'done'")
Index("turns_open", TURNS.c.id, sqlite_where=TURNS.c.state != _DONE, postgresql_where=TURNS.c.state != _DONE)

ANSWERS = table(
    "turn_answers",
    integer("turn_id", primary_key=True),
    integer("round", primary_key=True),
    text("body"),
    text("request_id"),
    integer("at_ms"),
)

_BINDS = {column.name: bindparam(column.name, type_=column.type) for column in TURNS.columns}
_QUEUE = Statement(
    "turns.queue",
    insert(TURNS).from_select(
        list(_BINDS), select(*_BINDS.values()).where(exists().where(INBOX.c.id == bindparam("id")))
    ),
)
_TAKE_UP = Statement(
    "turns.take_up",
    update(TURNS)
    .where(TURNS.c.id == bindparam("row_id"), TURNS.c.state != _DONE)
    .values(epoch=bindparam("new_epoch"), attempts=TURNS.c.attempts + literal_column("1")),
)
_END = Statement(
    "turns.end",
    update(TURNS)
    .where(TURNS.c.id == bindparam("row_id"), TURNS.c.state != _DONE)
    .values(state="done", ended_ms=bindparam("at_ms")),
)
_OPEN = Statement("turns.open", select(TURNS.c.id, TURNS.c.attempts).where(TURNS.c.state != _DONE).order_by(TURNS.c.id))
_ANSWER = Statement(
    "turns.answer",
    insert(ANSWERS)
    .values({column.name: bindparam(column.name, type_=column.type) for column in ANSWERS.columns})
    .on_conflict_do_nothing(index_elements=["turn_id", "round"]),
)
_ANSWERS = Statement(
    "turns.answers", select(ANSWERS.c.round, ANSWERS.c.body).where(ANSWERS.c.turn_id == bindparam("turn_id"))
)
_FORGET = Statement("turns.forget", delete(TURNS).where(TURNS.c.id < bindparam("before_id"), TURNS.c.state == _DONE))
_FORGET_ANSWERS = Statement("turns.forget_answers", delete(ANSWERS).where(ANSWERS.c.turn_id < bindparam("before_id")))


def queue(id: int, chat: str, bot: str, epoch: int, at_ms: int) -> Write:
    """A turn for the message of the same id, accepted in the same unit; nothing for a duplicate."""
    return _QUEUE.write(
        id=id, chat=chat, bot=bot, state="queued", epoch=epoch, attempts=0, queued_ms=at_ms, ended_ms=None
    )


def take_up(id: int, epoch: int) -> Write:
    """Another process takes up a turn that a dead one left: counts an attempt."""
    return _TAKE_UP.write(row_id=id, new_epoch=epoch)


def end(id: int, at_ms: int) -> Write:
    """The turn is over; the unit is undone when it was over before."""
    return _END.write_expecting(1, row_id=id, at_ms=at_ms)


def unfinished() -> Query:
    """Turns that are not over: `id`, `attempts`; oldest first."""
    return _OPEN.query()


def answer(turn_id: int, round_number: int, body: str, request_id: str, at_ms: int) -> Write:
    """A model's answer, before it is used."""
    return _ANSWER.write(turn_id=turn_id, round=round_number, body=body, request_id=request_id, at_ms=at_ms)


def answers(turn_id: int) -> Query:
    """The stored answers of a turn: `round`, `body`."""
    return _ANSWERS.query(turn_id=turn_id)


def forget(before_id: int) -> list[Write]:
    """Drop turns that are over and are older than that id, and their answers."""
    return [_FORGET.write(before_id=before_id), _FORGET_ANSWERS.write(before_id=before_id)]
