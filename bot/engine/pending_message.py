"""A message that is being written down while its turn has begun already."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from services.store.port import Store, StoreError
from services.store.turns import inbox


class Keeping:
    """Whether the unit that takes a message in was done. The turn may look and think meanwhile; what others would
    notice waits for it, or stands in a unit behind it that is undone with it."""

    __slots__ = ("_store", "_turn_id", "_unit")

    def __init__(self, store: Store, turn_id: int) -> None:
        self._store = store
        self._turn_id = turn_id
        self._unit: asyncio.Future[list[int]] | None = None

    def begin(self, unit: Awaitable[list[int]]) -> asyncio.Future[list[int]]:
        """`unit` is being written, and its first write takes the message in. What it gives, for whoever acknowledges
        the message."""
        self._unit = asyncio.ensure_future(unit)
        return self._unit

    async def succeeds(self) -> bool:
        """Wait for its end: True when the message was taken in, False when it was known before or not kept."""
        unit = self._unit
        assert unit is not None, "a turn begins after its message is given to the store"
        if not unit.done():
            await asyncio.wait([unit])
        if not unit.cancelled():
            return unit.exception() is None and unit.result()[0] > 0
        # Whoever was to acknowledge it waits no longer; the store does the unit all the same.
        try:
            await self._store.commit([inbox.waits(self._turn_id)])
        except StoreError:
            return False
        return True
