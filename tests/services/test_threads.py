"""Blocking work runs in separate threads and does not delay others."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from services.threads import Threads

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="")


async def test_what_the_work_returns_and_raises_comes_back() -> None:
    threads = Threads()

    def divide(one: int, *, by: int) -> float:
        return one / by

    assert await threads.run(divide, 6, by=3) == 2
    with pytest.raises(ZeroDivisionError):
        await threads.run(divide, 6, by=0)


@pytest.mark.parametrize("error", [StopIteration, SystemExit, KeyboardInterrupt])
async def test_what_would_end_a_program_or_confuse_a_future_is_only_a_failure(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError):
        await Threads().run(fail)


async def test_the_work_sees_the_context_of_its_caller() -> None:
    NAME.set("Ann")
    assert await Threads().run(NAME.get) == "Ann"


async def test_many_that_hang_keep_no_other_waiting() -> None:
    threads = Threads(41)
    release = threading.Event()
    hanging = [asyncio.ensure_future(threads.run(release.wait, 30)) for _ in range(40)]
    assert await asyncio.wait_for(threads.run(lambda: "quick"), 5) == "quick"
    release.set()
    assert await asyncio.gather(*hanging) == [True] * 40


async def test_no_more_run_at_once_than_there_are_places_and_who_was_given_up_keeps_its_place_till_it_ends() -> None:
    threads = Threads(1)
    release, began = threading.Event(), threading.Event()

    def hang() -> None:
        began.set()
        release.wait(30)

    first = asyncio.ensure_future(threads.run(hang))
    await asyncio.to_thread(began.wait, 5)
    first.cancel()
    second = asyncio.ensure_future(threads.run(lambda: "second"))
    await asyncio.wait([first, second], timeout=0.05)
    assert (first.cancelled(), second.done()) == (True, False)
    release.set()
    assert await asyncio.wait_for(second, 5) == "second"


def test_a_program_ends_although_work_hangs_and_late_work_finds_the_loop_closed_in_silence() -> None:
    program = """
import asyncio, threading, time
from services.threads import Threads

late = threading.Event()

async def main():
    threads = Threads()
    tasks = [asyncio.ensure_future(threads.run(late.wait)), asyncio.ensure_future(threads.run(time.sleep, 600))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

asyncio.run(main())
late.set()
[one.join(5) for one in threading.enumerate() if one.name == "rollcall-wait"]
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("ended\n", "")
