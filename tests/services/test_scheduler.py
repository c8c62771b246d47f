"""The ticker: periodic tasks continue after failures."""

from __future__ import annotations

import asyncio
import time

from structlog.testing import capture_logs

from services.timers.scheduler import LongestDelay, Ticker

SECONDS = 0.01


async def test_an_errand_is_done_again_and_again_until_the_ticker_stops() -> None:
    ticker, done = Ticker(), asyncio.Semaphore(0)

    async def errand() -> None:
        done.release()

    ticker.every(SECONDS, "errand", errand)
    ticker.start()
    async with asyncio.timeout(5):
        for _ in range(3):
            await done.acquire()
    ticker.stop()
    ticker.stop()


async def test_an_errand_that_fails_is_done_again_and_disturbs_no_other() -> None:
    ticker, failed, done = Ticker(), asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def failing() -> None:
        failed.release()
        raise RuntimeError("broken")

    async def errand() -> None:
        done.release()

    ticker.every(SECONDS, "failing", failing)
    ticker.every(SECONDS, "errand", errand)
    with capture_logs() as logs:
        ticker.start()
        async with asyncio.timeout(5):
            for each in (failed, failed, done):
                await each.acquire()
    ticker.stop()
    assert (logs[0]["event"], logs[0]["errand"]) == ("errand_failed", "failing")


async def test_an_errand_never_runs_twice_at_once() -> None:
    ticker, begun, go_on = Ticker(), asyncio.Semaphore(0), asyncio.Event()
    running = most = 0

    async def errand() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        begun.release()
        await go_on.wait()
        running -= 1

    other = asyncio.Semaphore(0)

    async def quick() -> None:
        other.release()

    ticker.every(SECONDS, "errand", errand)
    ticker.every(SECONDS, "quick", quick)
    ticker.start()
    async with asyncio.timeout(5):
        await begun.acquire()
        for _ in range(5):
            await other.acquire()
        go_on.set()
        await begun.acquire()
    ticker.stop()
    assert most == 1


def test_a_ticker_that_never_started_stops_in_peace() -> None:
    Ticker().stop()


async def test_a_blocked_loop_and_late_jobs_are_measured() -> None:
    ticker, done = Ticker(), asyncio.Semaphore(0)

    async def errand() -> None:
        done.release()

    ticker.every(SECONDS, "errand", errand)
    ticker.start()
    async with asyncio.timeout(5):
        await done.acquire()
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            pass
        for _ in range(3):
            await done.acquire()
    assert ticker.lag_seconds > 0.5
    assert ticker.loop_lag_seconds > 0.2
    ticker.stop()


def test_the_longest_delay_of_the_last_minute_counts() -> None:
    delays = LongestDelay()
    for now, seconds in ((0, 3), (10, 5), (20, 1), (30, 2)):
        delays.add(now, seconds)
    assert [delays.seconds(now) for now in (30, 69, 71, 91, 200)] == [5, 5, 2, 0, 0]
