"""Clocks, and deadlines for many short runs with one shared timer."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar


class Clock(Protocol):
    """Source of time: wall clock, monotonic clock and sleep."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""

    def now_ms(self) -> int:
        """The current time in milliseconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds that never decrease; only differences are meaningful."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` on this clock."""


class SystemClock:
    """Clock of the system, with asyncio's `sleep`."""

    # Called often in each turn, so these are the system functions without a wrapper.
    monotonic = staticmethod(time.monotonic)

    now = staticmethod(partial(datetime.now, UTC))

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class InstantClock:
    """A clock whose `sleep` takes no real time and advances it at once."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._now = start
        self._start = start

    def now(self) -> datetime:
        return self._now

    def now_ms(self) -> int:
        return round(self._now.timestamp() * 1000)

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=max(seconds, 0))
        await asyncio.sleep(0)


class VirtualClock:
    """A clock that only `advance` moves; sleeping tasks wake in order of their time."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def now_ms(self) -> int:
        return round(self.now().timestamp() * 1000)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Advance by `seconds`: wakes every task that is due, in order, each at its own time."""
        until = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._elapsed = until
        await self.settle()

    def is_slept(self, seconds: float) -> bool:
        """Whether a task is asleep that will wake exactly `seconds` from now on this clock."""
        return any(due == self._elapsed + seconds and not woken.done() for due, _, woken in self._sleepers)

    def jump(self, seconds: float) -> None:
        """Change the wall clock by `seconds` without waking sleepers or changing `monotonic()`, as if somebody had set
        it."""
        self._start += timedelta(seconds=seconds)

    async def settle(self) -> None:
        """Let ready tasks run until they wait for something else."""
        for _ in range(20):
            await asyncio.sleep(0)


Result = TypeVar("Result")


_RETRY_SECONDS = 5.0
"""Work that continues after its cancellation is cancelled again after this time."""


class Deadlines:
    """Cancels work that exceeds its deadline, accurate to `tick_seconds`. Nested runs and external cancellation are
    distinguished by each task's count of cancellations. Bound to the loop of its first run."""

    def __init__(self, clock: Clock, tick_seconds: float = 0.25, suspended_seconds: float = 2.0) -> None:
        """A tick that is `suspended_seconds` late means that the process was suspended, or its loop blocked."""
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._suspended_seconds = suspended_seconds
        self.suspensions = 0
        """Number of times that the process was suspended during a run."""
        self._running: dict[object, tuple[asyncio.Task[object], float | Callable[[], float]]] = {}
        """Active runs: task and deadline by key."""
        self._late: dict[object, int] = {}
        """Number of cancellations of late runs, by key."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Awaitable[Result], at: float | Callable[[], float]) -> Result:
        """The result of `work`. Raises TimeoutError, caused by the cancellation, if it is not done at the time `at` of
        the clock's `monotonic()`; a callable returns a time that may change. Must be called in a task, else
        RuntimeError."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("deadlines are for code that runs in a task")
        cancelled_before = task.cancelling()
        # A unique key: several runs may await the same future.
        key = object()
        self._running[key] = (task, at)
        if self._timer is None:
            self._timer = loop.call_later(self._tick_seconds, self._tick, loop)
        try:
            return await work
        except asyncio.CancelledError as cancelled:
            if key in self._late and task.cancelling() - self._late[key] <= cancelled_before:
                raise TimeoutError from cancelled
            raise
        finally:
            del self._running[key]
            if self._late and key in self._late:
                # Withdraw the cancellations in any case, or the task's next deadline would miscount.
                for _ in range(self._late.pop(key)):
                    task.uncancel()

    def expire(self) -> None:
        """Cancel all runs whose deadline has passed, again every five seconds while they continue. Called by the timer,
        and by tests with a virtual clock."""
        now = self._clock.monotonic()
        for key, (task, at) in list(self._running.items()):
            times = self._late.get(key, 0)
            due = at() if callable(at) else at
            if due + times * _RETRY_SECONDS <= now:
                self._late[key] = times + 1
                task.cancel()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None and loop.time() > self._timer.when() + self._suspended_seconds:
            self.suspensions += 1
        self._timer = None
        self.expire()
        if self._running:
            self._timer = loop.call_later(self._tick_seconds, self._tick, loop)
