"""More work than threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from services.threads import Threads


def begin(crew: Threads, work: Callable[..., Any], *args: object) -> asyncio.Task[Any]:
    return asyncio.ensure_future(crew.run(work, *args))


async def test_all_work_is_done_by_no_more_threads_than_there_may_be() -> None:
    crew, lock = Threads(2), threading.Lock()
    at_work: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        with lock:
            at_work.append(number)
            most.append(len(at_work))
        square = number * number
        with lock:
            at_work.remove(number)
        return square

    futures = [begin(crew, work, number) for number in range(50)]
    assert await asyncio.gather(*futures) == [number * number for number in range(50)]
    assert max(most) <= 2


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
async def test_what_work_raises_reaches_who_waits_and_the_next_piece_is_done(error: BaseException) -> None:
    crew = Threads(1)

    def fail() -> None:
        raise error

    failing, next_one = begin(crew, fail), begin(crew, lambda: "done")
    with pytest.raises(ValueError if isinstance(error, ValueError) else RuntimeError):
        await failing
    assert await next_one == "done"


async def test_work_that_hangs_is_passed_by_when_the_crew_is_relieved_and_still_gives_its_result() -> None:
    crew, let_go, began = Threads(1), threading.Event(), threading.Event()

    def hang() -> str:
        began.set()
        let_go.wait(10)
        return "late"

    hanging, waiting = begin(crew, hang), begin(crew, lambda: "on time")
    await asyncio.to_thread(began.wait, 10)
    assert not waiting.done()
    crew.relieve()
    assert await waiting == "on time"
    assert not hanging.done()
    let_go.set()
    assert await hanging == "late"


async def test_work_that_nobody_waits_for_any_more_is_left_out() -> None:
    crew, let_go, done = Threads(1), threading.Event(), []
    first = begin(crew, lambda: let_go.wait(10))
    second, third = begin(crew, lambda: done.append("second")), begin(crew, lambda: done.append("third"))
    second.cancel()
    let_go.set()
    await asyncio.gather(first, third)
    assert done == ["third"]
