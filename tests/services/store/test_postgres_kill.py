"""The server dies at any time and restarts: acknowledged data is stored once, and units are complete."""

from __future__ import annotations

import asyncio
import itertools
import random

import psycopg

from services.clock import SystemClock
from services.store.port import StoreBroken
from services.store.postgres.store import PostgresStore
from tests.contracts.store_engines import ADD, create_postgres_tables
from tests.harness.postgres_server import PostgresServer

KILLS = 6
CHATS = 20
RESUMES_SECONDS = 10.0


class Chats:
    """Writers of units of two notes, which record acknowledged and unknown outcomes."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.acknowledged: list[int] = []
        self.unknown: list[int] = []
        self.heard = asyncio.Event()

    async def write(self, store: PostgresStore) -> None:
        """Write until the store fails."""
        async with asyncio.TaskGroup() as chats:
            for _ in range(CHATS):
                chats.create_task(self._chat(store))

    async def _chat(self, store: PostgresStore) -> None:
        for number in self.numbers:
            try:
                await store.commit([ADD.write(id=2 * number, body="call"), ADD.write(id=2 * number + 1, body="reply")])
            except StoreBroken:
                self.unknown.append(number)
                return
            self.acknowledged.append(number)
            self.heard.set()

    async def hear(self) -> None:
        """Wait for the next acknowledged unit."""
        self.heard.clear()
        async with asyncio.timeout(RESUMES_SECONDS):
            await self.heard.wait()


async def test_a_server_that_is_killed_and_started_again_loses_and_doubles_nothing(
    mortal_postgres_server: PostgresServer,
) -> None:
    url = mortal_postgres_server.new_database(create_postgres_tables)
    chats, moments, broken = Chats(), random.Random(20260105), 0
    store = await PostgresStore.open(url, clock=SystemClock())
    writing = asyncio.create_task(chats.write(store))
    for _ in range(KILLS):
        await chats.hear()
        await asyncio.sleep(moments.uniform(0.0, 0.2))
        mortal_postgres_server.kill()
        await asyncio.sleep(0.02)
        await asyncio.to_thread(mortal_postgres_server.start)
        hearing = asyncio.create_task(chats.hear())
        await asyncio.wait([hearing, writing], return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            # The server was killed during a commit, and the process would end now.
            broken += 1
            hearing.cancel()
            await store.close()
            store = await PostgresStore.open(url, clock=SystemClock())
            writing = asyncio.create_task(chats.write(store))
        else:
            await hearing
    closing = asyncio.create_task(store.close())
    writing.cancel()
    await asyncio.wait([closing, writing])
    with psycopg.connect(url) as other:
        bodies = dict(other.execute("SELECT id, body FROM notes").fetchall())
    calls = {note // 2 for note in bodies if note % 2 == 0}
    assert len(chats.acknowledged) > KILLS
    assert set(chats.acknowledged) <= calls
    assert calls == {note // 2 for note in bodies if note % 2}, "a unit is there in part"
