"""Writes beside a daemon that may be running: a few rows in one short transaction, for commands of operators. Belongs
only to tables which the daemon reads again when their counter in `changes` has risen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from services.store.port import Query, Write
from services.store.side import SideConnection
from services.store.statements import StatementCompiler


class Beside:
    """Reads, and writes seldom, on a connection that it closes at its end."""

    def __init__(self, connection: SideConnection) -> None:
        self._connection = connection
        self._compiler = StatementCompiler(connection.dialect)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, query: Query) -> list[Mapping[str, Any]]:
        """The rows of `query`. Raises ReaderError."""
        compiled = self._compiler.compiled(query.statement)
        return self._connection.rows(compiled.sql, compiled.bind(query.values))

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """All of `writes` or nothing, durable when it returns; the number of rows each has touched. Raises
        ReaderError."""
        steps = [(self._compiler.compiled(one.statement), one.values) for one in writes]
        return self._connection.transaction([(one.sql, one.bind(values)) for one, values in steps])
