"""Timers: start of a daemon with very many of them, cost of claiming due ones, and latency for members while thousands
are due in the same second."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from statistics import quantiles

from benchmarks.functions import commands
from benchmarks.measuring import Driver, Effort, Figure, Load, Sample, median, rounds
from benchmarks.world import MemoryNetwork, a_daemon, ask, chat_of, message
from bot.daemon import Daemon
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef
from services.store.port import Row, Write
from services.store.turns import due, timers
from services.timers.timetable import Draft, TimerKind
from services.times.recurrence import Once, Rule

_AT_ONCE = 500
_IN_ONE_SECOND = 0.05
"""Share of the timers that are due in the same second."""
_PER_MEMBER = 50
_PER_CHAT = 2
_PAUSE_SECONDS = 0.02
_AHEAD = timedelta(minutes=50)
_LATENCY_MORE = 0.1
_FAR_MS = 30 * 86_400_000


class MovedClock(SystemClock):
    """The system clock, advanced by the benchmark."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead

    def now_ms(self) -> int:
        return super().now_ms() + int(self.ahead.total_seconds() * 1000)


def _draft(number: int, at: datetime) -> Draft:
    chat = ChatRef(*chat_of(1000 + number // _PER_CHAT))
    return Draft(
        kind=TimerKind.REMINDER,
        bot="default",
        chat=chat,
        is_group=True,
        private_to=None,
        owner=MemberRef(chat.platform, chat.account, f"m{number // _PER_MEMBER}"),
        owner_name="Ann",
        members=(),
        function="cmd1",
        arguments={"n": number},
        title=f"number {number}",
        rule=Rule(Once(at.replace(tzinfo=None))),
        zone="UTC",
    )


async def _fill(daemon: Daemon, count: int, due_at: datetime) -> None:
    """Store `count` timers: a share is due in the second `due_at`, the number to claim shortly before, the rest
    later."""
    together = int(count * _IN_ONE_SECOND)
    for first in range(0, count, _AT_ONCE):
        drafts = [
            _draft(number, due_at if number < together else due_at + timedelta(hours=1, seconds=number))
            for number in range(first, min(count, first + _AT_ONCE))
        ]
        await daemon.timetable.add(drafts, call_key=f"fill {first}", most_per_owner=_PER_MEMBER)


async def _claim(daemon: Daemon, count: int) -> float:
    """Seconds to find `count` due timers among all, and to claim them in separate units."""
    now_ms = SystemClock().now_ms() + _FAR_MS
    before = time.perf_counter()
    page = await daemon.store.read(due.page(now_ms, (-1, 0), count))
    units: list[Sequence[Write]] = []
    for one in page:
        (row,) = await daemon.store.read(due.row(one["id"]))
        units.append(_claiming(row, now_ms))
    await asyncio.gather(*map(daemon.store.commit, units))
    return time.perf_counter() - before


def _claiming(row: Row, now_ms: int) -> Sequence[Write]:
    moment = {"wall": row["wall"], "due_ms": row["due_ms"]}
    return [
        due.claim(row["occurrence_id"], revision=row["revision"], now_ms=now_ms, turn_id=row["id"], **moment),
        timers.fired(row["id"], passed=1, at_ms=now_ms, turn_id=row["id"]),
        timers.end(row["id"], now_ms),
    ]


async def _latencies(daemon: Daemon, network: MemoryNetwork, seconds: float, begun: Callable[[], bool]) -> list[float]:
    """Latencies of members of other chats, who send messages one after the other."""
    found: list[float] = []
    until, number = time.perf_counter() + seconds, 0
    while time.perf_counter() < until or not begun():
        asked = time.perf_counter()
        number += 1
        await ask(daemon, network, message(f"/cmd{number % 20} {number}", time.time_ns(), chat_of(number % 50)))
        found.append(time.perf_counter() - asked)
        await asyncio.sleep(_PAUSE_SECONDS)
    return found


async def many(load: Load) -> Sample:
    """A daemon with `count` timers: its start, a claim, and the second with a share of them due."""
    clock, specs = MovedClock(), commands(20)
    together = int(load.count * _IN_ONE_SECOND)
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as folder:
        home = Path(folder)
        async with a_daemon(specs, home=home, clock=clock) as (daemon, _):
            due_at = (clock.now() + _AHEAD).replace(microsecond=0)
            await _fill(daemon, load.count, due_at)
        before = time.perf_counter()
        async with a_daemon(specs, home=home, clock=clock) as (daemon, network):
            start = time.perf_counter() - before
            ticking = asyncio.create_task(_tick(daemon))
            idle = await _latencies(daemon, network, min(4.0, load.count / 25_000), lambda: True)
            clock.ahead = due_at - SystemClock().now()
            began = time.perf_counter()
            busy = await _latencies(daemon, network, 0.0, lambda: daemon.timers.outcomes.total() >= together)
            said = time.perf_counter() - began
            ticking.cancel()
            await asyncio.wait([ticking])
            claim = await _claim(daemon, min(_AT_ONCE, load.count - together))
    quiet, loaded = _p95(idle), _p95(busy)
    allowed = max(2 * quiet, quiet + _LATENCY_MORE)
    latency = {"latency": loaded / allowed, "idle": quiet, "busy": loaded, "longest": max(busy)}
    return {"start": start, "said": said, "claim": claim, **latency}


async def _tick(daemon: Daemon) -> None:
    while True:
        await daemon.timers.tick()
        await asyncio.sleep(1.0)


def _p95(seconds: list[float]) -> float:
    return quantiles([*seconds, *seconds], n=20)[-1]


def timer_figures(effort: Effort) -> list[Figure]:
    """A hundred thousand timers, five thousand of them in the same second."""
    count = max(40, effort.count(100_000))
    samples = rounds({"many": ("timers.many", Load(count=count))}, effort)["many"]
    together = int(count * _IN_ONE_SECOND)
    words = {
        "start": (f"a start with {count} to come", "seconds", 5.0),
        "claim": (f"{min(_AT_ONCE, count - together)} that are due: found among all and claimed", "seconds", 0.05),
        "said": (f"{together} due in one second, until the last one is begun", "seconds", 30.0),
        "latency": ("answers elsewhere meanwhile, p95, to max(2 x idle, idle + 0.1 s)", "ratio", 1.0),
        "idle": ("answers with nothing due, p95", "seconds", 1.0),
        "busy": ("answers elsewhere while all those are due, p95", "seconds", 1.0),
        "longest": ("the longest of them", "seconds", 0.25),
    }
    return [Figure("timers", text, unit, median(samples, fact), limit) for fact, (text, unit, limit) in words.items()]


DRIVERS: dict[str, Driver] = {"many": many}
FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {"timers": timer_figures}
