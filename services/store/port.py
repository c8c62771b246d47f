"""Port of the store: units of writes, and reads. Statements are defined in one file per aggregate, by pure functions
that return Writes and Queries."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy.sql import Executable

Row = Mapping[str, Any]
Values = Mapping[str, Any] | tuple[Any, ...]
"""Values for a statement's binds: by name, or as a tuple in the order of the statement's `takes`."""


class Statement:
    """One SQL statement, defined once with SQLAlchemy Core and compiled once per dialect by the store.

    Compared by identity; `name` is for logs and errors.
    """

    __slots__ = ("clause", "name", "takes")

    def __init__(self, name: str, clause: Executable, takes: Sequence[str] = ()) -> None:
        """`takes`: names of all its binds, in the order that `write_row` expects."""
        self.name = name
        self.clause = clause
        self.takes = tuple(takes)

    def write(self, **values: Any) -> Write:
        """A write with `values` for the binds (int, str, bytes or None) that may touch any number of rows."""
        return Write(self, values)

    def write_row(self, values: tuple[Any, ...], expect: int | None = None) -> Write:
        """A write with the values in the order of `takes`: faster than by name, for statements that every turn writes.
        `expect` as in `write_expecting`."""
        return Write(self, values, expect)

    def write_expecting(self, rows: int, **values: Any) -> Write:
        """Like `write`, but unless exactly `rows` rows are touched the unit is rolled back and Conflict is raised."""
        return Write(self, values, rows)

    def query(self, **values: Any) -> Query:
        """This statement as a read, with `values` for the binds."""
        return Query(self, values)


class Write(NamedTuple):
    """One statement of a unit with its values; `expect`: the number of rows it has to touch, None for any."""

    statement: Statement
    values: Values
    expect: int | None = None

    @property
    def named(self) -> dict[str, Any]:
        """The values by the names of their binds."""
        values = self.values
        return dict(zip(self.statement.takes, values, strict=True)) if isinstance(values, tuple) else dict(values)


class Query(NamedTuple):
    """A read: a statement with its values by name."""

    statement: Statement
    values: Mapping[str, Any]


class StoreError(Exception):
    """Base class of the store's errors; the subclass says what happened to the unit."""


class Conflict(StoreError):
    """A write touched another number of rows than expected; the unit was rolled back."""


class BadUnit(StoreError):
    """The database rejected a statement of this unit (an unsupported value, a constraint); the unit was rolled back."""


class StoreFull(StoreError):
    """The disk is full or read-only; the unit was rolled back. The store can be used again once there is space."""


class StoreBroken(StoreError):
    """A commit failed, so it is unknown what is durable. No more units are accepted, and the process has to end."""


class StoreDamaged(StoreBroken):
    """The database file is damaged. No more units are accepted, and the process has to end."""


class StoreFenced(StoreBroken):
    """Another process has taken a lock of this one. Nothing was written, and the process has to end."""


class Superseded(StoreError):
    """A later attempt of the turn has begun, perhaps in another process; the unit was rolled back."""


class StoreClosed(StoreError):
    """The store was closed before this unit."""


class StoreHealth(NamedTuple):
    """Whether the store can be used, as returned by Store.health."""

    problem: str | None
    """Why nothing can be written now; None if writing works."""
    checked_ms: int | None = None
    """When the last full integrity check passed, in milliseconds since 1970 UTC; None before the first."""


class Store(Protocol):
    """Data access for the whole program. Units are executed in the order of the calls of `commit` and `post`."""

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        """Execute all of `writes` or none; durable when it returns. Returns the number of rows that each write touched.
        The unit is queued by the call itself, before the first await; cancelling the awaiting task does not withdraw
        it. Raises the errors of this module: Conflict, BadUnit, StoreFull, StoreBroken and StoreClosed."""

    def post(self, writes: Sequence[Write]) -> None:
        """Queue a unit that becomes durable with the next commit or within 50 ms. Its errors are logged and counted."""

    async def read(self, query: Query) -> list[Row]:
        """The committed rows of `query`; a posted unit may not be visible yet. Rows are mappings by column name. Raises
        BadUnit, StoreClosed, or StoreError if the database cannot be read."""

    def health(self) -> StoreHealth:
        """Whether the store can be used now; takes a few microseconds."""

    async def check(self) -> None:
        """Maintenance, to be called every few seconds: retry failed steps, adapt to the free disk space, and start the
        daily integrity check in the background. Never raises."""

    async def close(self) -> None:
        """Reject new units, finish the queued ones, checkpoint and close."""
