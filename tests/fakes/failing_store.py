"""A store that crashes at its n-th unit, to test the durable state between two units."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NoReturn

from services.store.port import Query, Row, Store, Write


class Crashed(BaseException):
    """The process has crashed. No Exception, so that the code under test does not handle it."""


class FailingStore:
    """Passes on units to `store` and crashes at the unit `at` (counted from 1, including posts): before the unit is
    given to `store`, or after it is done (a post: after it was given). Then nothing is passed on.

    `crash` ends the process (`kill_process`) or raises (`raise_crashed`, which leaves `store` open for the test).
    """

    def __init__(
        self,
        store: Store,
        at: int,
        when: Literal["before", "after"],
        crash: Callable[[], NoReturn],
    ) -> None:
        self._store = store
        self._at = at
        self._when = when
        self._crash = crash
        self.units = 0
        """Number of units so far; without a crash, the total number to test."""

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        if self._crashes_at_this_unit():
            waiter = self._store.commit(writes)
            return self._crash_after(waiter)
        return self._store.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        crashes = self._crashes_at_this_unit()
        self._store.post(writes)
        if crashes:
            self._crash()

    async def read(self, query: Query) -> list[Row]:
        if self.units > self._at or (self.units == self._at and self._when == "before"):
            self._crash()
        return await self._store.read(query)

    async def close(self) -> None:
        await self._store.close()

    def _crashes_at_this_unit(self) -> bool:
        """Whether to crash after this unit; crashes immediately if it has to be before."""
        self.units += 1
        if self.units > self._at or (self.units == self._at and self._when == "before"):
            self._crash()
        return self.units == self._at

    async def _crash_after(self, waiter: Awaitable[list[int]]) -> list[int]:
        await waiter
        self._crash()


def raise_crashed() -> NoReturn:
    """Crash with an exception in the test process."""
    raise Crashed


def kill_process() -> NoReturn:
    """Crash like kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("survived SIGKILL")
