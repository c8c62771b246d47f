"""A cluster under load with faults, and the audit of what its chats and its effects saw."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from services.clock import SystemClock
from services.refs import ChatRef, MemberRef
from services.store.ids import Ids
from services.store.postgres.store import PostgresStore
from services.timers.reminders import FUNCTION as REMIND
from services.timers.timetable import Timetable
from tests.fakes.drafts import a_draft, later
from tests.harness.cluster import Cluster, a_client, until
from tests.harness.postgres_server import PostgresServer

FUNCTION = '''\
import os

from rollcall import MessageContext, tool_function


@tool_function(
    name="get_weather",
    description="The weather in a city",
    examples=("what is the weather in {city}",),
    effect="once",
    touches="stays_here",
)
async def get_weather(context: MessageContext, city: str) -> str:
    """Record the run outside of the process."""
    line = f"{context.chat.native} {city}\\n".encode()
    file = os.open(os.environ["CLUSTER_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
    return "sunny"
'''
_NUMBER = re.compile(r"weather in N(\d+)")


@dataclass(frozen=True, slots=True)
class Load:
    """Size of a run."""

    messages: int
    chats: int
    reminders: int
    stopped_seconds: float
    """How long a worker is stopped; above 30 seconds its turns run elsewhere meanwhile."""


@dataclass(slots=True)
class Audit:
    """What happened: all zero or empty if the promises hold."""

    lost: list[str] = field(default_factory=list)
    """Accepted messages without an answer."""
    doubled_replies: int = 0
    reordered: list[str] = field(default_factory=list)
    """Chats whose answers or effects are not in the order of the messages."""
    doubled_effects: int = 0
    lost_reminders: int = 0
    doubled_reminders: int = 0
    unknown: int = 0
    """Effects whose outcome is unknown because their worker was killed, which the chat was told; no fault."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, reordered or doubled."""
        counts = (self.doubled_replies, self.doubled_effects, self.lost_reminders, self.doubled_reminders)
        return not (self.lost or self.reordered or any(counts))


async def run_with_faults(server: PostgresServer, home: Path, stub: str, load: Load) -> Audit:
    """Two gateways and three workers under `load`, while a worker, the gateway that holds the account, and the database
    are killed, and another worker is stopped."""
    effects = home / "effects"
    os.environ["CLUSTER_EFFECTS"] = str(effects)
    (home / "weather.py").write_text(FUNCTION, encoding="utf-8")
    cluster = Cluster(server.url, home, stub, f"sources: {{python: [{home}/weather.py]}}")
    supervising: asyncio.Task[None] | None = None
    try:
        await cluster.start("gateway", "gateway1")
        await cluster.start("gateway", "gateway2")
        for number in range(3):
            await cluster.start("worker", f"worker{number}")
        await _add_reminders(server.url, load.reminders)
        supervising = asyncio.create_task(cluster.supervise())
        async with a_client(cluster.gateways) as client:
            messages = [
                (f"c{number % load.chats}", f"m{number}", f"What is the weather in N{number}?")
                for number in range(load.messages)
            ]
            posting = asyncio.create_task(client.post_all(messages))
            faults = asyncio.create_task(_faults(cluster, server, load.stopped_seconds))
            await posting
            await faults
        await until(lambda: _is_done(cluster, load), every=1.0)
        return _audited(cluster, load, effects)
    finally:
        if supervising is not None:
            supervising.cancel()
        cluster.end()


async def _faults(cluster: Cluster, server: PostgresServer, stopped_seconds: float) -> None:
    await asyncio.sleep(3)
    cluster.signal("worker0", signal.SIGKILL)
    await asyncio.sleep(1)
    cluster.signal("worker1", signal.SIGSTOP)
    await asyncio.sleep(2)
    holder = cluster.rows("SELECT name FROM cluster_processes WHERE accounts LIKE '%http:main%' ORDER BY seen_ms DESC")
    gateway = next(name for name, process in cluster.processes.items() if f" {process.pid} on " in holder[0][0])
    cluster.signal(gateway, signal.SIGKILL)
    await asyncio.sleep(3)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(1)
    await asyncio.to_thread(server.start)
    await asyncio.sleep(stopped_seconds - 6)
    cluster.signal("worker1", signal.SIGCONT)


async def _add_reminders(url: str, count: int) -> None:
    """Reminders of which one is due every few milliseconds from ten seconds on."""
    clock = SystemClock()
    store = await PostgresStore.open(url, clock=clock, claims=[])
    timetable, ann = Timetable(store, clock, Ids(clock, 200)), MemberRef("http", "main", "ann")
    drafts = [
        replace(
            a_draft(f"reminder R{number}", later(clock.now(), seconds=10 + 20 * number / count)),
            chat=ChatRef("http", "main", f"r{number % 50}"),
            owner=ann,
            function=REMIND,
            arguments={"text": f"reminder R{number}"},
        )
        for number in range(count)
    ]
    await timetable.add(drafts, call_key="reminders", most_per_owner=count)
    await store.close()


async def _is_done(cluster: Cluster, load: Load) -> bool:
    """Whether every message is answered, every answer sent, and no reminder is due. False while the database is
    away."""
    try:
        ((waiting, accepted),) = cluster.rows(
            "SELECT count(*) FILTER (WHERE reason = 'waiting'), count(*) FILTER (WHERE kind = 'message') FROM inbox"
        )
        ((unsent,),) = cluster.rows("SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')")
        ((due,),) = cluster.rows("SELECT count(*) FROM occurrences WHERE state = 'due'")
    except Exception:  # noqa: BLE001 - the server is away
        return False
    return bool(accepted == load.messages and waiting == unsent == due == 0)


def _audited(cluster: Cluster, load: Load, effects: Path) -> Audit:
    audit = Audit()
    turns = {
        str(turn): (chat.rpartition(":")[2], int(native_id[1:]))
        for turn, chat, native_id in cluster.rows("SELECT id, chat, native_id FROM inbox WHERE kind = 'message'")
    }
    answers: dict[str, list[int]] = defaultdict(list)
    seen: dict[int, Counter[str]] = defaultdict(Counter)
    reminded: Counter[str] = Counter()
    for body, key in cluster.rows("SELECT body, native_id FROM http_events ORDER BY id"):
        event = orjson.loads(body)
        turn = key.split(":")[1] if key.startswith("bot:") else ""
        for name in re.findall(r"reminder R(\d+)", event.get("text", "")):
            reminded[name] += 1
        if turn in turns:
            chat, number = turns[turn]
            seen[number][event.get("text", "")] += 1
            if not answers[chat] or answers[chat][-1] != number:
                answers[chat].append(number)
    audit.lost = [f"m{number}" for number in range(load.messages) if not seen[number]]
    audit.doubled_replies = sum(count - 1 for texts in seen.values() for count in texts.values())
    audit.unknown = sum(not any(_NUMBER.search(text) for text in texts) for texts in seen.values())
    done: dict[str, list[int]] = defaultdict(list)
    for line in effects.read_text(encoding="utf-8").splitlines():
        chat, city = line.split()
        done[chat].append(int(city[1:]))
    audit.doubled_effects = sum(len(numbers) - len(set(numbers)) for numbers in done.values())
    audit.reordered = [
        chat for lists in (answers, done) for chat, numbers in lists.items() if numbers != sorted(numbers)
    ]
    audit.lost_reminders = sum(not reminded[str(number)] for number in range(load.reminders))
    audit.doubled_reminders = sum(count - 1 for count in reminded.values())
    return audit
