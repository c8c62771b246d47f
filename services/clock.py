"""Clocks as values, and deadlines for many short runs with one shared ticker."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """The instant, aware, in UTC."""

    def now_ms(self) -> int:
        """The instant in milliseconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""


class SystemClock:
    """The machine's own clock."""

    # Asked many times in each turn: the machine's own functions, and no call of ours around them.
    monotonic = staticmethod(time.monotonic)

    now = staticmethod(partial(datetime.now, UTC))

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class InstantClock:
    """A clock on which waiting takes no time: who sleeps finds it that much later at once."""

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
    """A clock that stands still until `advance` moves it; sleepers wake in order of their time."""

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
        """Let `seconds` pass: wakes every sleeper that is due, one after another, each at its own time."""
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
        """Whether somebody has just begun to sleep for so many seconds."""
        return any(due == self._elapsed + seconds and not woken.done() for due, _, woken in self._sleepers)

    def jump(self, seconds: float) -> None:
        """Set the clock on the wall ahead, or back, as if somebody had: no time passes."""
        self._start += timedelta(seconds=seconds)

    async def settle(self) -> None:
        """Let tasks that are ready run until they wait for something else."""
        for _ in range(20):
            await asyncio.sleep(0)


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
