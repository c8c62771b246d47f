"""Retry policy. The caller decides which errors are temporary; attempts and waits are defined here."""

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
    """Whether to retry after an error, and the wait in seconds that the server requests (None if it does not)."""

    retry: bool
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts, and upper bounds in seconds of the waits between them, which grow exponentially."""

    attempts: int = 3
    """Including the first."""
    first_wait_seconds: float = 0.5
    """Upper bound of the first wait; doubled with each attempt."""
    longest_wait_seconds: float = 20.0
    """Upper bound of a wait, unless the server requests a longer one."""

    def wait_after(self, failures: int) -> float:
        """Upper bound of the wait in seconds after `failures` failures in a row."""
        # Limited, because a float would overflow.
        return min(self.first_wait_seconds * 2.0 ** min(failures - 1, 60), self.longest_wait_seconds)


class Retry:
    """Repeats an operation while its errors are temporary and time is left."""

    def __init__(
        self,
        clock: Clock,
        policy: RetryPolicy | None = None,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`jitter(low, high)` draws the wait: full jitter, so that callers do not retry simultaneously."""
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
        """Return the result of the first successful `attempt`.

        `deadline` is on the clock's `monotonic()`. Raises the last error if `judge` rejects a retry, if no attempts are
        left, or, without waiting, if the wait would not end before the deadline. Errors other than `on` are not caught.
        """
        try:
            return await attempt()
        except on as error:
            if not judge(error).retry:
                raise
            first = error
        # The first attempt, which usually succeeds, does not use tenacity.
        failed = [first]

        async def attempt_again() -> T:
            if failed:
                raise failed.pop()
            return await attempt()

        return await AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, on) and judge(error).retry),
            wait=lambda state: self._wait(state, on, judge),
            stop=lambda state: self._is_over(state, deadline),
            sleep=self._clock.sleep,
            reraise=True,
        )(attempt_again)

    def _wait(self, state: RetryCallState, on: type[E], judge: Callable[[E], RetryDecision]) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = judge(error).after_seconds if isinstance(error, on) else None
        drawn = self._jitter(0.0, self._policy.wait_after(state.attempt_number))
        # A requested wait is a minimum with some jitter, since all clients got the same.
        return drawn if asked is None else asked + min(drawn, self._policy.first_wait_seconds)

    def _is_over(self, state: RetryCallState, deadline: float) -> bool:
        if state.attempt_number >= self._policy.attempts:
            return True
        return self._clock.monotonic() + state.upcoming_sleep >= deadline


def retry_after_seconds(value: str | None, now: datetime | None) -> float | None:
    """Seconds requested by a `Retry-After` header: a number, or a date relative to `now`.

    None if it is absent, negative or invalid; 0 for a past date.
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
