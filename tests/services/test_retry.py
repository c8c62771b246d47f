import asyncio
from datetime import UTC, datetime

import pytest

from services.clock import VirtualClock
from services.retry import Retry, RetryDecision, RetryPolicy, retry_after_seconds


class Trial:
    """Raises each of `errors` in turn, then returns "done"; records the times of its calls."""

    def __init__(self, clock: VirtualClock, *errors: Exception) -> None:
        self.clock = clock
        self.errors = list(errors)
        self.moments: list[float] = []

    async def __call__(self) -> str:
        self.moments.append(self.clock.monotonic())
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def passes(_error: Exception) -> RetryDecision:
    return RetryDecision(retry=True)


async def run(trial: Trial, policy: RetryPolicy | None = None, deadline: float = 1_000.0) -> str:
    """Outcome of `trial` with the maximum jitter."""
    retry = Retry(trial.clock, policy, jitter=lambda _low, high: high)
    running = asyncio.create_task(retry.run(trial, on=ConnectionError, judge=passes, deadline=deadline))
    await trial.clock.settle()
    while not running.done():
        await trial.clock.advance(0.5)
    return await running


async def test_waits_double_up_to_the_longest() -> None:
    trial = Trial(VirtualClock(), *(ConnectionError() for _ in range(5)))
    assert await run(trial, RetryPolicy(attempts=6, first_wait_seconds=1.0, longest_wait_seconds=4.0)) == "done"
    assert trial.moments == [0.0, 1.0, 3.0, 7.0, 11.0, 15.0]


async def test_the_last_error_is_raised_when_the_attempts_are_used_up() -> None:
    last = ConnectionError("third")
    trial = Trial(VirtualClock(), ConnectionError("first"), ConnectionError("second"), last)
    with pytest.raises(ConnectionError) as caught:
        await run(trial)
    assert caught.value is last


async def test_an_error_of_another_kind_passes_through() -> None:
    trial = Trial(VirtualClock(), ConnectionError(), KeyError("bug"))
    with pytest.raises(KeyError):
        await run(trial)
    assert len(trial.moments) == 2


async def test_no_wait_ends_after_the_deadline() -> None:
    trial = Trial(VirtualClock(), ConnectionError(), ConnectionError())
    with pytest.raises(ConnectionError):
        await run(trial, RetryPolicy(first_wait_seconds=4.0), deadline=10.0)
    assert trial.moments == [0.0, 4.0]


async def test_the_default_jitter_spreads_callers() -> None:
    clock = VirtualClock()
    trials = [Trial(clock, ConnectionError()) for _ in range(20)]
    retry = Retry(clock)
    running = [asyncio.create_task(retry.run(t, on=ConnectionError, judge=passes, deadline=60.0)) for t in trials]
    await clock.settle()
    await clock.advance(0.5)
    assert await asyncio.gather(*running) == ["done"] * 20
    assert len({trial.moments[1] for trial in trials}) > 10
    assert all(0.0 <= trial.moments[1] <= 0.5 for trial in trials)


NOW = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "now", "seconds"),
    [
        ("0", NOW, 0.0),
        ("120", NOW, 120.0),
        ("Wed, 21 Oct 2026 07:30:00 GMT", NOW, 120.0),
        ("Wed, 21 Oct 2026 07:30:00", NOW, 120.0),
        ("Wed, 21 Oct 2026 09:30:00 +0200", NOW, 120.0),
        ("Wed, 21 Oct 2026 07:00:00 GMT", NOW, 0.0),
        ("Wed, 21 Oct 2026 07:30:00 GMT", None, None),
        ("-1", NOW, None),
        ("nan", NOW, None),
        ("soon", NOW, None),
        (None, NOW, None),
    ],
)
def test_a_retry_after_is_a_number_or_a_date(header: str | None, now: datetime | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, now) == seconds
