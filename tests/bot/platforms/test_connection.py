"""Connections of platforms: reconnects, silence, cursors, and events that cannot be read or accepted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bot.platforms.base import Accepted
from bot.platforms.connection import Acceptance, CannotConnect, Connection, Cursor, Rejected
from function_calls.context import Kind, MessageContext, MessageKey, Sender
from services.clock import VirtualClock
from services.recent import Recent
from services.refs import ChatRef, MemberRef
from services.store.ids import Ids
from services.store.port import Store, StoreError, StoreFull, Write
from services.store.turns import audit
from tests.fakes.sqlite_store import a_store

SILENCE_SECONDS = 30.0


def a_connection(clock: VirtualClock) -> Connection:
    return Connection("net:main", clock, silence_seconds=SILENCE_SECONDS, jitter=lambda low, high: high)


@asynccontextmanager
async def kept(connection: Connection, connect: Callable[[], object], clock: VirtualClock) -> AsyncIterator[None]:
    task = asyncio.create_task(connection.keep(connect))  # type: ignore[arg-type]
    await clock.settle()
    yield
    task.cancel()
    await asyncio.wait([task])


async def test_a_connection_that_fails_is_made_again_after_growing_delays() -> None:
    clock, attempts = VirtualClock(), []
    connection = a_connection(clock)

    async def connect() -> None:
        attempts.append(clock.monotonic())
        if len(attempts) == 2:
            raise RuntimeError("the SDK is broken")
        raise CannotConnect("the token is wrong")

    async with kept(connection, connect, clock):
        await clock.advance(200)
        assert attempts[:8] == [0, 1, 3, 7, 15, 31, 63, 123]
        state = connection.link()
        assert (state.is_up, state.losses) == (False, len(attempts))
        assert state.words == "disconnected: the token is wrong; connecting again in 60 s"


async def test_rejected_settings_are_tried_again_after_the_longest_delay() -> None:
    clock, attempts = VirtualClock(), []
    connection = a_connection(clock)

    async def connect() -> None:
        attempts.append(clock.monotonic())
        raise Rejected("the password is wrong")

    async with kept(connection, connect, clock):
        await clock.advance(130)
        assert attempts == [0, 60, 120]


def test_recent_entries_replace_the_oldest() -> None:
    recent: Recent[str, int] = Recent(2)
    for number, key in enumerate("abac"):
        recent[key] = number
    assert dict(recent) == {"a": 2, "c": 3}


async def test_the_delay_starts_over_after_a_connection_that_held() -> None:
    clock, attempts = VirtualClock(), []
    connection = a_connection(clock)

    async def connect() -> None:
        attempts.append(clock.monotonic())
        connection.up()
        await clock.sleep(SILENCE_SECONDS - 1)
        connection.heard()
        if len(attempts) > 1:
            await clock.sleep(SILENCE_SECONDS - 1)
            connection.heard()
            await clock.sleep(SILENCE_SECONDS - 1)

    async with kept(connection, connect, clock):
        await clock.advance(300)
        assert attempts[:4] == [0, 30, 30 + 87 + 1, 30 + 2 * 88]


async def test_a_connection_on_which_nothing_is_heard_is_restarted() -> None:
    clock, ended = VirtualClock(), []
    connection = a_connection(clock)

    async def connect() -> None:
        connection.up()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(clock.monotonic())

    async with kept(connection, connect, clock):
        assert connection.link().words == "connected"
        await clock.advance(20)
        connection.heard()
        await clock.advance(20)
        assert ended == []
        await clock.advance(10)
        assert ended == [50.0]
        assert "nothing was heard for 30 s" in connection.link().words
        waiting = asyncio.create_task(connection.until_up())
        await clock.settle()
        assert not waiting.done()
        await clock.advance(1)
        await waiting


@dataclass
class World:
    """A platform's acceptance with a real store."""

    store: Store
    clock: VirtualClock
    connection: Connection
    acceptance: Acceptance
    cursor: Cursor
    accepted: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)

    async def deliver(self, context: MessageContext, writes: Sequence[Write]) -> Accepted:
        if self.failures:
            raise self.failures.pop(0)
        await self.store.commit(list(writes))
        self.accepted.append(context.text)
        return Accepted.NEW

    async def take(self, *texts: str, position: str, raw: str = "{}") -> None:
        contexts = [a_message(text, f"{position}-{number}") for number, text in enumerate(texts)]
        await self.acceptance.take(self.deliver, lambda: contexts, raw, self.cursor.at(position))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with a_store(tmp_path, clock) as store:
        connection = a_connection(clock)
        acceptance = Acceptance("net:main", store, Ids(clock), clock, connection)
        yield World(store, clock, connection, acceptance, Cursor("net:main", store, clock))


def a_message(text: str, native_id: str) -> MessageContext:
    chat = ChatRef("net", "main", "family")
    sender = Sender(MemberRef("net", "main", "ann"), "Ann")
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    return MessageContext(MessageKey(chat, native_id), Kind.MESSAGE, chat, True, sender, text, at)


async def test_the_cursor_is_stored_with_the_last_event_of_its_position(world: World) -> None:
    assert await world.cursor.read() is None
    await world.take("one", "two", position="1")
    assert await world.cursor.read() == "1"
    world.failures = [StoreError("away")]
    with pytest.raises(StoreError):
        await world.take("three", position="2")
    assert await world.cursor.read() == "1"
    await world.take("three", position="2")
    assert await world.cursor.read() == "2"
    assert world.accepted == ["one", "two", "three"]


async def test_a_position_without_events_for_the_bot_is_stored_too(world: World) -> None:
    await world.take(position="7")
    await world.store.commit([])
    assert await world.cursor.read() == "7"


async def test_an_event_that_cannot_be_read_is_set_aside_and_the_cursor_advances(world: World) -> None:
    def read() -> list[MessageContext]:
        raise KeyError("from")

    await world.acceptance.take(world.deliver, read, '{"nonsense": "\x00\ud800"}', world.cursor.at("3"))
    await world.take("after", position="4")
    assert await world.cursor.read() == "4"
    assert world.accepted == ["after"]
    (row,) = await world.store.read(audit.last(5))
    assert (row["actor"], row["action"]) == ("net:main", "event_unreadable")
    assert row["detail"].startswith('{"nonsense": "')
    assert "1 events could not be read" in world.connection.link().words


async def test_an_event_that_the_daemon_cannot_process_is_set_aside(world: World) -> None:
    world.failures = [ValueError("a surprise")]
    await world.take("poison", position="5", raw='{"poison": true}')
    await world.take("after", position="6")
    assert world.accepted == ["after"]
    (row,) = await world.store.read(audit.last(5))
    assert row["detail"] == '{"poison": true}'


async def test_events_wait_while_the_disk_is_full(world: World) -> None:
    world.failures = [StoreFull("no space"), StoreFull("no space")]
    taking = asyncio.create_task(world.take("kept", position="8"))
    await world.clock.settle()
    assert not taking.done()
    await world.clock.advance(10)
    await taking
    assert world.accepted == ["kept"]


async def test_one_bad_event_of_a_batch_is_set_aside_and_the_others_are_accepted(world: World) -> None:
    def read(number: int) -> list[MessageContext]:
        if number == 37:
            raise ValueError("not an event")
        return [a_message(f"m{number}", str(number))]

    for number in range(100):
        await world.acceptance.take(world.deliver, partial(read, number), f"#{number}", world.cursor.at(str(number)))
    assert world.accepted == [f"m{number}" for number in range(100) if number != 37]
    assert await world.cursor.read() == "99"
    assert [row["detail"] for row in await world.store.read(audit.last(200))] == ["#37"]
