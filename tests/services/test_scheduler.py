"""The ticker: periodic tasks continue after failures."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from services.timers.scheduler import Ticker

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
