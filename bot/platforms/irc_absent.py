"""Members for whom there is something in private, and who are not on the network: it waits until they are seen."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import structlog

from services.clock import Clock

_log = structlog.get_logger("irc")
_KEPT_SECONDS = 7 * 86_400.0
_ASK_AGAIN_SECONDS = 600.0
"""Who shares no channel with us comes back unseen, so the server is asked now and then."""
_HERE_SECONDS = 60.0
"""Whoever wrote so lately is there."""
_MEMBERS_KEPT = 2000


class Absent:
    """Outlives connections, and forgets with the process: after a start the week begins anew."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
        self._since: OrderedDict[str, float] = OrderedDict()
        self._seen_at: OrderedDict[str, float] = OrderedDict()
        self._awaited: dict[str, asyncio.Event] = {}

    def seen(self, identity: str) -> None:
        """They are there."""
        _keep(self._seen_at, identity, self._clock.monotonic())
        self._wake(identity)

    def ask_again(self) -> None:
        """Who is there may have changed without a word."""
        self._seen_at.clear()
        for identity in list(self._awaited):
            self._wake(identity)

    async def until_there(self, identity: str, is_there: Callable[[], Awaitable[bool]]) -> None:
        """Return when `identity` is there, or has not been for a week: what is for them then waits no longer."""
        while not (self._was_seen_lately(identity) or await is_there()):
            now = self._clock.monotonic()
            if identity not in self._since:
                _log.info("irc_member_away", network=self._network, member=identity, kept_days=_KEPT_SECONDS / 86_400)
                _keep(self._since, identity, now)
            if now - self._since[identity] >= _KEPT_SECONDS:
                return
            await self._news_of(identity)
        self._since.pop(identity, None)

    def _was_seen_lately(self, identity: str) -> bool:
        at = self._seen_at.get(identity)
        return at is not None and self._clock.monotonic() - at < _HERE_SECONDS

    async def _news_of(self, identity: str) -> None:
        event = self._awaited.setdefault(identity, asyncio.Event())
        tasks = asyncio.create_task(event.wait()), asyncio.create_task(self._clock.sleep(_ASK_AGAIN_SECONDS))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _wake(self, identity: str) -> None:
        event = self._awaited.pop(identity, None)
        if event is not None:
            event.set()


def _keep(times: OrderedDict[str, float], identity: str, at: float) -> None:
    times[identity] = at
    times.move_to_end(identity)
    if len(times) > _MEMBERS_KEPT:
        times.popitem(last=False)
