"""Leadership: only one of several daemons on a database receives, answers and sends at a time. It holds a lease and
renews it; the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from services.clock import Clock
from services.store.port import StoreError, StoreFenced, Write
from services.store.sqlite.lock import StoreInUse
from services.store.turns.leases import Held, Unreachable

_log = structlog.get_logger("leading")
_RENEWALS = 3
"""Renewals per lease time: two may fail."""
_START_SECONDS = 15.0
_PAUSES = 12
"""Minimum number of pauses per lease time; a failed renewal is retried after a pause."""
_LOOK_SECONDS = 1.0
"""How soon a waiting daemon notices that there is no leader."""


class Lease(Protocol):
    """The lease in the database. All methods raise Unreachable while the database cannot be reached."""

    async def take(self) -> int | Held:
        """Take the lease; returns its token, or the current holder. Raises StoreError for an incompatible database."""

    async def renew(self, token: int) -> bool:
        """Renew the lease; False if another process has taken over."""

    async def release(self) -> None:
        """Release the lease if this process holds it, even if it was not notified."""

    def guard(self, token: int) -> Write:
        """The first write of each transaction of this leadership, which fails after a takeover."""

    async def close(self) -> None:
        """Close the connection; the lease remains."""


class Lead(Protocol):
    """Whether this process leads; checked before changes outside the database."""

    def holds(self) -> bool:
        """Whether no other process can be the leader now."""

    async def sure(self) -> None:
        """Return when this process certainly leads. Raises StoreFenced if another one does."""


class Leadership(Lead, Protocol):
    """Leadership over the lifetime of the process."""

    @property
    def guard(self) -> Write | None:
        """The first write of each transaction of the store; None if none is needed."""

    async def try_to_begin(self) -> Held | None:
        """Become the leader and return None, or return the current leader. Raises StoreError."""

    async def begin(self, on_waiting: Callable[[Held], None]) -> None:
        """Return when this process leads. `on_waiting` is called for each new leader. Raises StoreError if the database
        cannot be reached at the beginning, after a grace period for one that is starting too; later it retries."""

    async def end(self) -> None:
        """Release the leadership at once for another process. Call it after the last write."""


class SoleLeader:
    """Leadership of a process with exclusive access to the database."""

    guard: Write | None = None

    def holds(self) -> bool:
        return True

    async def sure(self) -> None:
        return None

    async def try_to_begin(self) -> Held | None:
        return None

    async def begin(self, on_waiting: Callable[[Held], None]) -> None:
        return None

    async def end(self) -> None:
        return None


@dataclass(eq=False, repr=False)
class Leading:
    """Takes, renews and releases the lease."""

    lease: Lease
    clock: Clock
    seconds: float
    """Duration of the lease."""
    on_lost: Callable[[Exception], None] | None = None
    """Called once, on the event loop: with StoreFenced if another process leads, or with an unexpected error."""

    def __post_init__(self) -> None:
        self._pause_seconds = min(_LOOK_SECONDS, self.seconds / _PAUSES)
        self._token = 0
        self._since = (0.0, 0)
        self._lost: StoreFenced | None = None
        self._renewing = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def guard(self) -> Write | None:
        return self.lease.guard(self._token)

    async def try_to_begin(self) -> Held | None:
        asked = self._now()
        lease = await self.lease.take()
        if isinstance(lease, Held):
            return lease
        self._token, self._since = lease, asked
        self._keeper = asyncio.create_task(self._keep(), name="lease")
        self._keeper.add_done_callback(self._keeper_done)
        _log.info("leads", token=lease)
        return None

    async def begin(self, on_waiting: Callable[[Held], None]) -> None:
        until = self.clock.monotonic() + _START_SECONDS
        reported: str | None = None
        while True:
            try:
                held = await self.try_to_begin()
                if held is None:
                    return
                if held.holder != reported:
                    reported = held.holder
                    on_waiting(held)
            except Unreachable as problem:
                if reported is None and self.clock.monotonic() >= until:
                    raise
                _log.warning("lease_cannot_be_asked_for", problem=str(problem))
            await self.clock.sleep(self._pause_seconds)

    def holds(self) -> bool:
        """Whether the lease cannot have expired, by the monotonic clock and by the wall clock, which runs while the
        machine is suspended."""
        (at, at_ms), (now, now_ms) = self._since, self._now()
        return self._lost is None and max(now - at, (now_ms - at_ms) / 1000) < self.seconds

    async def sure(self) -> None:
        while not self.holds():
            async with self._renewing:
                if not self.holds():
                    await self._renew()

    async def end(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        try:
            await self.lease.release()
        except StoreError as problem:
            # Harmless: the lease expires.
            _log.warning("lease_not_released", problem=str(problem))
        finally:
            await self.lease.close()

    async def _keep(self) -> None:
        while self._lost is None:
            await self.clock.sleep(self.seconds / _RENEWALS)
            try:
                async with self._renewing:
                    await self._renew()
            except StoreFenced:
                return

    def _keeper_done(self, keeper: asyncio.Task[None]) -> None:
        """Report a crashed renewal: the process would answer until the lease expires, and then be silent forever."""
        error = None if keeper.cancelled() else keeper.exception()
        if not isinstance(error, Exception):
            return
        _log.critical("lease_cannot_be_kept", exc_info=error)
        if self.on_lost is not None:
            self.on_lost(error)

    async def _renew(self) -> None:
        """Renew the lease, and retry until the database has answered. Raises StoreFenced if the lease was lost
        before."""
        while True:
            if self._lost is not None:
                raise StoreFenced(*self._lost.args)
            asked = self._now()
            try:
                is_mine = await self.lease.renew(self._token)
            except Unreachable as problem:
                _log.warning("lease_not_renewed", problem=str(problem))
                await self.clock.sleep(self._pause_seconds)
                continue
            if is_mine:
                self._since = asked
                return
            self._lose()

    def _lose(self) -> None:
        self._lost = StoreFenced("another daemon has taken over: this one did not renew its lease in time")
        if self.on_lost is not None:
            self.on_lost(self._lost)

    def _now(self) -> tuple[float, int]:
        return self.clock.monotonic(), self.clock.now_ms()


async def lead_or_refuse(lead: Leadership) -> None:
    """Become the leader, for a command that does not wait. Raises StoreError; StoreInUse if another process leads."""
    held = await lead.try_to_begin()
    if held is not None:
        raise StoreInUse(f"the database is in use by {held.holder}, which leads; stop it first")
