"""A cluster under load with faults or an update, and the audit of what its chats and its effects saw."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
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

_FUNCTIONS = """\
import asyncio
import os

from rollcall import MessageContext, tool_function


async def _run(context: MessageContext, city: str) -> str:
    line = f"{context.chat.native} {city}\\n".encode()
    file = os.open(os.environ["CLUSTER_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
    await asyncio.sleep(0.05)
    return f"{city}: sunny"


@tool_function(
    name="get_weather",
    description="The weather in a city",
    examples=("what is the weather in {city}",),
    commands=("outlook",),
    effect="once",
    touches="stays_here",
)
async def get_weather(context: MessageContext, city: str) -> str:
    return await _run(context, city)


@tool_function(
    name="get_forecast",
    description="The forecast, the weather in a city tomorrow",
    examples=("what is the forecast, the weather in {city}",),
    effect="idempotent",
    touches="stays_here",
)
async def get_forecast(context: MessageContext, city: str) -> str:
    return await _run(context, city)
"""
_NEW_FUNCTION = """\
from rollcall import MessageContext, tool_function


@tool_function(name="get_tide", description="The tide in a harbour", effect="reads", touches="stays_here")
async def get_tide(context: MessageContext, harbour: str) -> str:
    return f"{harbour}: high"
"""
_NUMBER = re.compile(r"\bN(\d+)")
_REMINDER = re.compile(r"reminder R(\d+)")
_UNKNOWN = "can't tell whether it took effect"
_STOPPED_GATEWAY_SECONDS = 15.0
"""Another gateway takes the accounts after 12 seconds."""


def _text(number: int) -> str:
    if number % 5 == 0:
        return f"/outlook N{number}"
    if _may_repeat(number):
        return f"What is the forecast, the weather in N{number}?"
    return f"What is the weather in N{number}?"


def _may_repeat(number: int) -> bool:
    """Whether the message has the function with the effect `idempotent`, which runs again after a failure."""
    return number % 5 in (1, 2)


@dataclass(frozen=True, slots=True)
class Load:
    """Size of a run."""

    messages: int
    chats: int
    reminders: int
    seconds: float
    """Time in which the messages are posted."""
    stopped_seconds: float
    """How long a worker is stopped; above 30 seconds its turns run elsewhere meanwhile."""


@dataclass(slots=True)
class Audit:
    """Result of a run."""

    lost: list[str] = field(default_factory=list)
    """Accepted messages without an answer."""
    doubled_replies: list[str] = field(default_factory=list)
    """Messages that were answered twice."""
    wrong: list[str] = field(default_factory=list)
    """Messages with the answer to another one."""
    reordered: list[str] = field(default_factory=list)
    """Chats whose answers or effects are not in the order of the messages."""
    lost_effects: list[str] = field(default_factory=list)
    """Messages whose answer reports an effect that is not recorded, without saying that its outcome is unknown."""
    doubled_effects: list[str] = field(default_factory=list)
    """Messages whose `once` effect is recorded twice."""
    lost_reminders: int = 0
    doubled_reminders: int = 0
    streams: list[str] = field(default_factory=list)
    """Chats in which a reader of the event stream missed an event or received one twice."""
    repeated: int = 0
    """`idempotent` effects that ran again."""
    unknown: int = 0
    """`once` effects with an unknown outcome, which is reported to the chat."""
    exits: list[str] = field(default_factory=list)
    """Processes that exited and were started again."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, reordered or doubled."""
        lists = (self.lost, self.doubled_replies, self.wrong, self.reordered, self.lost_effects, self.doubled_effects)
        return not (any(lists) or self.streams or self.lost_reminders or self.doubled_reminders)


def a_cluster_with_effects(server: PostgresServer, home: Path, stub: str) -> tuple[Cluster, Path]:
    """A cluster without processes, with functions that append chat and city to the returned file."""
    effects = home / "effects"
    os.environ["CLUSTER_EFFECTS"] = str(effects)
    (home / "weather.py").write_text(_FUNCTIONS, encoding="utf-8")
    return Cluster(server.url, home, stub, _sources(home, "weather.py")), effects


def _sources(home: Path, *files: str) -> str:
    return f"sources: {{python: [{', '.join(str(home / name) for name in files)}]}}"


async def run_with_faults(server: PostgresServer, home: Path, stub: str, load: Load) -> Audit:
    """Two gateways and three workers under `load`. A worker, the gateway that holds the account, and the database are
    killed; another worker, and the gateway that has taken over, are stopped for a while."""
    cluster, effects = a_cluster_with_effects(server, home, stub)
    return await _run(cluster, effects, load, 3, lambda: _faults(cluster, server, load.stopped_seconds))


async def run_with_update(server: PostgresServer, home: Path, stub: str, load: Load) -> Audit:
    """Two gateways and two workers under `load` are replaced by ones with an additional function, in the order of
    docs/scaling.md."""
    cluster, effects = a_cluster_with_effects(server, home, stub)
    return await _run(cluster, effects, load, 2, lambda: _update(cluster, home))


async def _run(
    cluster: Cluster, effects: Path, load: Load, workers: int, happens: Callable[[], Coroutine[None, None, None]]
) -> Audit:
    """Two gateways and `workers` under `load`. `happens` begins with the messages."""
    background: list[asyncio.Task[None]] = []
    try:
        await cluster.start("gateway", "gateway1")
        names = [f"worker{number}" for number in range(workers)]
        await asyncio.gather(cluster.start("gateway", "gateway2"), *(cluster.start("worker", name) for name in names))
        await _add_reminders(cluster.url, load)
        background.append(asyncio.create_task(cluster.supervise()))
        messages = [(f"c{number % load.chats}", f"m{number}", _text(number)) for number in range(load.messages)]
        read: dict[str, list[int]] = {f"c{number}": [] for number in range(min(load.chats, 20))}
        async with a_client(cluster.gateways) as client:
            background += [
                asyncio.create_task(client.read(chat, events, start))
                for start, (chat, events) in enumerate(read.items())
            ]
            await asyncio.gather(client.post_all(messages, load.messages / load.seconds), happens())
            await until(lambda: _is_done(cluster, load), every=1.0)
            # Gateways that do not hold the account read events that are two seconds old, every five seconds.
            await asyncio.sleep(8)
        return _audited(cluster, load, effects, read)
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        cluster.end()


async def _update(cluster: Cluster, home: Path) -> None:
    await asyncio.sleep(3)
    (home / "new.py").write_text(_NEW_FUNCTION, encoding="utf-8")
    cluster.more = _sources(home, "weather.py", "new.py")
    await asyncio.gather(cluster.start("worker", "worker2"), cluster.start("worker", "worker3"))
    for name in ("gateway1", "gateway2"):
        await cluster.stop(name)
        await cluster.start("gateway", name)
        await asyncio.sleep(2)
    await asyncio.gather(cluster.stop("worker0"), cluster.stop("worker1"))


async def _faults(cluster: Cluster, server: PostgresServer, stopped_seconds: float) -> None:
    await asyncio.sleep(3)
    cluster.signal("worker0", signal.SIGKILL)
    await asyncio.sleep(1)
    cluster.signal("worker1", signal.SIGSTOP)
    stopped_at = time.monotonic()
    await asyncio.sleep(2)
    cluster.signal(_holder(cluster), signal.SIGKILL)
    await asyncio.sleep(3)
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(1)
    await asyncio.to_thread(server.start)
    await asyncio.sleep(4)
    gateway = _holder(cluster)
    cluster.signal(gateway, signal.SIGSTOP)
    await asyncio.sleep(_STOPPED_GATEWAY_SECONDS)
    cluster.signal(gateway, signal.SIGCONT)
    await asyncio.sleep(max(0.0, stopped_at + stopped_seconds - time.monotonic()))
    cluster.signal("worker1", signal.SIGCONT)


def _holder(cluster: Cluster) -> str:
    """The process that holds the account."""
    rows = cluster.rows("SELECT name FROM cluster_processes WHERE accounts LIKE '%http:main%' ORDER BY seen_ms DESC")
    return next(name for name, process in cluster.processes.items() if f" {process.pid} on " in rows[0][0])


async def _add_reminders(url: str, load: Load) -> None:
    """Reminders that are due during the load, beginning in five seconds."""
    clock = SystemClock()
    store = await PostgresStore.open(url, clock=clock, claims=[])
    timetable, ann = Timetable(store, clock, Ids(clock, 200)), MemberRef("http", "main", "ann")
    drafts = [
        replace(
            a_draft(f"reminder R{number}", later(clock.now(), seconds=5 + load.seconds * number / load.reminders)),
            chat=ChatRef("http", "main", f"r{number % 50}"),
            owner=ann,
            function=REMIND,
            arguments={"text": f"reminder R{number}"},
        )
        for number in range(load.reminders)
    ]
    await timetable.add(drafts, call_key="reminders", most_per_owner=load.reminders)
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


def _audited(cluster: Cluster, load: Load, effects: Path, read: Mapping[str, Sequence[int]]) -> Audit:
    audit = Audit(exits=cluster.exits)
    turns: dict[str, tuple[str, int]] = {}
    reasons: dict[int, str] = {}
    query = "SELECT id, chat, native_id, reason FROM inbox WHERE kind = 'message'"
    for id_, in_chat, native_id, reason in cluster.rows(query):
        turns[str(id_)] = (in_chat.rpartition(":")[2], int(native_id[1:]))
        reasons[int(native_id[1:])] = reason
    answers: dict[str, list[int]] = defaultdict(list)
    texts: dict[int, list[str]] = defaultdict(list)
    reminded: Counter[str] = Counter()
    stored: dict[str, list[int]] = defaultdict(list)
    for id_, in_chat, body, key in cluster.rows("SELECT id, chat, body, native_id FROM http_events ORDER BY id"):
        stored[in_chat.rpartition(":")[2]].append(id_)
        event = orjson.loads(body)
        turn = key.split(":")[1] if key.startswith("bot:") else ""
        reminded.update(_REMINDER.findall(event.get("text", "")))
        if turn in turns and event["type"] == "message":
            chat, number = turns[turn]
            texts[number].append(event["text"])
            answers[chat].append(number)
    done: dict[str, list[int]] = defaultdict(list)
    for line in effects.read_text(encoding="utf-8").splitlines():
        chat, city = line.split()
        done[chat].append(int(city[1:]))
    runs = Counter(number for numbers in done.values() for number in numbers)
    for number in range(load.messages):
        _check(audit, number, reasons[number], texts[number], runs[number])
    audit.reordered = [
        chat for lists in (answers, done) for chat, numbers in lists.items() if numbers != sorted(numbers)
    ]
    audit.lost_reminders = sum(not reminded[str(number)] for number in range(load.reminders))
    audit.doubled_reminders = sum(count - 1 for count in reminded.values())
    audit.streams = [
        f"{chat}: {len(set(stored[chat]) - set(ids))} missed, {len(ids) - len(set(ids))} twice"
        for chat, ids in read.items()
        if ids != stored[chat]
    ]
    return audit


def _check(audit: Audit, number: int, reason: str, texts: Sequence[str], runs: int) -> None:
    """Compare the answers to a message with the recorded runs of its function."""
    name = f"m{number} ({reason}): {' | '.join(texts)}"
    known = [int(found[1]) for text in texts if (found := _NUMBER.search(text)) is not None]
    # Then the model, which is a stub, reports the weather too.
    is_unknown = any(_UNKNOWN in text for text in texts) and not _may_repeat(number)
    if not texts:
        audit.lost.append(name)
    # The function and the model answer once each.
    if len(texts) > min(2, len(set(texts))):
        audit.doubled_replies.append(name)
    if any(found != number for found in known) or (texts and not known and not is_unknown):
        audit.wrong.append(name)
    audit.unknown += is_unknown
    if known and not runs and not is_unknown:
        audit.lost_effects.append(name)
    if runs > 1 and _may_repeat(number):
        audit.repeated += 1
    elif runs > 1:
        audit.doubled_effects.append(name)
