"""Whether the clock on the wall can be trusted with what is due: one that jumps years ahead for a while, as machines do
without a battery for their clock, must not fire everything there is."""

from __future__ import annotations

import structlog

from config.timers import TimersSettings
from services.clock import Clock

_log = structlog.get_logger("timers")
_HOUR = 3600.0
_DAY = 24 * _HOUR
_ABSURD = 366 * _DAY
_ABSURD_HOLD = _DAY
_QUIET = 30 * _DAY
_AWAY = 30.0


class ClockGuard:
    """Compares the clock on the wall with time as it passes. Looked at once a second."""

    def __init__(self, clock: Clock, settings: TimersSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._wall = clock.now().timestamp()
        self._passed = clock.monotonic()
        self._ahead = 0.0
        self._until = 0.0
        self.away_until_ms = clock.now_ms()
        """What was due before this instant came while nobody was looking."""
        self.is_holding = False
        """What is due is held back."""

    @property
    def in_doubt(self) -> bool:
        """Whether the clock is in doubt."""
        return self._ahead > 0

    def begin(self, newest_ms: int | None) -> None:
        """The first look. `newest_ms`: the instant of the newest thing in the store."""
        self._wall, self._passed = self._clock.now().timestamp(), self._clock.monotonic()
        self.away_until_ms = self._clock.now_ms()
        quiet = 0.0 if newest_ms is None else (self._clock.now_ms() - newest_ms) / 1000
        if quiet > _QUIET:
            self._doubt(quiet)

    def look(self) -> float:
        """By how many seconds the clock on the wall went ahead of time since the last look; negative: back."""
        wall, passed = self._clock.now().timestamp(), self._clock.monotonic()
        gone = passed - self._passed
        jump = wall - self._wall - gone
        self._wall, self._passed = wall, passed
        if gone > _AWAY or jump > _AWAY:
            self.away_until_ms = self._clock.now_ms()
        if jump > _HOUR:
            self._doubt(self._ahead + jump)
        elif jump < 0:
            self.away_until_ms = min(self.away_until_ms, self._clock.now_ms())
        if jump < -_HOUR and self._ahead:
            self._ahead = max(0.0, self._ahead + jump)
            if self._ahead <= _HOUR:
                self._trust("the clock has returned to where it was")
        return jump

    def holds(self, overdue: int) -> bool:
        """Whether that many overdue are too many to believe, after what the clock did."""
        most = self._settings.hold_over
        if not self._ahead or not most:
            self.is_holding = False
            return False
        if self._clock.monotonic() >= self._until:
            self._trust("the clock has stayed as it is")
            return False
        is_too_much = overdue > (0 if self._ahead > _ABSURD else most)
        if is_too_much and not self.is_holding:
            self._alert(overdue)
        elif self.is_holding and not is_too_much:
            _log.warning("timers_released", because="no more are overdue than usual")
        self.is_holding = is_too_much
        return is_too_much

    def _doubt(self, ahead: float) -> None:
        hold = _ABSURD_HOLD if ahead > _ABSURD else self._settings.hold_seconds
        self._ahead = ahead
        self._until = self._clock.monotonic() + hold

    def _trust(self, because: str) -> None:
        self._ahead = 0.0
        if self.is_holding:
            _log.warning("timers_released", because=because)
        self.is_holding = False

    def _alert(self, overdue: int) -> None:
        _log.error(
            "timers_held",
            overdue_at_least=overdue,
            clock_says=self._clock.now().isoformat(timespec="seconds"),
            jumped_hours=round(self._ahead / _HOUR, 1),
            released_in_seconds=round(self._until - self._clock.monotonic()),
            hint="set the machine's clock right, and they are released by themselves; if it is right, wait, or set "
            "timers.hold_over to 0 and restart to fire what is overdue now",
        )
