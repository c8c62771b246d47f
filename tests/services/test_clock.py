"""Time as a value."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from services.clock import Clock, InstantClock, SystemClock, VirtualClock

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("clock", [SystemClock(), InstantClock(START), VirtualClock(START)])
async def test_every_clock_gives_the_same_instant_in_each_of_its_ways(clock: Clock) -> None:
    assert clock.now().tzinfo is UTC
    assert abs(clock.now().timestamp() * 1000 - clock.now_ms()) < 1000
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before


def test_the_systems_clock_is_the_machines() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 1000
    assert abs(SystemClock().monotonic() - time.monotonic()) < 1


async def test_on_an_instant_clock_waiting_takes_no_time() -> None:
    clock = InstantClock(START)
    async with asyncio.timeout(5):
        await clock.sleep(3600)
    assert (clock.now(), clock.monotonic()) == (START + timedelta(hours=1), 3600.0)
    await clock.sleep(-5)
    assert clock.monotonic() == 3600.0


async def test_a_virtual_clock_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(START)
    sleeper = asyncio.create_task(clock.sleep(10))
    await clock.settle()
    await clock.advance(9.5)
    assert not sleeper.done()
    await clock.advance(0.5)
    assert sleeper.done()
    assert clock.now() == START + timedelta(seconds=10)


async def test_a_virtual_clock_tells_for_how_long_somebody_has_just_begun_to_sleep() -> None:
    clock = VirtualClock(START)
    sleeper = asyncio.create_task(clock.sleep(10))
    assert not clock.is_slept(10)
    await clock.settle()
    assert (clock.is_slept(10), clock.is_slept(9)) == (True, False)
    sleeper.cancel()
    await clock.settle()
    assert not clock.is_slept(10)


async def test_sleepers_wake_in_the_order_of_their_time_and_each_at_its_own() -> None:
    clock = VirtualClock(START)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *seconds: float) -> None:
        for one in seconds:
            await clock.sleep(one)
            woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sleeper("late", 5))
        tasks.create_task(sleeper("early", 1, 1))
        tasks.create_task(sleeper("as early", 1))
        await clock.settle()
        await clock.advance(100)
    assert woken == [("early", 1.0), ("as early", 1.0), ("early", 2.0), ("late", 5.0)]
    assert clock.monotonic() == 100.0


async def test_a_sleeper_that_gave_up_wakes_nobody() -> None:
    clock = VirtualClock(START)
    sleeper = asyncio.create_task(clock.sleep(1))
    await clock.settle()
    sleeper.cancel()
    await clock.advance(2)
    assert sleeper.cancelled()
