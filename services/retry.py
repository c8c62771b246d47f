"""The one policy of retries. Who uses it says which errors may pass by themselves; how often and how long is here."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from services.clock import Clock

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class RetryDecision(NamedTuple):
    """Whether an error may pass by itself, and how many seconds the other side asks to wait (None: it does not say)."""

    retry: bool
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long between two attempts."""

    attempts: int = 3
    """All attempts, the first included."""
    first_wait_seconds: float = 0.5
    """The upper bound of the first wait; it doubles with each attempt."""
    longest_wait_seconds: float = 20.0
    """The upper bound of any wait that the other side did not ask for."""

    def wait_after(self, failures: int) -> float:
        """The longest wait in seconds after so many failures in a row."""
        # Bounded, since a float overflows.
        return min(self.first_wait_seconds * 2.0 ** min(failures - 1, 60), self.longest_wait_seconds)


class Retry:
    """Runs something again while its errors may pass and time is left."""

    def __init__(
        self,
        clock: Clock,
        policy: RetryPolicy | None = None,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`jitter(low, high)` draws the wait: full jitter, so that many callers do not come back at once."""
        self._clock = clock
        self._policy = policy or RetryPolicy()
        self._jitter = jitter

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        on: type[E],
        judge: Callable[[E], RetryDecision],
        deadline: float,
    ) -> T:
        """What the first successful `attempt` returns.

        `deadline` is on the clock's `monotonic()`. Raises the last error when `judge` says that it will not pass, when
        the attempts are used up, or when the wait would not end before the deadline: then at once, without waiting.
        Errors other than `on` pass through.
        """
        try:
            return await attempt()
        except on as error:
            if not judge(error).retry:
                raise
            first = error
        # The usual attempt succeeds, and is not charged for the machinery of the others.
        failed = [first]

        async def again() -> T:
            if failed:
                raise failed.pop()
            return await attempt()

        return await AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, on) and judge(error).retry),
            wait=lambda state: self._wait(state, on, judge),
            stop=lambda state: self._is_over(state, deadline),
            sleep=self._clock.sleep,
            reraise=True,
        )(again)

    def _wait(self, state: RetryCallState, on: type[E], judge: Callable[[E], RetryDecision]) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = judge(error).after_seconds if isinstance(error, on) else None
        drawn = self._jitter(0.0, self._policy.wait_after(state.attempt_number))
        # What the other side asks for is the least, never the exact moment: all its callers were told the same.
        return drawn if asked is None else asked + min(drawn, self._policy.first_wait_seconds)

    def _is_over(self, state: RetryCallState, deadline: float) -> bool:
        if state.attempt_number >= self._policy.attempts:
            return True
        return self._clock.monotonic() + state.upcoming_sleep >= deadline


def retry_after_seconds(value: str | None, now: datetime | None) -> float | None:
    """The seconds that a `Retry-After` header asks for: a number, or a date, which is measured from `now`.

    None when it is absent, negative, or neither; a date that has passed is 0.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, now)
    return seconds if 0 <= seconds < float("inf") else None


def _seconds_until(value: str, now: datetime | None) -> float | None:
    if now is None:
        return None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
