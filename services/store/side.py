"""A connection of its own beside a daemon that may be running: for commands of operators, which read much, write seldom
and end soon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from services.store.statements import DialectName


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
