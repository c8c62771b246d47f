"""Leading: of all daemons on one database one at a time receives, answers and sends. It holds a lease, and renews it
while it lives; the others stand by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from services.clock import Clock
from services.store.port import StoreError, StoreFenced, Write
from services.store.sqlite.lock import StoreInUse
from services.store.turns.leases import Held, Unreachable

_log = structlog.get_logger("leading")
_RENEWALS = 3
"""How often a lease is renewed in its time: two may fail."""
_START_SECONDS = 15.0
_PAUSES = 12
"""How many pauses a lease has room for, at least: one that fails to be renewed is asked for again after such a one."""
_LOOK_SECONDS = 1.0
"""How soon a daemon that stands by notices that nobody leads any more."""


class Lease(Protocol):
    """The lease as the database keeps it. All raise Unreachable while the database cannot be asked."""

    async def take(self) -> int | Held:
        """Lead; returns the token of this leadership. Or who leads. Raises StoreError for a database that is not
        ours."""

    async def renew(self, token: int) -> bool:
        """Lead on; False when another one has taken over."""

    async def release(self) -> None:
        """Lead no more, if this one leads; also where it was not told that it does."""

    def guard(self, token: int) -> Write:
        """What each transaction of this leadership has to begin with."""

    async def close(self) -> None:
        """Let go of the connection; the lease stays."""


class Lead(Protocol):
    """Whether this process leads, as everybody asks who changes something outside the database."""

    def holds(self) -> bool:
        """Whether nobody else can lead at this moment."""

    async def sure(self) -> None:
        """Return as soon as this process leads for certain. Raises StoreFenced when another one does."""


class Leadership(Lead, Protocol):
    """The same for whoever runs the process: from its beginning to its end."""

    @property
    def guard(self) -> Write | None:
        """For the writer of the store: what each of its transactions begins with. None where nothing has to."""

    async def try_to_begin(self) -> Held | None:
        """Lead from now on, and return None; or return who leads. Raises StoreError."""

    async def begin(self, stands_by: Callable[[Held], None]) -> None:
        """Return when this process leads. `stands_by` is told whenever another one leads than before. Raises StoreError
        when the database cannot be asked at the beginning, after a moment for one that starts together with this
        process; later it is waited for."""

    async def end(self) -> None:
        """Lead no more, so that another one can at once: call it when nothing is written any more."""


class Alone:
    """The lead of a process that has the database for itself."""

    guard: Write | None = None

    def holds(self) -> bool:
        return True

    async def sure(self) -> None:
        return None

    async def try_to_begin(self) -> Held | None:
        return None

    async def begin(self, stands_by: Callable[[Held], None]) -> None:
        return None

    async def end(self) -> None:
        return None


class Leading:
    """Takes the lease, keeps it, and gives it back."""

    def __init__(
        self, lease: Lease, clock: Clock, seconds: float, on_lost: Callable[[Exception], None] | None = None
    ) -> None:
        """`seconds` is how long the lease lasts. `on_lost` is called once, in the loop, when another one leads (then
        with StoreFenced), or with what keeps this one from renewing its lease although the database can be asked."""
        self._lease = lease
        self._clock = clock
        self._seconds = seconds
        self._pause_seconds = min(_LOOK_SECONDS, seconds / _PAUSES)
        self._on_lost = on_lost
        self._token = 0
        self._since = (0.0, 0)
        self._lost: StoreFenced | None = None
        self._renewing = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def guard(self) -> Write | None:
        return self._lease.guard(self._token)

    async def try_to_begin(self) -> Held | None:
        asked = self._now()
        taken = await self._lease.take()
        if isinstance(taken, Held):
            return taken
        self._token, self._since = taken, asked
        self._keeper = asyncio.create_task(self._keep(), name="lease")
        self._keeper.add_done_callback(self._kept)
        _log.info("leads", token=taken)
        return None

    async def begin(self, stands_by: Callable[[Held], None]) -> None:
        until = self._clock.monotonic() + _START_SECONDS
        told: str | None = None
        while True:
            try:
                held = await self.try_to_begin()
                if held is None:
                    return
                if held.holder != told:
                    told = held.holder
                    stands_by(held)
            except Unreachable as problem:
                if told is None and self._clock.monotonic() >= until:
                    raise
                _log.warning("lease_cannot_be_asked_for", problem=str(problem))
            await self._clock.sleep(self._pause_seconds)

    def holds(self) -> bool:
        """Whether the lease cannot have run out: by the clock that never goes back, and by that on the wall, which goes
        on while the machine is suspended."""
        (at, at_ms), (now, now_ms) = self._since, self._now()
        return self._lost is None and max(now - at, (now_ms - at_ms) / 1000) < self._seconds

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
            await self._lease.release()
        except StoreError as problem:
            # It does no harm: the lease runs out by itself.
            _log.warning("lease_not_released", problem=str(problem))
        finally:
            await self._lease.close()

    async def _keep(self) -> None:
        while self._lost is None:
            await self._clock.sleep(self._seconds / _RENEWALS)
            try:
                async with self._renewing:
                    await self._renew()
            except StoreFenced:
                return

    def _kept(self, keeper: asyncio.Task[None]) -> None:
        """Whoever leads without renewing would answer until the lease has run out, and then be silent for ever."""
        error = None if keeper.cancelled() else keeper.exception()
        if not isinstance(error, Exception):
            return
        _log.critical("lease_cannot_be_kept", exc_info=error)
        if self._on_lost is not None:
            self._on_lost(error)

    async def _renew(self) -> None:
        """Try until the database has answered. Raises StoreFenced."""
        while True:
            if self._lost is not None:
                raise StoreFenced(*self._lost.args)
            asked = self._now()
            try:
                is_mine = await self._lease.renew(self._token)
            except Unreachable as problem:
                _log.warning("lease_not_renewed", problem=str(problem))
                await self._clock.sleep(self._pause_seconds)
                continue
            if is_mine:
                self._since = asked
                return
            self._lose()

    def _lose(self) -> None:
        self._lost = StoreFenced("another daemon has taken over: this one did not renew its lease in time")
        if self._on_lost is not None:
            self._on_lost(self._lost)

    def _now(self) -> tuple[float, int]:
        return self._clock.monotonic(), self._clock.now_ms()


async def lead_or_refuse(lead: Leadership) -> None:
    """Lead, for a command that does not stand by. Raises StoreInUse when another one leads, and StoreError."""
    held = await lead.try_to_begin()
    if held is not None:
        raise StoreInUse(f"the database is in use by {held.holder}, which leads; stop it first")
