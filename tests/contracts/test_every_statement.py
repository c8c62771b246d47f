"""Each statement of the data layer is defined once and runs on all dialects."""

from __future__ import annotations

import importlib
import pkgutil
import sqlite3
from contextlib import closing

import psycopg
import pytest
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

import services.store
import services.store.chats
import services.store.sqlite
import services.store.turns
from services.store.port import Statement
from services.store.postgres.connections import adapt
from services.store.schema import metadata
from services.store.statements import DialectName, compile_statement


def statements_of_the_data_layer() -> list[Statement]:
    """Constants of the modules of services/store."""
    packages = (services.store, services.store.chats, services.store.sqlite, services.store.turns)
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for package in packages
        for module in pkgutil.iter_modules(package.__path__)
        if not module.ispkg
    ]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Statement)]
    return sorted(set(found), key=lambda statement: statement.name)


STATEMENTS = statements_of_the_data_layer()


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_compiles_on_every_dialect(statement: Statement, dialect: DialectName) -> None:
    compiled = compile_statement(statement, dialect)
    assert compiled.sql.count({"sqlite": "?", "postgresql": "%s"}[dialect]) == len(compiled.order)


def test_sqlite_accepts_every_statement() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for table in metadata.sorted_tables:
            database.execute(str(CreateTable(table).compile(dialect=sqlite.dialect())))
            for index in table.indexes:
                database.execute(str(CreateIndex(index).compile(dialect=sqlite.dialect())))
        for statement in STATEMENTS:
            compiled = compile_statement(statement, "sqlite")
            database.execute(f"EXPLAIN {compiled.sql}", [None] * len(compiled.order))


def test_postgresql_accepts_every_statement(new_postgres_database: str) -> None:
    with psycopg.connect(new_postgres_database, autocommit=True) as database:
        adapt(database.adapters)
        for statement in STATEMENTS:
            compiled = compile_statement(statement, "postgresql")
            database.execute(f"EXPLAIN {compiled.sql}".encode(), [None] * len(compiled.order))


def test_names_of_statements_are_unique() -> None:
    names = [statement.name for statement in STATEMENTS]
    assert len(names) == len(set(names))
