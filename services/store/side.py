"""Access for operator commands next to a running daemon: reads, and short writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from services.store.port import Query, Write
from services.store.statements import DialectName, StatementCompiler


class ReaderError(Exception):
    """There is no database, or it cannot be used now."""


class SideConnection(Protocol):
    """One connection. All raise ReaderError."""

    @property
    def dialect(self) -> DialectName:
        """What its SQL is compiled for."""

    def rows(self, sql: str, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        """The rows of a query, by the names of their columns."""

    def transaction(self, steps: Sequence[tuple[str, Sequence[Any]]]) -> list[int]:
        """All steps or nothing, durable when it returns; the number of rows that each has touched."""

    def close(self) -> None:
        """Let go of the database."""


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
