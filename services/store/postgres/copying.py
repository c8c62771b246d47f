"""PostgreSQL databases as source and target of a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel, sql
from sqlalchemy import Table

from services.store.all_tables import all_tables
from services.store.copying import Row, TableSql
from services.store.postgres.connections import address_of, connect_writer, place_of, refusal

_BATCH_ROWS = 2000


class PostgresCopy:
    """See CopyConnection."""

    holds_nul = False

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self.place = place
        self._connection = connection

    def count(self, table: Table) -> int:
        with _errors(f"{self.place}: {table.name}"):
            (count,) = self._connection.execute(TableSql.of(table, "postgresql").size).fetchone() or (0,)
            return int(count)

    def rows(self, table: Table) -> Iterator[Row]:
        with _errors(f"{self.place}: {table.name}"), self._connection.cursor(name="rows") as cursor:
            cursor.itersize = _BATCH_ROWS
            yield from cursor.execute(TableSql.of(table, "postgresql").rows)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
        into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)
        with _errors(f"{self.place}: {table.name}"), self._connection.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)


@contextmanager
def copy_source(url: str) -> Iterator[PostgresCopy]:
    """A snapshot of the database at `url`. Raises StoreError."""
    with _connected(url) as connection:
        connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
        with connection.transaction():
            yield PostgresCopy(connection, place_of(url))


@contextmanager
def copy_target(url: str) -> Iterator[PostgresCopy]:
    """One transaction on the database at `url`, which has all tables. It is committed when the context ends without an
    exception; until then nobody else can write. Raises StoreError."""
    with _connected(url) as connection, connection.transaction():
        names = sql.SQL(", ").join(sql.Identifier(name) for name in all_tables().tables)
        connection.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))
        yield PostgresCopy(connection, place_of(url))


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with _errors(place_of(url)), closing(connect_writer(address_of(url))) as connection:
        # The other database may take long.
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        yield connection


@contextmanager
def _errors(name: str) -> Iterator[None]:
    """Context manager that converts the driver's errors to StoreError, without the server's message, which may quote
    values."""
    try:
        yield
    except psycopg.Error as error:
        raise refusal(name, error) from error
