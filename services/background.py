"""Tasks that run in the background of a part of the program."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Background:
    """Tasks that end by themselves, or with the part that has started them."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        """Those that have not ended."""

    def start(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        """Run `work` in the background."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def idle(self) -> None:
        """Return when all have ended, also those that are started meanwhile."""
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def close(self) -> None:
        """Cancel all, and return when they have ended."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
