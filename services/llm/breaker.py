"""When a model that failed is left alone, and when it is tried again: a circuit breaker, on the daemon's clock."""

from __future__ import annotations

from config.failover import FailoverSettings
from services.clock import Clock
from services.refs import Trouble

_TO_BE_MENDED = frozenset({Trouble.KEY, Trouble.QUOTA, Trouble.MISSING})
"""What does not pass by itself: the next question would meet the same."""


class Breaker:
    """Closed: all questions go through. Open: none does until the pause is over; then one does, as a trial, whose end
    closes the breaker or begins a longer pause."""

    def __init__(self, settings: FailoverSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._pauses = 0
        self._until: float | None = None
        self._trial_runs = False
        self.trouble: Trouble | None = None
        """Why it is open; None: it is closed."""

    @property
    def seconds_left(self) -> float:
        """How long the pause still lasts; 0 when a question may go through or the trial runs."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock.monotonic())

    def lets_through(self) -> bool:
        """Whether a question may be asked now."""
        return self._until is None or (not self._trial_runs and self._until <= self._clock.monotonic())

    def begin(self) -> bool:
        """A question that was let through is being asked. True: it is the trial; to be handed back when it ends."""
        self._trial_runs = self._until is not None
        return self._trial_runs

    def answered(self) -> None:
        """The model answered, well or badly: it is there."""
        self._failures = self._pauses = 0
        self._until = self.trouble = None
        self._trial_runs = False

    def failed(self, trouble: Trouble, *, trial: bool, retry_after_seconds: float | None = None) -> bool:
        """The model could not be asked. True: a pause begins with this."""
        if self._until is not None and not trial:
            # It was asked before the pause began, and says nothing new.
            return False
        self._trial_runs = False
        self._failures += 1
        pause = self._pause(trouble, retry_after_seconds, trial=trial)
        if not pause:
            return False
        self._until = self._clock.monotonic() + pause
        self.trouble = trouble
        return True

    def left(self, *, trial: bool) -> None:
        """The question ended without telling anything about the model."""
        if trial:
            self._trial_runs = False

    def _pause(self, trouble: Trouble, retry_after_seconds: float | None, *, trial: bool) -> float:
        """The length of the pause that begins now, in seconds; 0: none does."""
        if trouble in _TO_BE_MENDED:
            return self._settings.longest_wait_seconds
        if retry_after_seconds:
            return min(retry_after_seconds, self._settings.longest_wait_seconds)
        if not trial and self._failures < self._settings.failures:
            return 0.0
        longest = max(self._settings.cooldown_seconds, self._settings.longest_cooldown_seconds)
        # Bounded, since a float ends somewhere.
        pause = self._settings.cooldown_seconds * 2.0 ** min(self._pauses, 16)
        self._pauses += 1
        return min(pause, longest)
