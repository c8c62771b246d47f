"""A store in which a commit takes as long as the test likes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from services.store.port import Query, Row, Store, StoreHealth, Write


class SlowCommit:
    """Passes everything on; the first unit with the statement `at` is done only when it is let go, and so are those
    after it, since units are done in order."""

    def __init__(self, at: str = "inbox.accept") -> None:
        self._at = at
        self._inner: Store | None = None
        self._begun = asyncio.Event()
        self._held: list[tuple[Sequence[Write], asyncio.Future[list[int]]]] = []
        self._is_free = False

    def under(self, store: Store) -> Store:
        """`store`, with slow commits."""
        self._inner = store
        return self

    async def holds_a_commit(self) -> None:
        """Return when a unit waits to be let go."""
        await self._begun.wait()

    def let_go(self) -> None:
        """All that waits is done now, in the order in which it was given."""
        self._is_free = True
        for writes, waiter in self._held:
            _pass_on(self._store.commit(writes), waiter)
        self._held.clear()

    @property
    def _store(self) -> Store:
        assert self._inner is not None
        return self._inner

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        is_slow = not self._is_free and any(write.statement.name == self._at for write in writes)
        if not is_slow and not self._held:
            return self._store.commit(writes)
        waiter: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._held.append((writes, waiter))
        self._begun.set()
        return waiter

    def post(self, writes: Sequence[Write]) -> None:
        self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        return await self._store.read(query)

    def health(self) -> StoreHealth:
        return self._store.health()

    async def check(self) -> None:
        await self._store.check()

    async def close(self) -> None:
        await self._store.close()


def _pass_on(unit: Awaitable[list[int]], waiter: asyncio.Future[list[int]]) -> None:
    """Let `waiter` end as `unit` does."""

    def ended(done: asyncio.Future[list[int]]) -> None:
        problem = done.exception()
        if waiter.done():
            return
        if problem is not None:
            waiter.set_exception(problem)
        else:
            waiter.set_result(done.result())

    asyncio.ensure_future(unit).add_done_callback(ended)
