"""Beside a daemon on SQLite. The daemon alone holds the lock of the database, since two processes that both write much
would starve each other. One that writes once and ends is waited for like any reader that is slow: SQLite lets one write
at a time, and whoever wants to waits its turn."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from services.store.side import ReaderError
from services.store.statements import DialectName

_WAIT_SECONDS = 10.0


def checkpoint(path: Path) -> None:
    """Copy what the write-ahead log holds into the database `path`, as far as nobody has to wait. Raises
    sqlite3.Error."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


class SqliteSide:
    """A connection to the file."""

    dialect: DialectName = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, writes: bool) -> SqliteSide:
        """A connection to the database `path`, which has to be there; it writes only where `writes` says so. Raises
        ReaderError."""
        if not path.exists():
            raise ReaderError(f"there is no database {path}; start the daemon once, or name its settings with --config")
        mode = "rw" if writes else "ro"
        try:
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
            )
            if writes:
                connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            raise ReaderError(f"{path} cannot be opened: {error}") from None
        return cls(connection)

    def rows(self, sql: str, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        try:
            with closing(self._connection.execute(sql, values)) as cursor:
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            raise ReaderError(f"the database cannot be read: {error}; start the daemon once") from None

    def transaction(self, steps: Sequence[tuple[str, Sequence[Any]]]) -> list[int]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                counts = [self._connection.execute(sql, values).rowcount for sql, values in steps]
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise ReaderError(f"the database cannot be written: {error}") from None
        return counts

    def close(self) -> None:
        self._connection.close()
