"""How many processes run beside each other."""

from __future__ import annotations

import asyncio
from collections import deque


class ProcessPlaces:
    """So many places, given to who has waited longest; their number may change while they are taken."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def use(self, at_once: int) -> None:
        """From now on there are so many; who has a place keeps it."""
        self._at_once = at_once
        self._give()

    async def __aenter__(self) -> None:
        """Return when there is a place."""
        if self._taken < self._at_once and not self._waiting:
            self._taken += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given in the same moment.
                self._free()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free()

    def _free(self) -> None:
        self._taken -= 1
        self._give()

    def _give(self) -> None:
        while self._waiting and self._taken < self._at_once:
            place = self._waiting.popleft()
            if not place.done():
                self._taken += 1
                place.set_result(None)
