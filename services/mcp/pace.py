"""How often something may happen: so many times in a span, whoever brings it about."""

from __future__ import annotations

from services.clock import Clock


class Pace:
    """Counts within spans that follow one another."""

    def __init__(self, most: int, seconds: float, clock: Clock) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def may_go_on(self) -> bool:
        """Whether it may happen once more now; counted where it may."""
        now = self._clock.monotonic()
        if now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most
