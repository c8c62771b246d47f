"""The order of waiting computations."""

from __future__ import annotations

import asyncio

from function_calls.basic.run.driver import RunScheduler


async def nothing() -> None:
    await asyncio.sleep(0)


async def test_one_reckons_at_a_time_and_who_has_reckoned_least_comes_next() -> None:
    line, order, pausing = RunScheduler(), list[str](), 0

    async def pause() -> None:
        nonlocal pausing
        pausing += 1
        assert pausing == 1
        await asyncio.sleep(0)
        pausing -= 1

    async def run(name: str, spent: float) -> None:
        await line.wait_for_slice(spent, pause)
        order.append(name)

    await asyncio.gather(run("first", 9), run("long", 5), run("short", 1), run("middle", 3), run("short too", 1))
    assert order == ["first", "short", "short too", "middle", "long"]


async def test_who_goes_away_holds_up_nobody() -> None:
    line, gate, order = RunScheduler(), asyncio.Event(), list[str]()

    async def held() -> None:
        await gate.wait()

    async def run(name: str, pause: object = nothing) -> None:
        await line.wait_for_slice(0, pause)  # type: ignore[arg-type]  # both take nothing
        order.append(name)

    at_the_front = asyncio.create_task(run("front", held))
    tasks = [asyncio.create_task(run(name)) for name in ("a", "b", "c")]
    await asyncio.sleep(0)
    tasks[0].cancel()
    at_the_front.cancel()
    await asyncio.sleep(0)
    # It has just become first, and is cancelled.
    tasks[1].cancel()
    await asyncio.wait([at_the_front, *tasks], timeout=5)
    assert order == ["c"]
    await asyncio.wait_for(run("later"), 5)
    assert order == ["c", "later"]
