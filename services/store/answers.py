"""The model's answers to turns that are not over, which a restart must not ask for again."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, select
from sqlalchemy.dialects.postgresql import insert

from services.store.inbox import INBOX, MAY_RUN
from services.store.port import Query, Statement, Write
from services.store.schema import delete_batch, integer, table, text

ANSWERS = table(
    "turn_answers",
    integer("turn_id", primary_key=True),
    integer("round", primary_key=True),
    text("body"),
    text("request_id"),
    integer("at_ms"),
    text("taint", nullable=True),
)

_PUT = Statement(
    "answers.put",
    insert(ANSWERS)
    .values({column.name: bindparam(column.name, type_=column.type) for column in ANSWERS.columns})
    .on_conflict_do_nothing(index_elements=["turn_id", "round"]),
)
_OF_TURN = Statement(
    "answers.of_turn",
    select(ANSWERS.c.round, ANSWERS.c.body, ANSWERS.c.taint).where(ANSWERS.c.turn_id == bindparam("turn_id")),
)
_FORGET = Statement(
    "answers.forget",
    delete_batch(
        ANSWERS,
        ANSWERS.c.turn_id < bindparam("before_id"),
        ~exists().where(INBOX.c.id == ANSWERS.c.turn_id, MAY_RUN),
    ),
)


def put(turn_id: int, round_number: int, body: str, request_id: str, at_ms: int, taint: str) -> Write:
    """A model's answer, before it is used. `taint`: what the turn had read when it came."""
    return _PUT.write(turn_id=turn_id, round=round_number, body=body, request_id=request_id, at_ms=at_ms, taint=taint)


def of_turn(turn_id: int) -> Query:
    """The stored answers of a turn: `round`, `body`, `taint` (null: written before it was kept)."""
    return _OF_TURN.query(turn_id=turn_id)


def forget(before_id: int) -> Write:
    """Drop the answers to turns that are older than that id, and neither wait nor may be retried."""
    return _FORGET.write(before_id=before_id)
