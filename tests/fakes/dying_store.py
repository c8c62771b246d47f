"""A store that stops at its n-th unit, like the store of a killed process: nothing more is written, and waiting commits
never return. The test then starts the daemon again with the durable data."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Literal

from services.store.port import Query, Row, Store, Write


class DyingStore:
    """Passes on units to the wrapped store up to the unit `at` (counted from 1, including posts), and stops before or
    after that unit."""

    def __init__(self, at: int, when: Literal["before", "after"]) -> None:
        self._at = at
        self._when = when
        self._store: Store | None = None
        self.units = 0
        self.died = asyncio.Event()

    def around(self, store: Store) -> Store:
        """This store, wrapped around `store`."""
        self._store = store
        return self

    @property
    def _under(self) -> Store:
        assert self._store is not None
        return self._store

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        self.units += 1
        if self.units > self._at or (self.units == self._at and self._when == "before"):
            return self._die()
        unit = self._under.commit(writes)
        return self._dies_after(unit) if self.units == self._at else unit

    async def _dies_after(self, unit: Awaitable[list[int]]) -> list[int]:
        await unit
        return await self._die()

    def post(self, writes: Sequence[Write]) -> None:
        self.units += 1
        if self.units < self._at or (self.units == self._at and self._when == "after"):
            self._under.post(writes)
        if self.units == self._at:
            self.died.set()

    async def read(self, query: Query) -> list[Row]:
        if self.died.is_set():
            await self._die()
        return await self._under.read(query)

    async def close(self) -> None:
        await self._under.close()

    async def _die(self) -> list[int]:
        self.died.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")
