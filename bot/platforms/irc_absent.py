"""Members for whom there is something in private, and who are not on the network: it waits until they are seen."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import structlog

from config.irc import BY_NICK
from services.clock import Clock

_log = structlog.get_logger("irc")
KEPT_SECONDS = 7 * 86_400.0
"""How long something is kept for an account, counted from when it was said."""
NICK_KEPT_SECONDS = 3600.0
"""How long for a bare nick: whoever lost the connection is back by then, and later somebody else may have it."""
_ASK_AGAIN_SECONDS = 600.0
"""Who shares no channel with us comes back unseen, so the server is asked now and then."""
_HERE_SECONDS = 60.0
"""Whoever wrote so lately is there."""
_MEMBERS_KEPT = 2000


class Absent:
    """Who was seen lately, and who is waited for; outlives connections."""

    def __init__(self, network: str, clock: Clock) -> None:
        self._network = network
        self._clock = clock
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

    async def until_there(
        self, identity: str, is_there: Callable[[], Awaitable[bool]], said_seconds_ago: float = 0.0
    ) -> None:
        """Return when `identity` is there, or what is for them has been kept for as long as it is kept."""
        kept = NICK_KEPT_SECONDS if identity.startswith(BY_NICK) else KEPT_SECONDS
        last_at = self._clock.monotonic() + kept - said_seconds_ago
        is_told = False
        while not (self._was_seen_lately(identity) or await is_there()):
            left = last_at - self._clock.monotonic()
            if left <= 0:
                return
            if not is_told:
                _log.info("irc_member_away", network=self._network, member=identity, kept_hours=round(left / 3600, 1))
                is_told = True
            await self._news_of(identity, min(left, _ASK_AGAIN_SECONDS))

    def _was_seen_lately(self, identity: str) -> bool:
        at = self._seen_at.get(identity)
        return at is not None and self._clock.monotonic() - at < _HERE_SECONDS

    async def _news_of(self, identity: str, seconds: float) -> None:
        event = self._awaited.setdefault(identity, asyncio.Event())
        tasks = asyncio.create_task(event.wait()), asyncio.create_task(self._clock.sleep(seconds))
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
