"""A store that delays commits until the test releases them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from services.store.port import Query, Row, Store, StoreHealth, Write


class SlowCommit:
    """Passes on everything. The first unit with the statement `at` is delayed until it is released, and so are later
    units, because units keep their order."""

    def __init__(self, at: str = "inbox.accept") -> None:
        self._at = at
        self._inner: Store | None = None
        self._begun = asyncio.Event()
        self._held: list[tuple[Sequence[Write], asyncio.Future[list[int]]]] = []
        self._is_free = False

    def under(self, store: Store) -> Store:
        """This store, wrapped around `store`."""
        self._inner = store
        return self

    async def holds_a_commit(self) -> None:
        """Wait until a unit is delayed."""
        await self._begun.wait()

    def let_go(self) -> None:
        """Complete all delayed units, in their order."""
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
    """Complete `waiter` with the result of `unit`."""

    def ended(done: asyncio.Future[list[int]]) -> None:
        problem = done.exception()
        if waiter.done():
            return
        if problem is not None:
            waiter.set_exception(problem)
        else:
            waiter.set_result(done.result())

    asyncio.ensure_future(unit).add_done_callback(ended)
