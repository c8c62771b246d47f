"""Deadlines for many short runs at a fraction of the price of a timer each: one table, one ticker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from services.clock import Clock

Result = TypeVar("Result")


_AGAIN_SECONDS = 5.0
"""What goes on in spite of its cancellation is cancelled again after so long."""


class Deadlines:
    """Cancels what runs over its time, to within `tick_seconds`. Nested runs and cancellation from outside are told
    apart by the count of cancellations that asyncio keeps for each task. Belongs to the loop it first runs in."""

    def __init__(self, clock: Clock, tick_seconds: float = 0.25) -> None:
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._running: dict[object, tuple[asyncio.Task[object], float]] = {}
        """What runs, in which task, and until when."""
        self._late: dict[object, int] = {}
        """How often what is over its time was cancelled."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Awaitable[Result], at: float) -> Result:
        """What `work` gives, or TimeoutError, caused by the cancellation, when it is not done at the instant `at` of
        the clock's `monotonic()`."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("deadlines are for code that runs in a task")
        cancelled_before = task.cancelling()
        # A key of its own: the same future may be waited for by several.
        key = object()
        self._running[key] = (task, at)
        if self._timer is None:
            self._timer = loop.call_later(self._tick_seconds, self._tick)
        try:
            return await work
        except asyncio.CancelledError as cancelled:
            if key in self._late and task.cancelling() - self._late[key] <= cancelled_before:
                raise TimeoutError from cancelled
            raise
        finally:
            del self._running[key]
            if self._late and key in self._late:
                # Taken back however the work ended, or the next deadline of this task would not know its own.
                for _ in range(self._late.pop(key)):
                    task.uncancel()

    def expire(self) -> None:
        """Cancel everything that is over its time now. The ticker calls it; tests with a virtual clock do too."""
        now = self._clock.monotonic()
        for key, (task, at) in list(self._running.items()):
            times = self._late.get(key, 0)
            if at + times * _AGAIN_SECONDS <= now:
                self._late[key] = times + 1
                task.cancel()

    def _tick(self) -> None:
        self._timer = None
        self.expire()
        if self._running and self._loop is not None:
            self._timer = self._loop.call_later(self._tick_seconds, self._tick)
