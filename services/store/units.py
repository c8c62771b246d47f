"""What an engine of the store is given to write: units, made of steps that are ready for its driver."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from services.store.port import StoreBroken, StoreError
from services.store.statements import CompiledStatement

Step = tuple[CompiledStatement, tuple[Any, ...], int | None]
"""One write of a unit, ready for the driver: the statement, its values in order, and how many rows it has to touch. A
plain tuple, since each turn makes ten."""


class Unit:
    """What is done as a whole or not at all. `waiter` is None where nobody waits."""

    __slots__ = ("outcome", "steps", "waiter")

    def __init__(self, steps: Sequence[Step], waiter: asyncio.Future[list[int]] | None) -> None:
        self.steps = steps
        self.waiter = waiter
        self.outcome: list[int] | StoreError | None = None
        """The row counts, or why it was not done. None until that is known."""

    @property
    def names(self) -> str:
        """What it is about, for errors."""
        return ", ".join(statement.name for statement, _, _ in self.steps)


class Committer(Protocol):
    """Executes groups of units on one connection. Belongs to one thread at a time."""

    commits: int
    """Transactions committed so far."""
    broken: StoreBroken | None
    """Why nothing is taken any more."""

    def run(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Set the outcome of every unit. A unit that fails is undone and leaves no trace in the others. Returns the
        units, in their order, of which nothing was done because the database cannot be reached now."""

    def finish(self) -> None:
        """What is done after the last group; never raises."""

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
