"""A store in which a commit takes as long as the test likes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from services.store.port import Query, Row, Store, StoreBroken, Write


class SlowCommit:
    """Passes everything on; the first unit with the statement `at` is done only when it is let go, and so are those
    after it, since units are done in order."""

    def __init__(self, at: str = "inbox.accept") -> None:
        self._at = at
        self._inner: Store | None = None
        self._begun = asyncio.Event()
        self._free = asyncio.Event()

    def under(self, store: Store) -> Store:
        """`store`, with slow commits."""
        self._inner = store
        return self

    async def holds_a_commit(self) -> None:
        """Return when a unit waits to be let go."""
        await self._begun.wait()

    def let_go(self) -> None:
        """All that waits is done now."""
        self._free.set()

    @property
    def _store(self) -> Store:
        assert self._inner is not None
        return self._inner

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        if self._free.is_set() or not any(write.statement.name == self._at for write in writes):
            return self._store.commit(writes)
        return self._later(writes)

    async def _later(self, writes: Sequence[Write]) -> list[int]:
        self._begun.set()
        await self._free.wait()
        return await self._store.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._store.read(query)

    @property
    def broken(self) -> StoreBroken | None:
        return self._store.broken

    async def close(self) -> None:
        await self._store.close()
