"""Deadlines: work that exceeds its timeout is cancelled, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from services.clock import Deadlines, SystemClock, VirtualClock


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_what_is_done_in_time_gives_its_result() -> None:
    async def work() -> int:
        return 42

    assert await Deadlines(VirtualClock()).run(work(), 1.0) == 42


async def test_what_raises_in_time_raises() -> None:
    async def work() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await Deadlines(VirtualClock()).run(work(), 1.0)


async def test_what_is_over_its_time_is_a_timeout() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    task = asyncio.create_task(deadlines.run(forever(), 5.0))
    await clock.advance(4.9)
    deadlines.expire()
    await clock.settle()
    assert not task.done()
    await clock.advance(0.1)
    deadlines.expire()
    with pytest.raises(TimeoutError):
        await task
    assert task.cancelling() == 0


async def test_the_ticker_finds_it_by_itself() -> None:
    clock = SystemClock()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await Deadlines(clock, tick_seconds=0.001).run(forever(), clock.monotonic() + 0.005)


async def test_a_cancellation_from_outside_stays_one() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    task = asyncio.create_task(deadlines.run(forever(), 5.0))
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_outside_wins_over_a_deadline_at_the_same_moment() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    task = asyncio.create_task(deadlines.run(forever(), 5.0))
    await clock.advance(5)
    task.cancel()
    deadlines.expire()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_inner_of_two_deadlines_ends_only_the_inner_work() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)

    async def outer() -> str:
        try:
            await deadlines.run(forever(), 1.0)
        except TimeoutError:
            return "inner"
        return "none"

    task = asyncio.create_task(deadlines.run(outer(), 5.0))
    await clock.advance(1)
    deadlines.expire()
    assert await task == "inner"


async def test_the_outer_of_two_deadlines_ends_both() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    task = asyncio.create_task(deadlines.run(deadlines.run(forever(), 9.0), 5.0))
    await clock.advance(5)
    deadlines.expire()
    with pytest.raises(TimeoutError):
        await task


@pytest.mark.parametrize("ends", ["raises", "returns"])
async def test_work_that_makes_something_else_of_its_cancellation_leaves_the_outer_deadline_intact(ends: str) -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)
    inner: list[str] = []

    async def stubborn() -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            if ends == "raises":
                raise LookupError from None
        return "returns"

    async def outer() -> None:
        try:
            inner.append(await deadlines.run(stubborn(), 1.0))
        except LookupError:
            inner.append("raises")
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        await forever()

    task = asyncio.create_task(deadlines.run(outer(), 5.0))
    await clock.settle()
    await clock.advance(1)
    deadlines.expire()
    await clock.settle()
    assert inner == [ends]
    await clock.advance(4)
    deadlines.expire()
    with pytest.raises(TimeoutError):
        await task
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_stays_one_although_a_late_piece_of_work_failed_otherwise() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock)

    async def outer() -> int:
        with contextlib.suppress(TimeoutError):
            await deadlines.run(forever(), 1.0)
        await forever()
        return 0

    task = asyncio.create_task(outer())
    await clock.settle()
    await clock.advance(1)
    deadlines.expire()
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
