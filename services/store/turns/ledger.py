"""Ledger of all runs of functions; an effect's intent is recorded before it runs and its result afterwards."""

from __future__ import annotations

from sqlalchemy import bindparam, select, update

from services.store.port import Query, Statement, Write
from services.store.schema import insert_new, integer, table, text

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

_STARTED = Statement("ledger.started", insert_new(LEDGER, "turn_id", "key"), takes=LEDGER.columns.keys())
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
    takes=("end_ms", "new_code", "new_result", "new_taint", "of_turn", "row_key"),
)
_OF_TURN = Statement(
    "ledger.of_turn",
    select(*(LEDGER.c[name] for name in ("key", "function", "arguments", "effect", "result", "code", "taint")))
    .where(LEDGER.c.turn_id == bindparam("turn_id"))
    .order_by(LEDGER.c.at_ms, LEDGER.c.key),
)


def started(
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
    """Record a run that is about to start (the intent of an effect), or with `ended_ms` and `code` a read that has
    ended. Touches no row if an earlier attempt recorded the run. `taint`: labels of the data that the turn has read so
    far."""
    run = (turn_id, key, chat, member, function, arguments, effect, path, round_number, at_ms)
    return _STARTED.write_row((*run, ended_ms, code, None, taint))


def result(turn_id: int, key: str, code: str, body: str | None, at_ms: int, taint: str) -> Write:
    """Record how a run ended. `code` is `ok`, `asked` or an ErrorCode; `body`, the stored result, is None for a read.
    Touches no row if the run was not recorded. `taint` as above."""
    return _RESULT.write_row((at_ms, code, body, taint, turn_id, key))


def of_turn(turn_id: int) -> Query:
    """The runs of a turn in order: `key`, `function`, `arguments`, `effect`, `result` (null: outcome unknown), `code`,
    `taint` (null: written before the column existed)."""
    return _OF_TURN.query(turn_id=turn_id)
