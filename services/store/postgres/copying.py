"""PostgreSQL databases as source and target of a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.sql import SQL, Identifier
from sqlalchemy import Select, Table

from services.store.all_tables import all_tables
from services.store.copying import Row
from services.store.port import Statement
from services.store.postgres.connections import address_of, connect_writer, place_of, refusal
from services.store.statements import compile_statement

_BATCH_ROWS = 2000


class PostgresCopy:
    """See CopyConnection."""

    keeps_nul = False

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self.place = place
        self._connection = connection

    def select(self, query: Select[Any]) -> Iterator[Row]:
        with self._connection.cursor(name="copy") as cursor:
            cursor.itersize = _BATCH_ROWS
            yield from cursor.execute(compile_statement(Statement("copy", query), "postgresql").sql)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        into = SQL("COPY {} ({}) FROM STDIN").format(Identifier(table.name), _names(table.columns.keys()))
        with self._connection.cursor() as cursor, cursor.copy(into) as copy:
            for row in rows:
                copy.write_row(row)


@contextmanager
def copy_connection(url: str, *, is_target: bool) -> Iterator[PostgresCopy]:
    """A snapshot of the database at `url`. With `is_target` nobody else can write until the context ends, and the
    changes are committed if it ends without an exception. Raises StoreError."""
    try:
        with closing(connect_writer(address_of(url))) as connection:
            # The other database may take long.
            connection.execute("SET idle_in_transaction_session_timeout = 0")
            connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, not is_target
            with connection.transaction():
                if is_target:
                    connection.execute(SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(_names(all_tables().tables)))
                yield PostgresCopy(connection, place_of(url))
    except psycopg.Error as error:
        raise refusal("PostgreSQL", error) from error


def _names(names: Iterable[str]) -> Any:
    return SQL(", ").join(map(Identifier, names))
