"""The database server dies and restarts while a daemon runs: nothing accepted is lost or repeated."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from tests.fakes.held import until
from tests.harness.audit import problems
from tests.harness.daemon_process import BROKEN
from tests.harness.nursery import Nursery
from tests.harness.outside import Outside, Said, an_outside
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

DEATHS = 5
RESUMES_SECONDS = 10.0


def talk(number: int) -> list[Said]:
    """Messages of members between two failures: each thing is paid for or kept once."""
    said = []
    for chat in range(8):
        for place in range(4):
            item = f"i{number}x{chat}x{place}"
            text = (f"/pay {item}", f"@Rollcall keep {item}", f"@Rollcall pay {item}", f"/keep {item}")[place]
            said.append(Said(f"m{item}", f"c{chat}", "Ann", text))
    return said


async def died_and_was_back(outside: Outside, server: PostgresServer, pid: int, shown: int) -> int:
    """Kill the server after that many sent messages and restart it; returns the process id of the daemon that
    continues."""
    await until(lambda: len(outside.visible) >= shown)
    server.kill()
    await asyncio.to_thread(server.start)
    settling = asyncio.create_task(outside.settled())
    ending = asyncio.create_task(outside.ended.wait())
    async with asyncio.timeout(RESUMES_SECONDS):
        await asyncio.wait([settling, ending], return_when=asyncio.FIRST_COMPLETED)
        if outside.ended.is_set():
            # The outcome of a commit was unknown, so the daemon ended; a supervisor restarts it.
            settling.cancel()
            assert outside.nursery.status(pid) == BROKEN
            pid = await outside.start()
            outside.redeliver()
            await outside.settled()
        await asyncio.gather(settling, return_exceptions=True)
        ending.cancel()
    return pid


async def test_a_server_that_dies_under_load_loses_and_doubles_nothing(
    mortal_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = mortal_postgres_server.new_database(as_a_daemon_makes_it)
    chance = random.Random(20260105)
    with Nursery(tmp_path / "stderr") as nursery:
        async with an_outside(tmp_path, nursery, store_url=url) as outside:
            pid = await outside.start()
            for number in range(DEATHS):
                shown = len(outside.visible) + chance.randint(1, 12)
                outside.deliver(*talk(number))
                pid = await died_and_was_back(outside, mortal_postgres_server, pid, shown)
            assert await outside.stop(pid) == 0
            assert len(outside.said) == DEATHS * 32
            assert problems(outside) == []
