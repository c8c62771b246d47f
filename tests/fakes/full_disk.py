"""A store with a disk that can be full."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from services.store.port import Query, Row, Store, StoreFull, StoreHealth, Write


class FullDisk:
    """Passes on everything; while `is_full`, commits fail and posts are lost."""

    def __init__(self) -> None:
        self._inner: Store | None = None
        self.is_full = False
        self.refused = 0
        """Number of refused units."""

    def under(self, store: Store) -> Store:
        """This store, wrapped around `store`."""
        self._inner = store
        return self

    @property
    def _store(self) -> Store:
        assert self._inner is not None
        return self._inner

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        if not self.is_full:
            return self._store.commit(writes)
        self.refused += 1
        refused: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        refused.set_exception(StoreFull("the disk is full"))
        return refused

    def post(self, writes: Sequence[Write]) -> None:
        if self.is_full:
            self.refused += 1
        else:
            self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._store.read(query)

    def health(self) -> StoreHealth:
        return StoreHealth("the disk is full") if self.is_full else self._store.health()

    async def check(self) -> None:
        await self._store.check()

    async def close(self) -> None:
        await self._store.close()
