"""Time as a value: everything that asks for the time or waits takes a Clock."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol


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
