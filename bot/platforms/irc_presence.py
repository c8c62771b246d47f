"""When the bot was last on a network, kept across starts: what was said there since then it does not know."""

from __future__ import annotations

from services.clock import Clock
from services.store import cursors
from services.store.port import Store

_EVERY_SECONDS = 60.0
"""A minute too much in the length of a gap costs nothing; a row for every line would."""


class Presence:
    """One network's."""

    def __init__(self, network: str, store: Store, clock: Clock) -> None:
        self._name = f"irc.present:{network}"
        self._store = store
        self._clock = clock
        self._noted_at = float("-inf")

    async def seconds_away(self) -> float | None:
        """How long ago an earlier process was there; None when none ever was. Raises StoreError."""
        rows = await self._store.read(cursors.get(self._name))
        return max(self._clock.now_ms() - int(rows[0]["value"]), 0) / 1000 if rows else None

    def note(self, *, at_once: bool = False) -> None:
        """The bot is there now. Written once a minute, unless `at_once`."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        if at_once or now - self._noted_at >= _EVERY_SECONDS:
            self._noted_at = now
            self._store.post([cursors.advance(self._name, str(now_ms), now_ms)])
