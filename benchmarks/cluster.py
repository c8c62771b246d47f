"""Throughput, latency and take-over of a cluster on this machine.

    python -m benchmarks.cluster [FIGURE …] [--turns 3000]

Processes of `rollcall run` on a PostgreSQL server of its own, a model stub that answers in 300 ms, and messages over
the HTTP API. Figures: `turns` (a backlog over 500 chats with 1, 2 and 3 workers), `latency` (30 turns per second over
300 chats, with 5 slow chats), `commands` (on idle chats), `takeover` (of a killed gateway), `start` (with a million
messages and 100,000 timers). Prints one JSON line per figure; all figures by default.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.stub import a_stub
from services.clock import SystemClock
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.postgres.store import PostgresStore
from services.timers.timetable import Timetable
from tests.fakes.drafts import a_draft, later
from tests.harness.cluster import Client, Cluster, a_client, until
from tests.harness.postgres_server import PostgresServer

_CHATS = 500


@asynccontextmanager
async def _a_cluster(workers: int) -> AsyncIterator[tuple[Cluster, Client]]:
    """A cluster with one gateway on a new database, and a client of its gateways."""
    server = PostgresServer()
    server.start()
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as home, a_stub(0.3, "--text") as stub:
        cluster = Cluster(server.url, Path(home), stub)
        try:
            await cluster.start("gateway", "gateway")
            for number in range(workers):
                await cluster.start("worker", f"worker{number}")
            # The gateway learns of the workers from their heartbeats.
            await asyncio.sleep(4)
            async with a_client(cluster.gateways) as client:
                yield cluster, client
        finally:
            cluster.end()
            server.remove()


async def _sent(cluster: Cluster, count: int) -> None:
    """Wait until the bot has sent `count` messages in all."""

    async def are_sent() -> bool:
        return int(cluster.rows("SELECT count(*) FROM outbox WHERE state = 'sent'")[0][0]) >= count

    await until(are_sent, every=0.25)


def _cpu_seconds(cluster: Cluster) -> dict[str, float]:
    """CPU time so far of the gateway, of all workers, and of the server's sessions."""
    pids = {"server": [row[0] for row in cluster.rows("SELECT pid FROM pg_stat_activity")]}
    for name, process in cluster.processes.items():
        pids.setdefault("gateway" if name == "gateway" else "workers", []).append(process.pid)
    return {name: sum(map(_cpu_of, found)) for name, found in pids.items()}


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def turns(count: int) -> dict[str, Any]:
    """Turns per second between 10 and 80 % of a backlog, and CPU time of gateway and workers, by number of workers."""
    figures: dict[str, Any] = {}
    done = 0
    async with _a_cluster(0) as (cluster, client):
        for workers in (1, 2, 3):
            await cluster.start("worker", f"worker{workers}")
            await asyncio.sleep(4)
            backlog, before, began_ms = count * workers // 3, _cpu_seconds(cluster), time.time() * 1000
            names = [(f"c{number % _CHATS}", f"t{workers}-{number}") for number in range(backlog)]
            await client.post_all([(chat, name, f"question {name}") for chat, name in names])
            done += backlog
            await _sent(cluster, done)
            found = cluster.rows(f"SELECT ended_ms FROM inbox WHERE received_ms >= {began_ms:.0f} ORDER BY ended_ms")
            first, last = found[len(found) // 10][0], found[len(found) * 8 // 10][0]
            figures[f"turns_per_second_{workers}"] = round(len(found) * 0.7 / (last - first) * 1000, 1)
            after = _cpu_seconds(cluster)
            spent = {part: round((after[part] - before[part]) / backlog * 1000, 2) for part in after}
            figures[f"cpu_ms_per_turn_{workers}"] = spent
    return {**figures, "ratio": round(figures["turns_per_second_3"] / figures["turns_per_second_1"], 2)}


async def latency(count: int) -> dict[str, Any]:
    """Added latency in ms of turns in ordinary chats at 30 turns per second: end − acceptance − 300. The model takes 5
    seconds for the slow chats."""
    count = min(count, 1800)
    async with _a_cluster(3) as (cluster, client):
        # The first turns of a process compile and import.
        await client.post_all([(f"w{number}", f"w{number}", "warm up") for number in range(100)])
        await _sent(cluster, 100)
        began_ms, began, posts = time.time() * 1000, time.monotonic(), set[asyncio.Task[None]]()
        for number in range(count):
            # One message in 75 is for a slow chat: each gets one every 12.5 seconds.
            is_slow = number % 75 == 0
            chat, text = (f"slow{number // 75 % 5}", "slowly") if is_slow else (f"c{number * 7 % 300}", "question")
            posts.add(asyncio.create_task(client.post_until_accepted(chat, f"l{number}", text)))
            await asyncio.sleep(max(0.0, began + number / 30 - time.monotonic()))
        await asyncio.gather(*posts)
        await _sent(cluster, count + 100)
        found = cluster.rows(
            "SELECT ended_ms - received_ms - 300 FROM inbox "
            f"WHERE received_ms >= {began_ms:.0f} AND chat NOT LIKE '%slow%' ORDER BY 1"
        )
    added = [row[0] for row in found]
    parts = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
    return {
        "turns": len(added),
        **{name: added[int(len(added) * part)] for name, part in parts.items()},
        "max_ms": added[-1],
    }


async def commands(count: int) -> dict[str, Any]:
    """Commands per second on idle chats through one gateway, next to three workers."""
    async with _a_cluster(3) as (cluster, client):
        began_ms = time.time() * 1000
        await client.post_all(
            [(f"c{number % 2000}", f"k{number}", "/roll 2d6") for number in range(2 * count)], at_once=128
        )
        await _sent(cluster, 2 * count)
        (last,) = cluster.rows("SELECT max(ended_ms) FROM inbox")[0]
    return {"commands_per_second": round(2 * count / (last - began_ms) * 1000, 1)}


async def takeover(count: int) -> dict[str, Any]:
    """Seconds from the kill of the gateway that holds the account until another one has accepted and answered; the
    longest of `count` / 1000 kills."""
    seconds: list[float] = []
    async with _a_cluster(1) as (cluster, client):
        await client.post_until_accepted("c1", "first", "/roll 2d6")
        await cluster.start("gateway", "gateway2")
        await asyncio.sleep(3)
        holder, other = "gateway", "gateway2"
        for number in range(max(count // 1000, 1)):
            await _sent(cluster, number + 1)
            cluster.signal(holder, signal.SIGKILL)
            began = time.monotonic()
            await client.post_until_accepted("c1", f"k{number}", "/roll 2d6")
            await _sent(cluster, number + 2)
            seconds.append(time.monotonic() - began)
            await cluster.start("gateway", holder)
            await asyncio.sleep(3)
            holder, other = other, holder
    return {"kills": len(seconds), "longest_seconds": round(max(seconds), 2)}


_FILL = """
INSERT INTO history (id, chat, native_id, sender, sender_name, from_bot, text, at_ms, reply_to_name, change)
    SELECT n, 'http:main:c' || n % 5000, 'h' || n, 'http:main:u1', 'Ann', 0, 'A message of usual length', n, '', ''
    FROM generate_series(1, 1000000) AS n;
INSERT INTO inbox (id, key, chat, native_id, sender, sender_name, kind, body, received_ms, reason, detail, ended_ms,
    epoch, attempts) SELECT n, 'k' || n, 'http:main:c' || n % 5000, 'h' || n, 'http:main:u1', 'Ann', 'message', '', n,
    'not_addressed', '', n, 1, 0 FROM generate_series(1, 1000000) AS n;
ANALYZE history; ANALYZE inbox;
"""


async def start(count: int) -> dict[str, Any]:
    """Seconds until a gateway is ready with a million messages and 100,000 reminders."""
    del count
    async with _a_cluster(0) as (cluster, client):
        await cluster.stop("gateway")
        await _add_reminders(cluster.url)
        with psycopg.connect(cluster.url, autocommit=True) as database:
            database.execute(_FILL)
            for table, numbers in (("timers", ("id", "number")), ("occurrences", ("id", "timer_id"))):
                _multiply(database, table, numbers)
        began = time.monotonic()
        await cluster.start("gateway", "gateway")
        await client.post_until_accepted("c1", "first", "/roll 2d6")
        ready = time.monotonic() - began
        pages = int(Path(f"/proc/{cluster.processes['gateway'].pid}/statm").read_text(encoding="ascii").split()[1])
    return {"ready_seconds": round(ready, 2), "memory_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)}


def _multiply(database: psycopg.Connection[Any], table: str, numbers: Sequence[str]) -> None:
    """Copy each row of `table` 99 times, with other values in the columns `numbers` and in the key of the call."""
    found = database.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position", (table,)
    )
    columns = [row[0] for row in found]
    others = {name: f"{name} + 10000000000 * copy" for name in numbers} | {"call_key": "call_key || '-' || copy"}
    values = ", ".join(others.get(name, name) for name in columns)
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table}, generate_series(1, 99) AS copy"
    )
    database.execute(statement.encode())


async def _add_reminders(url: str) -> None:
    clock = SystemClock()
    store = await PostgresStore.open(url, clock=clock)
    timetable = Timetable(store, clock, Ids(clock))
    draft = a_draft("drink", later(clock.now(), hours=12))
    drafts = [replace(draft, chat=ChatRef("http", "main", f"c{number}")) for number in range(1000)]
    await timetable.add(drafts, call_key="reminders", most_per_owner=1000)
    await store.close()


FIGURES = {"turns": turns, "latency": latency, "commands": commands, "takeover": takeover, "start": start}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FIGURE", help=f"of {', '.join(FIGURES)}; all by default")
    parser.add_argument("--turns", type=int, default=3000, help="number of turns of the largest run")
    options = parser.parse_args()
    for name in options.names or FIGURES:
        load = round(os.getloadavg()[0], 1)
        figures = asyncio.run(FIGURES[name](options.turns))
        print(json.dumps({"figure": name, "load_before": load, **figures}), flush=True)


if __name__ == "__main__":
    main()
