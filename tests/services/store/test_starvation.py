"""A busy event loop does not prevent units from being written."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.store.sqlite.store import SqliteStore
from services.store.unit_queue import switch_threads_often
from tests.contracts.store_engines import ADD, SqliteEngine

CHATS = 20
COMMITS_PER_CHAT = 10


@pytest.fixture
def threads_switched_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    switch_threads_often()
    yield
    sys.setswitchinterval(before)


async def hog(busy: asyncio.Event) -> None:
    """Keep the loop busy: other tasks run between two chunks of work, other threads have to request the GIL."""
    while busy.is_set():
        until = time.perf_counter() + 0.0002
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)


async def latencies_of_a_chat(store: SqliteStore, chat: int) -> list[float]:
    seconds = []
    for number in range(COMMITS_PER_CHAT):
        start = time.perf_counter()
        await store.commit([ADD.write(id=chat * COMMITS_PER_CHAT + number, body="x")])
        seconds.append(time.perf_counter() - start)
    return seconds


@pytest.mark.usefixtures("threads_switched_often")
async def test_a_loop_that_never_idles_does_not_starve_the_writer(tmp_path: Path) -> None:
    store = await SqliteEngine(tmp_path).open()
    busy = asyncio.Event()
    busy.set()
    asyncio.get_running_loop().call_later(2, busy.clear)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hog(busy))
        chats = [tasks.create_task(latencies_of_a_chat(store, chat)) for chat in range(CHATS)]
        seconds = sorted(latency for each in await asyncio.gather(*chats) for latency in each)
        busy.clear()
    assert seconds[int(len(seconds) * 0.99)] < 0.1
    await store.close()
