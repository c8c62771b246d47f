"""Several daemon processes on one PostgreSQL database: one leads, and its work is taken over once."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psycopg
import pytest

from tests.fakes.faulty_server import FaultyServer
from tests.harness.leading_daemons import LeadingDaemon, a_daemon_beside_others
from tests.harness.postgres_server import PostgresServer
from tests.services.llm.wire import a_body

ROWS = "G_faults/scheduler_cases.jsonl"
SHORT, LONG = 3.0, 60.0
AT_ONCE_SECONDS = 15.0
"""Enough to build a daemon on a busy machine, and much shorter than LONG."""
Start = Callable[[str, str, float], AbstractAsyncContextManager[LeadingDaemon]]


class Model:
    """A language model for all daemons. Its first answer waits for `goes_on`, all others are immediate."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def answer(self) -> AsyncIterator[bytes]:
        if not self.asked.is_set():
            self.asked.set()
            await self.goes_on.wait()
        body = json.dumps(a_body("Hello, Ann.")).encode()
        yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        yield b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body)


def expected(data: Callable[[str], Path], row: str) -> str:
    """Expected outcome of the case `row` of the corpus."""
    lines = data(ROWS).read_text(encoding="utf-8").splitlines()
    (found,) = [case for case in map(json.loads, lines) if case["id"] == row]
    return str(found["expect"])


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """An empty database; the first leader creates the tables."""
    return postgres_server.new_database()


@pytest.fixture
def start(tmp_path: Path, url: str) -> Start:
    """Start a daemon with that name and model."""

    def daemon(name: str, model: str, lease_seconds: float) -> AbstractAsyncContextManager[LeadingDaemon]:
        return a_daemon_beside_others(tmp_path / name, url, model, lease_seconds=lease_seconds)

    return daemon


def names(daemon: LeadingDaemon) -> str:
    """Name of the leader, for this process."""
    return f"process {daemon.process.pid} on "


@pytest.mark.requirement("D41")
async def test_two_daemons_on_one_database_fire_what_is_due_once_although_the_first_is_killed(
    data: Callable[[str], Path], start: Start
) -> None:
    assert expected(data, "sched-fault-09").startswith("one fire")
    model = Model()
    async with FaultyServer(model.answer) as server, start("first", server.base_url, SHORT) as first:
        ann = await first.leads()
        async with start("second", server.base_url, SHORT) as second:
            assert (await second.stands_by()).startswith(names(first))
            await ann.say("family", "m1", "/remind in 1 second tea")
            await ann.say("work", "m2", "/remind in 6 seconds cake")
            assert len(await ann.hears("family", 2)) == 2
            await ann.say("club", "m3", "@Rollcall how are you?")
            await model.asked.wait()
            first.signal(signal.SIGKILL)
            ann = await second.leads()
            assert await ann.hears("club", 1) == ["Hello, Ann."]
            work = await ann.hears("work", 2)
            assert [text.rpartition(" ")[2] for text in work] == ["cake", "cake"]
            await ann.say("work", "m4", "/calculate 6*7")
            await ann.hears("work", 3)
            # A repeated message would have arrived by now.
            assert len(await ann.hears("family", 2)) == 2
            assert len(await ann.hears("club", 1)) == 1
            assert len(await ann.hears("work", 3)) == 3
            second.signal(signal.SIGTERM)
            assert await second.ended() == 0


@pytest.mark.requirement("D41")
async def test_a_leader_that_was_paused_past_its_lease_changes_and_says_nothing_and_ends(
    data: Callable[[str], Path], start: Start
) -> None:
    assert expected(data, "sched-fault-10") == "fenced: its late commit is rejected"
    model = Model()
    async with FaultyServer(model.answer) as server, start("first", server.base_url, SHORT) as first:
        ann = await first.leads()
        async with start("second", server.base_url, SHORT) as second:
            await second.stands_by()
            await ann.say("family", "m1", "@Rollcall how are you?")
            await model.asked.wait()
            await ann.say("work", "m2", "/remind in 4 seconds cake")
            await ann.hears("work", 1)
            first.signal(signal.SIGSTOP)
            ann = await second.leads()
            assert await ann.hears("family", 1) == ["Hello, Ann."]
            await ann.hears("work", 2)
            # When it wakes up, its answer and a due timer are pending.
            model.goes_on.set()
            first.signal(signal.SIGCONT)
            assert await first.ended() == 1
            (told,) = [line for line in first.events() if line["event"] == "leads_no_more"]
            assert "another" in told["problem"]
            await ann.say("family", "m3", "/calculate 6*7")
            assert (await ann.hears("family", 2))[0] == "Hello, Ann."
            assert len(await ann.hears("family", 2)) == 2
            assert len(await ann.hears("work", 2)) == 2


async def test_a_leader_hands_over_immediately_on_shutdown_and_a_standby_stops_on_sigterm(
    start: Start,
) -> None:
    model = "http://127.0.0.1:9/v1"
    async with start("first", model, LONG) as first:
        ann = await first.leads()
        await ann.say("family", "m1", "/calculate 6*7")
        await ann.hears("family", 1)
        async with start("second", model, LONG) as second:
            await second.stands_by()
            first.signal(signal.SIGTERM)
            assert await first.ended() == 0
            since = time.monotonic()
            ann = await second.leads()
            assert time.monotonic() - since < AT_ONCE_SECONDS
            await ann.say("family", "m2", "/calculate 6*8")
            assert len(await ann.hears("family", 2)) == 2
            async with start("third", model, LONG) as third:
                assert (await third.stands_by()).startswith(names(second))
                third.signal(signal.SIGTERM)
                assert await third.ended() == 0
                assert "http://" not in third.printed


async def test_a_leader_that_cannot_keep_its_lease_ends_and_says_so(start: Start, url: str) -> None:
    async with start("first", "http://127.0.0.1:1", SHORT) as first:
        await first.leads()
        with psycopg.connect(url, autocommit=True) as server:
            server.execute("ALTER TABLE leases RENAME TO somewhere_else")
        assert await first.ended() == 1
        (told,) = [event for event in first.events() if event["event"] == "lease_cannot_be_kept"]
        assert "has no tables of this program" in json.dumps(told)
        assert "stopped" in [event["event"] for event in first.events()]
