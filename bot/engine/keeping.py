"""A message that is being written down while its turn has begun already."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class Keeping:
    """Whether the unit that takes a message in was done. The turn may look and think meanwhile; what others would
    notice waits for it, or stands in a unit behind it that is undone with it."""

    __slots__ = ("_unit",)

    def __init__(self) -> None:
        self._unit: asyncio.Future[list[int]] | None = None

    def begin(self, unit: Awaitable[list[int]]) -> Awaitable[list[int]]:
        """`unit` is being written, and its first write takes the message in. What it gives, for whoever acknowledges
        the message: cancelling that wait takes nothing back."""
        self._unit = asyncio.ensure_future(unit)
        return asyncio.shield(self._unit)

    @property
    def is_over(self) -> bool:
        """Whether it was done, or never will be."""
        return self._unit is not None and self._unit.done()

    async def succeeds(self) -> bool:
        """Wait for its end: True when the message was taken in, False when it was known before or not kept."""
        assert self._unit is not None, "a turn begins after its message is given to the store"
        if not self._unit.done():
            await asyncio.wait([self._unit])
        return self._unit.exception() is None and self._unit.result()[0] > 0
