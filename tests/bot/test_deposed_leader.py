"""A daemon that has lost its leadership sends nothing more, and its pending messages are not lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot.database.leadership import Leading
from bot.platforms.base import Limits, Outgoing, Receipt, SendFailed
from bot.testing import Group, TestPlatform, a_group
from function_calls.call import Call
from function_calls.spec import FunctionResult, Message
from services.clock import VirtualClock
from services.store.port import StoreFenced
from services.store.postgres.lease import PostgresLease
from services.store.turns.outbox import OUTBOX
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import kept
from tests.harness.postgres_server import PostgresServer, as_a_daemon_makes_it

SECONDS = 15.0
once_or_not = pytest.mark.parametrize("idempotent", [True, False], ids=["with keys", "without keys"])


def limits(*, idempotent: bool) -> Limits:
    return replace(TestPlatform().limits, sends_are_idempotent=idempotent)


class Watched(TestPlatform):
    """A network that reads the database with a separate connection at each send."""

    def __init__(self, limits: Limits, url: str) -> None:
        super().__init__(limits)
        self._url = url
        self.states: list[str | None] = []

    async def send(self, outgoing: Outgoing) -> Receipt:
        with psycopg.connect(self._url) as looking:
            row = looking.execute("SELECT state FROM outbox WHERE key = %s", (outgoing.key,)).fetchone()
        self.states.append(row[0] if row else None)
        return await super().send(outgoing)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database(as_a_daemon_makes_it)


async def three_messages(context: object, arguments: dict[str, Any], call: Call) -> FunctionResult:
    return FunctionResult(messages=tuple(Message(text) for text in ("One.", "Two.", "Three.")))


@asynccontextmanager
async def a_leader(url: str, holder: str, home: Path, platform: TestPlatform) -> AsyncIterator[tuple[Group, Leading]]:
    """A leading daemon on the database; its lease depends on a clock controlled by the test."""
    clock = VirtualClock()
    lead = Leading(PostgresLease(url, holder, SECONDS, partial(as_a_daemon_makes_it, url)), clock, SECONDS)
    assert await lead.try_to_begin() is None
    try:
        async with a_group(
            [Recorder("count", does=three_messages, commands=["count"]).spec],
            home=home / holder,
            settings={"store": {"url": url}},
            platform=platform,
            clock=clock,
            lead=lead,
            guard=lead.guard,
        ) as group:
            yield group, lead
    finally:
        await lead.end()


def lease_runs_out(url: str) -> None:
    """Expire the lease on the server."""
    with psycopg.connect(url, autocommit=True) as server:
        assert server.execute("UPDATE leases SET until_ms = 0").rowcount == 1


@once_or_not
async def test_what_is_sent_stands_in_the_database_as_being_sent(url: str, tmp_path: Path, idempotent: bool) -> None:
    platform = Watched(limits(idempotent=idempotent), url)
    async with a_leader(url, "first", tmp_path, platform) as (group, _):
        assert await group.say("Ann", "/count") == ["One.", "Two.", "Three."]
    assert platform.states == ["sending"] * 3


@once_or_not
async def test_what_a_leader_had_in_hand_when_it_was_deposed_is_sent_by_the_next_one(
    url: str, tmp_path: Path, idempotent: bool
) -> None:
    first = TestPlatform(limits(idempotent=idempotent))
    # Its first message waits for a retry when the leader is paused.
    first.failures = [SendFailed("not now", retryable=True, retry_after_seconds=60.0)]
    second = TestPlatform(limits(idempotent=idempotent))
    async with a_leader(url, "first", tmp_path, first) as (late, lead):
        await late.hear("Ann", "/count")
        await late.daemon.engine.idle()
        await until(lambda: not first.failures)
        lease_runs_out(url)
        async with a_leader(url, "second", tmp_path, second) as (group, _):
            await late.clock.advance(3600)
            with pytest.raises(StoreFenced):
                await lead.sure()
            await late.daemon.delivery.idle()
            assert first.sent == []
            with pytest.raises(StoreFenced):
                await late.daemon.store.commit([])
            await group.settle()
            assert {state for (state,) in await kept(group, OUTBOX.c.state)} == {"sent"}
    assert first.sent == []
    said = [one.text.split("\n")[0] for one in second.sent]
    assert said == ["One.", "Two.", "Three."]
    assert ["\n" in one.text for one in second.sent] == [not idempotent, False, False]


async def test_a_leader_that_is_not_sure_sends_when_it_is(url: str, tmp_path: Path) -> None:
    platform = TestPlatform()
    platform.failures = [SendFailed("not now", retryable=True, retry_after_seconds=1.0)]
    async with a_leader(url, "first", tmp_path, platform) as (group, lead):
        await group.hear("Ann", "/count")
        await group.daemon.engine.idle()
        await until(lambda: not platform.failures)
        group.clock.jump(3600)
        assert not lead.holds()
        await group.clock.advance(1)
        async with asyncio.timeout(20):
            await group.daemon.delivery.idle()
        assert [one.text for one in platform.sent] == ["One.", "Two.", "Three."]
        assert lead.holds()


async def test_a_deposed_leader_shows_nothing_that_is_not_kept_either(url: str, tmp_path: Path) -> None:
    platform = TestPlatform()
    async with a_leader(url, "first", tmp_path, platform) as (group, lead):
        chat = group.chat
        await group.daemon.delivery.typing(chat, "looking it up")
        group.clock.jump(3600)
        assert not lead.holds()
        await group.daemon.delivery.typing(chat, "still looking")
        assert platform.statuses == [(chat, "looking it up")]
