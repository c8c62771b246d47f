"""Program of test_kill.py: many chats write units of two notes, and print each unit's number after it is durable."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from services.clock import SystemClock
from services.store.sqlite.store import SqliteStore
from tests.contracts.store_engines import ADD, CHANGE, create_tables

CHATS = 40


async def chat(store: SqliteStore, numbers: itertools.count[int]) -> None:
    for number in numbers:
        await store.commit([ADD.write(id=2 * number, body="call"), ADD.write(id=2 * number + 1, body="reply")])
        os.write(1, f"{number}\n".encode("ascii"))  # one call, so that a kill cannot cut it
        store.post([CHANGE.write(note=2 * number + 1, to="sent")])


async def main(path: Path, first: int) -> None:
    store = await SqliteStore.open(path, clock=SystemClock(), prepare=create_tables)
    numbers = itertools.count(first)
    async with asyncio.TaskGroup() as chats:
        for _ in range(CHATS):
            chats.create_task(chat(store, numbers))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
