"""Every table says what it holds about members; the statements run on both databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest
from sqlalchemy import ClauseElement
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from services.store.all_tables import all_tables
from services.store.member_data import MEMBER_TABLES, erasures, exports
from services.store.port import Query, Write
from services.store.postgres.connections import adapt
from services.store.statements import compile_statement

VALUES: dict[str, Any] = {
    "of_member": "irc:bot:ann",
    "in_chat": "",
    "this_turn": 7,
    "before_day": "2026-01-01",
    "native": "ann",
    "sender_json": '"sender":{"id":"ann",',
    "script_owner": '["member", "irc:bot:ann"',
}


def everything() -> list[Write | Query]:
    return [*(write for _, write in erasures(VALUES, only_said=False)), *exports(VALUES).values()]


def test_every_table_has_one_entry() -> None:
    assert sorted(entry.table for entry in MEMBER_TABLES) == sorted(all_tables().tables)


def test_an_entry_without_an_erasure_or_an_export_says_why() -> None:
    unexplained = [one.table for one in MEMBER_TABLES if not (((one.erase or one.said) and one.export) or one.why)]
    assert unexplained == []


@pytest.mark.parametrize("column", ["member", "sender", "author", "owner", "given_by", "set_by", "actor", "claimed_by"])
def test_a_table_with_a_column_of_members_is_erased_or_remains_for_a_reason(column: str) -> None:
    entries = {one.table: one for one in MEMBER_TABLES}
    having = [name for name, table in all_tables().tables.items() if column in table.c]
    assert having
    for name in having:
        assert entries[name].erase or entries[name].said or entries[name].why, name


def test_the_inbox_which_knows_the_turns_of_a_member_is_erased_last() -> None:
    erasing = [one.table for one in MEMBER_TABLES if one.erase or one.said]
    assert erasing[-1] == "inbox"


def test_sqlite_accepts_every_statement() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for table in all_tables().sorted_tables:
            database.execute(str(CreateTable(table).compile(dialect=sqlite.dialect())))
        for one in everything():
            assert isinstance(one.statement.clause, ClauseElement)
            compiled = compile_statement(one.statement, "sqlite")
            database.execute(compiled.sql, compiled.bind(one.values))


def test_postgresql_accepts_every_statement(new_postgres_database: str) -> None:
    with psycopg.connect(new_postgres_database, autocommit=True) as database:
        adapt(database.adapters)
        for one in everything():
            compiled = compile_statement(one.statement, "postgresql")
            database.execute(compiled.sql.encode(), compiled.bind(one.values))
