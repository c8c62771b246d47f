"""State of active turns: stored model answers, and values that functions keep per member."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text, upsert

ANSWERS = table(
    "turn_answers",
    integer("turn_id", primary_key=True),
    integer("round", primary_key=True),
    text("body"),
    text("request_id"),
    integer("at_ms"),
    text("taint", nullable=True),
)

_PUT = Statement("answers.put", insert_new(ANSWERS, "turn_id", "round"))
_OF_TURN = Statement(
    "answers.of_turn",
    select(ANSWERS.c.round, ANSWERS.c.body, ANSWERS.c.taint).where(ANSWERS.c.turn_id == bindparam("turn_id")),
)


def put(turn_id: int, round_number: int, body: str, request_id: str, at_ms: int, taint: str) -> Write:
    """Store a model's answer before it is used; touches no row if the round has one. `taint`: labels of the data that
    the turn had read by then."""
    return _PUT.write(turn_id=turn_id, round=round_number, body=body, request_id=request_id, at_ms=at_ms, taint=taint)


def of_turn(turn_id: int) -> Query:
    """The stored answers of a turn: `round`, `body`, `taint` (null: written before the column existed)."""
    return _OF_TURN.query(turn_id=turn_id)


TURN_MEMORY = table(
    "turn_memory",
    text("chat", primary_key=True),
    text("member", primary_key=True),
    text("state"),
    integer("until_ms"),
)

_KEEP = Statement("turn_memory.keep", upsert(TURN_MEMORY))
_GET = Statement(
    "turn_memory.get",
    select(TURN_MEMORY.c.state).where(
        TURN_MEMORY.c.chat == bindparam("chat"),
        TURN_MEMORY.c.member == bindparam("member"),
        TURN_MEMORY.c.until_ms > bindparam("now_ms"),
    ),
)


def keep(chat: str, member: str, state: str, until_ms: int) -> Write:
    """Store the member's state (JSON) after a turn until `until_ms`, replacing an earlier one."""
    return _KEEP.write(chat=chat, member=member, state=state, until_ms=until_ms)


def get(chat: str, member: str, now_ms: int) -> Query:
    """The member's `state` (JSON) if it has not expired, else no row."""
    return _GET.query(chat=chat, member=member, now_ms=now_ms)
