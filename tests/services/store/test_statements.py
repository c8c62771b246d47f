"""Compilation of statements to SQL text with positional parameters."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Boolean, bindparam, delete, insert, select, update
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import Executable

from services.store.port import Statement
from services.store.statements import DialectName, NotCompilable, compile_statement
from tests.contracts.store_engines import ADD, BUDGETS, NOTES, create_tables

DIALECTS: tuple[DialectName, ...] = ("sqlite", "postgresql")


def one_line(sql: str) -> str:
    return " ".join(sql.split())


def test_named_binds_become_positions_and_constants_stand_in_the_text() -> None:
    statement = Statement(
        "spend",
        update(BUDGETS)
        .where(BUDGETS.c.id == bindparam("budget"), BUDGETS.c.left >= bindparam("amount"), BUDGETS.c.left != 7)
        .values(left=BUDGETS.c.left - bindparam("amount")),
    )
    compiled = compile_statement(statement, "sqlite")
    assert one_line(compiled.sql) == (
        'UPDATE budgets SET "left"=(budgets."left" - ?) '
        'WHERE budgets.id = ? AND budgets."left" >= ? AND budgets."left" != 7'
    )
    assert compiled.order == ("amount", "budget", "amount")
    assert compiled.bind({"budget": 1, "amount": 5}) == (5, 1, 5)


def test_postgresql_gets_typed_placeholders_and_escaped_percent_signs() -> None:
    statement = Statement("say", insert(NOTES).values(id=bindparam("id"), body="100 % o'clock", place=None))
    compiled = compile_statement(statement, "postgresql")
    assert one_line(compiled.sql) == (
        "INSERT INTO notes (id, body, place) VALUES (%s::BIGINT, '100 %% o''clock', NULL)"
    )
    assert compiled.bind({"id": 3}) == (3,)


def test_a_value_given_with_a_bind_is_its_type_and_no_constant() -> None:
    compiled = compile_statement(Statement("page", select(NOTES.c.id).where(bindparam("all", 0) == 1)), "sqlite")
    assert compiled.order == ("all",)


def test_a_constant_lets_sqlite_use_a_partial_index(tmp_path: Path) -> None:
    create_tables(tmp_path / "store.db")
    open_notes = Statement("open", select(NOTES.c.id).where(NOTES.c.body == "open").order_by(NOTES.c.place))
    with closing(sqlite3.connect(tmp_path / "store.db")) as database:
        database.execute("CREATE INDEX open_notes ON notes (place) WHERE body = 'open'")
        plan = database.execute(f"EXPLAIN QUERY PLAN {compile_statement(open_notes, 'sqlite').sql}").fetchall()
    assert "open_notes" in str(plan)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        (select(NOTES.c.id).where(NOTES.c.id.in_(bindparam("ids", expanding=True))), "value of 'ids'"),
        (select(NOTES.c.id).limit(bindparam("rows", literal_execute=True)), "value of 'rows'"),
        (CreateTable(NOTES), "migrations"),
    ],
    ids=["list", "literal", "schema"],
)
def test_what_cannot_be_compiled_once_is_refused(clause: Executable, reason: str, dialect: DialectName) -> None:
    with pytest.raises(NotCompilable, match=reason):
        compile_statement(Statement("odd", clause), dialect)


def test_a_bind_that_would_be_converted_is_refused() -> None:
    statement = Statement("flag", select(NOTES.c.id).where(bindparam("flag", type_=Boolean()).is_(None)))
    with pytest.raises(NotCompilable, match="'flag' is converted"):
        compile_statement(statement, "sqlite")


def test_a_statement_is_compiled_once() -> None:
    assert compile_statement(ADD, "sqlite") is compile_statement(ADD, "sqlite")


@pytest.mark.parametrize(
    ("values", "reason"),
    [({"id": 1}, "no value for 'body'"), ({"id": 1, "body": "x", "mood": 2}, "does not take mood")],
    ids=["missing", "too many"],
)
def test_values_have_to_be_those_that_the_statement_names(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        compile_statement(ADD, "sqlite").bind(values)


def test_a_row_is_given_in_the_order_that_the_statement_takes() -> None:
    spend = (
        update(BUDGETS)
        .where(BUDGETS.c.id == bindparam("budget"), BUDGETS.c.left >= bindparam("amount"))
        .values(left=BUDGETS.c.left - bindparam("amount"))
    )
    compiled = compile_statement(Statement("spend", spend, takes=("budget", "amount")), "sqlite")
    assert compiled.bind((1, 5)) == (5, 1, 5)
    keep = update(BUDGETS).where(BUDGETS.c.id == bindparam("budget")).values(left=bindparam("amount"))
    assert compile_statement(Statement("keep", keep, takes=("amount", "budget")), "sqlite").bind((5, 1)) == (5, 1)
    forget = delete(BUDGETS).where(BUDGETS.c.id == bindparam("budget"))
    assert compile_statement(Statement("forget", forget, takes=("budget",)), "sqlite").bind((1,)) == (1,)


def test_a_row_has_to_have_as_many_values_as_the_statement_takes() -> None:
    keep = update(BUDGETS).where(BUDGETS.c.id == bindparam("budget")).values(left=bindparam("amount"))
    compiled = compile_statement(Statement("keep", keep, takes=("amount", "budget")), "sqlite")
    with pytest.raises(ValueError, match="takes 2 values in a row, not 1"):
        compiled.bind((5,))


@pytest.mark.parametrize("row", [(), (1,), (1, "x")], ids=len)
def test_a_statement_that_takes_names_takes_no_row(row: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match="by name"):
        compile_statement(ADD, "sqlite").bind(row)


@pytest.mark.parametrize(
    "takes",
    [("budget",), ("budget", "amount", "mood"), ("budget", "amount", "amount")],
    ids=["missing", "too many", "twice"],
)
def test_a_statement_takes_all_its_binds_and_no_others(takes: tuple[str, ...]) -> None:
    keep = update(BUDGETS).where(BUDGETS.c.id == bindparam("budget")).values(left=bindparam("amount"))
    with pytest.raises(NotCompilable, match="keep: takes"):
        compile_statement(Statement("keep", keep, takes), "sqlite")
