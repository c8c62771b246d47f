"""Beside a daemon on PostgreSQL: reports, and the few writes of operators, which wait their turn like all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from services.store.port import StoreError
from services.store.postgres.connections import adapt, address_of, place_of
from services.store.side import ReaderError
from services.store.statements import DialectName

_Row = dict[str, Any]


class PostgresSide:
    """A connection to the server."""

    dialect: DialectName = "postgresql"

    def __init__(self, connection: psycopg.Connection[_Row]) -> None:
        self._connection = connection

    @classmethod
    def open(cls, url: str, *, writes: bool) -> PostgresSide:
        """A connection to the database at `url`; it writes only where `writes` says so. Raises ReaderError."""
        try:
            connection = psycopg.connect(address_of(url), autocommit=True, row_factory=dict_row)
        except StoreError as error:
            raise ReaderError(str(error)) from None
        except psycopg.Error as error:
            raise ReaderError(f"{place_of(url)} cannot be opened: {error}") from None
        adapt(connection.adapters)
        connection.read_only = not writes
        return cls(connection)

    def rows(self, sql: str, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        try:
            return list(self._connection.execute(sql, values).fetchall())
        except psycopg.errors.UndefinedTable:
            raise ReaderError("the database has no tables of this program; start the daemon once") from None
        except psycopg.Error as error:
            raise ReaderError(f"the database cannot be read: {error}; start the daemon once") from None

    def transaction(self, steps: Sequence[tuple[str, Sequence[Any]]]) -> list[int]:
        try:
            with self._connection.transaction():
                return [self._connection.execute(sql, values).rowcount for sql, values in steps]
        except psycopg.Error as error:
            raise ReaderError(f"the database cannot be written: {error}") from None

    def close(self) -> None:
        self._connection.close()
