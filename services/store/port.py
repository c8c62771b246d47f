"""The store as everybody else sees it: units of writes, and reads. Statements are defined by the aggregates beside it,
one file each, whose functions are pure and return Writes and Queries."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy.sql import Executable

Row = Mapping[str, Any]
Values = Mapping[str, Any] | tuple[Any, ...]
"""The values of a statement's binds, by their names; or in the order of the names that it `takes`."""


class Statement:
    """One SQL statement, defined once with SQLAlchemy Core and compiled once per dialect by the store.

    Compared by identity; `name` is for logs and errors.
    """

    __slots__ = ("clause", "name", "takes")

    def __init__(self, name: str, clause: Executable, takes: Sequence[str] = ()) -> None:
        """`takes`: the names of all its binds in the order in which `write_row` is given their values."""
        self.name = name
        self.clause = clause
        self.takes = tuple(takes)

    def write(self, **values: Any) -> Write:
        """This statement with `values` for its binds (int, str, bytes or None), touching any number of rows."""
        return Write(self, values)

    def write_row(self, values: tuple[Any, ...], expect: int | None = None) -> Write:
        """The same with the values in the order that it `takes`, for what is written in every turn: to name ten values
        and to look each of them up takes longer than all else that is done with them. `expect` as below."""
        return Write(self, values, expect)

    def write_expecting(self, rows: int, **values: Any) -> Write:
        """The same, but the whole unit is undone and Conflict raised unless exactly `rows` rows are touched."""
        return Write(self, values, rows)

    def query(self, **values: Any) -> Query:
        """This statement as a read."""
        return Query(self, values)


class Write(NamedTuple):
    """One statement of a unit."""

    statement: Statement
    values: Values
    expect: int | None = None


class Query(NamedTuple):
    """One read."""

    statement: Statement
    values: Mapping[str, Any]


class StoreError(Exception):
    """The base of all that the store raises."""


class Conflict(StoreError):
    """A write touched another number of rows than it expected; nothing of its unit was done."""


class BadUnit(StoreError):
    """The database refused a statement of this unit (a value it cannot hold, a constraint); nothing was done."""


class StoreFull(StoreError):
    """The disk is full or read-only; nothing of the unit was done. The store stays usable once there is room."""


class StoreBroken(StoreError):
    """A commit failed, so what is durable is unknown: no more units are taken, and the process has to end."""


class StoreDamaged(StoreBroken):
    """The database file is damaged; no more units are taken, and the process has to end."""


class StoreFenced(StoreBroken):
    """Another process has the right to write now; nothing of the unit was done, and the process has to end."""


class StoreClosed(StoreError):
    """The store was closed before this unit."""


class StoreHealth(NamedTuple):
    """Whether the store can be used."""

    problem: str | None
    """Why nothing can be written now; None while all is well."""
    checked_ms: int | None = None
    """The instant of the last full check for damage, which found none; None before the first one."""


class Store(Protocol):
    """The one data layer. Units are executed in the order in which `commit` and `post` were called."""

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        """All of `writes` or nothing; durable when it returns. Returns the number of rows each write touched.
        The unit has its place in the order as soon as this is called, before the first await.
        Cancelling the waiter does not take the unit back. Raises the errors of this module."""

    def post(self, writes: Sequence[Write]) -> None:
        """One unit, in order, durable with the next commit or within 50 ms. Its errors go to the log and a counter."""

    async def read(self, query: Query) -> list[Row]:
        """The rows of `query` as committed; a posted unit may not be seen yet."""

    def health(self) -> StoreHealth:
        """The state at this moment; takes some microseconds."""

    async def check(self) -> None:
        """Routine care, to be called every few seconds: retry what failed, adapt to the room on the disk, and start
        the check for damage that runs once a day beside everything else. Never raises."""

    async def close(self) -> None:
        """Refuse new units, finish the rest, checkpoint and close."""
