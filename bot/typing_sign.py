"""Shows that an answer is on its way, unless it is there in a moment; takes the sign down when the turn is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

SHOWN_AFTER_SECONDS = 0.4
WORKING = "…"

Show = Callable[[str], Awaitable[None]]


class TypingSign:
    """The sign of one turn. Best effort: the turn never waits for it."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(SHOWN_AFTER_SECONDS, self._set, WORKING)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_up = False

    async def say(self, text: str) -> None:
        """Show `text` instead of the plain sign."""
        self._timer.cancel()
        self._set(text)

    def take_down(self) -> None:
        """The turn is over."""
        self._timer.cancel()
        if self._is_up:
            self._set("")

    def _set(self, text: str) -> None:
        self._is_up = bool(text)
        task = self._loop.create_task(self._shown(text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shown(self, text: str) -> None:
        await self._show(text)
