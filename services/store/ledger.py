"""The ledger: every run of a function; for an effect its intent before and its result after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, exists, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.inbox import INBOX, WAITING
from services.store.port import Query, Statement, Write
from services.store.schema import integer, table, text

LEDGER = table(
    "ledger",
    integer("turn_id", primary_key=True),
    text("key", primary_key=True),
    text("chat"),
    text("member"),
    text("function"),
    text("arguments"),
    text("effect"),
    text("path"),
    integer("round"),
    integer("at_ms"),
    integer("ended_ms", nullable=True),
    text("code"),
    text("result", nullable=True),
    text("taint", nullable=True),
    rows_in_key_order=True,
)

_BINDS = {column.name: bindparam(column.name, type_=column.type) for column in LEDGER.columns}
_ENDS = ("code", "ended_ms")
_RUN = {name: bind for name, bind in _BINDS.items() if name not in (*_ENDS, "result")}
_BEGUN: dict[str, ColumnElement[Any]] = {**_RUN, "code": literal_column("''")}


def _once(name: str, values: Mapping[str, ColumnElement[Any]]) -> Statement:
    return Statement(name, insert(LEDGER).values(values).on_conflict_do_nothing(index_elements=["turn_id", "key"]))


_INTEND = _once("ledger.intend", _BEGUN)
_NOTE = _once("ledger.note", {**_RUN, **{name: _BINDS[name] for name in _ENDS}})
_OF_WAITING = select(*_BEGUN.values()).where(exists().where(INBOX.c.id == _BINDS["turn_id"], INBOX.c.reason == WAITING))
_INTEND_OF_WAITING = Statement("ledger.intend_of_waiting", insert(LEDGER).from_select(list(_BEGUN), _OF_WAITING))
_RESULT = Statement(
    "ledger.result",
    update(LEDGER)
    .where(LEDGER.c.turn_id == bindparam("of_turn"), LEDGER.c.key == bindparam("row_key"))
    .values(
        ended_ms=bindparam("end_ms"),
        code=bindparam("new_code"),
        result=bindparam("new_result"),
        taint=bindparam("new_taint"),
    ),
)
_OF_TURN = Statement(
    "ledger.of_turn",
    select(LEDGER.c.key, LEDGER.c.function, LEDGER.c.result, LEDGER.c.code, LEDGER.c.taint).where(
        LEDGER.c.turn_id == bindparam("turn_id")
    ),
)
_FORGET = Statement("ledger.forget", delete(LEDGER).where(LEDGER.c.turn_id < bindparam("before_id")))


def begun(
    *,
    key: str,
    turn_id: int,
    chat: str,
    member: str,
    function: str,
    arguments: str,
    effect: str,
    path: str,
    round_number: int,
    at_ms: int,
    taint: str,
    code: str = "",
    ended_ms: int | None = None,
) -> Write:
    """A run is about to happen: the intent of an effect. Nothing when this run was noted on an earlier attempt. A read
    is noted once, when it has ended at `ended_ms` with `code`, unless it costs something. `taint`: what the turn has
    read by then."""
    values = {
        "turn_id": turn_id,
        "key": key,
        "chat": chat,
        "member": member,
        "function": function,
        "arguments": arguments,
        "effect": effect,
        "path": path,
        "round": round_number,
        "at_ms": at_ms,
        "taint": taint,
    }
    if ended_ms is None:
        return _INTEND.write_from(values)
    values["code"], values["ended_ms"] = code, ended_ms
    return _NOTE.write_from(values)


def of_waiting(begun: Write) -> Write | None:
    """The intent `begun` of a turn that has noted nothing yet; the unit is undone when that turn is not there, or over.
    None where it is none."""
    return _INTEND_OF_WAITING.write_from(begun.values, expect=1) if begun.statement is _INTEND else None


def result(turn_id: int, key: str, code: str, body: str | None, at_ms: int, taint: str) -> Write:
    """How a run ended; `code` is `ok`, `asked` or an ErrorCode, `body` is None for a read. `taint`: what the turn has
    read by then."""
    return _RESULT.write(of_turn=turn_id, row_key=key, end_ms=at_ms, new_code=code, new_result=body, new_taint=taint)


def of_turn(turn_id: int) -> Query:
    """The runs of a turn: `key`, `function`, `result` (null: its end is unknown), `code`, `taint` (null:
    written before it was kept)."""
    return _OF_TURN.query(turn_id=turn_id)


def forget(before_id: int) -> Write:
    """Drop runs that belong to turns older than that id."""
    return _FORGET.write(before_id=before_id)
