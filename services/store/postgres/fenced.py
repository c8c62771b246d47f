"""A store whose units fail once a later attempt of the running turn has begun, perhaps in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from services.store.port import Conflict, Store, Superseded, Write
from services.store.postgres import cluster


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt of a turn."""

    turn: int
    id: int
    """Unique; the number that every unit of the attempt checks."""
    is_over: bool = False
    """The end of the turn is stored: later units, for example of a summary, are not checked."""


_running: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


@contextmanager
def running(attempt: Attempt) -> Iterator[None]:
    """Check the units of the current task and of the tasks that it starts until the attempt is over."""
    token = _running.set(attempt)
    try:
        yield
    finally:
        attempt.is_over = True
        _running.reset(token)


def in_attempt() -> bool:
    """Whether the current task belongs to an attempt that is not over."""
    attempt = _running.get()
    return attempt is not None and not attempt.is_over


class FencedStore:
    """`inner`, with a check of the running attempt in the transaction of each unit."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.read, self.health, self.check, self.close = inner.read, inner.health, inner.check, inner.close

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        """As in Store; raises Superseded after a later attempt has begun."""
        attempt = _running.get()
        if attempt is None or attempt.is_over or not writes:
            return self.inner.commit(writes)
        guard = cluster.guard(attempt.turn, attempt.id)
        # Queued by this call, before the first await.
        done = asyncio.ensure_future(self.inner.commit([guard, *writes]))
        return self._counts(done, guard)

    async def _counts(self, done: asyncio.Future[list[int]], guard: Write) -> list[int]:
        try:
            return (await done)[1:]
        except Conflict as conflict:
            if str(conflict).startswith(guard.statement.name):
                raise Superseded("a later attempt of the turn has begun") from conflict
            raise

    def post(self, writes: Sequence[Write]) -> None:
        attempt = _running.get()
        if attempt is not None and not attempt.is_over:
            writes = [cluster.guard(attempt.turn, attempt.id), *writes]
        self.inner.post(writes)
