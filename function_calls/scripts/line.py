"""The line in which runs stand that reckon at once: one reckons at a time, and in between everybody else works."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable

Pause = Callable[[], Awaitable[None]]
"""Lets others of this process work."""


class Line:
    """Belongs to one event loop. However many runs reckon, others of the loop wait for one stretch of one run. Whoever
    has reckoned least comes next, so that short runs end soon behind endless ones."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._came = 0
        self.beside = asyncio.Lock()
        """Held by the one run that reckons in a thread: several at once would keep the loop from working."""

    async def turn(self, spent_seconds: float, pause: Pause) -> None:
        """Return when it is this run's turn, after a pause. `spent_seconds`: what it has reckoned in all. It is to
        reckon at once then, without waiting for anything."""
        await self._front(spent_seconds)
        try:
            await pause()
        finally:
            # The next one begins its pause when the loop has its way again: behind the stretch of this one.
            self._let_next()

    async def _front(self, spent_seconds: float) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._waiting, (spent_seconds, self._came, called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._let_next()
            raise

    def _let_next(self) -> None:
        while self._waiting:
            _, _, called = heapq.heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                return
        self._is_taken = False
