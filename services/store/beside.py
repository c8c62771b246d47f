"""Writes beside a daemon that may be running: a few rows in one short transaction, for commands of operators.

The daemon alone holds the lock of the database, since two processes that both write much would starve each other. One
that writes once and ends is waited for like any reader that is slow: SQLite lets one write at a time, and whoever wants
to waits its turn. Belongs only to tables which the daemon reads again when their counter in `changes` has risen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.store.port import Query, Write
from services.store.reader import ReaderError
from services.store.statements import StatementCompiler

_WAIT_SECONDS = 10.0


class Beside:
    """A connection that reads, and writes seldom."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._compiler = StatementCompiler("sqlite")

    @classmethod
    def open(cls, path: Path) -> Beside:
        """A connection to the database `path`, which has to be there. Raises ReaderError."""
        if not path.exists():
            raise ReaderError(f"there is no database {path}; start the daemon once, or name its settings with --config")
        try:
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
            )
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error as error:
            raise ReaderError(f"{path} cannot be opened: {error}") from None
        return cls(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, query: Query) -> list[Mapping[str, Any]]:
        """The rows of `query`. Raises ReaderError."""
        compiled = self._compiler.compiled(query.statement)
        try:
            with closing(self._connection.execute(compiled.sql, compiled.bind(query.values))) as cursor:
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            raise ReaderError(f"the database cannot be read: {error}; start the daemon once") from None

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """All of `writes` or nothing, durable when it returns; the number of rows each has touched. Raises
        ReaderError."""
        steps = [(self._compiler.compiled(one.statement), one.values) for one in writes]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                counts = [self._connection.execute(one.sql, one.bind(values)).rowcount for one, values in steps]
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise ReaderError(f"the database cannot be written: {error}") from None
        return counts
