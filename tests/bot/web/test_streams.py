"""Event streams of many members, and the limit of streams per member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bot.platforms.http.platform import Listener, Listeners, StreamLimits
from tests.bot.web_world import BEARER, World, a_world

EVENTS = "/api/v1/chats/lobby/events"
CLOSED = 'retry: 60000\n\ndata: {"type":"closed","reason":"too_many_streams"}\n\n'


@dataclass(frozen=True, slots=True)
class Stream:
    """An open stream on a separate connection."""

    status: int
    reader: asyncio.StreamReader

    async def rest(self) -> str:
        """All data until its end, in chunks."""
        return (await self.reader.readuntil(b"0\r\n\r\n")).decode()


Open = Callable[[dict[str, str]], Awaitable[Stream]]


@asynccontextmanager
async def streams(world: World) -> AsyncIterator[Open]:
    """Opens streams with given headers; all are closed at the end."""
    host, port = world.base.removeprefix("http://").split(":")
    writers: list[asyncio.StreamWriter] = []

    async def opened(headers: dict[str, str]) -> Stream:
        reader, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)
        lines = [f"GET {EVENTS} HTTP/1.1", f"Host: {host}", *(f"{name}: {headers[name]}" for name in headers)]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        if status == 200:
            await reader.readuntil(b"retry: 1000")
        return Stream(status, reader)

    try:
        yield opened
    finally:
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def a_member(world: World, name: str) -> dict[str, str]:
    """Headers of a new member."""
    async with world.client() as client:
        joined = (await client.post("/api/v1/members", json={"name": name, "fresh": True})).json()
    return {"x-rollcall-member": joined["token"]}


async def test_a_member_with_many_streams_leaves_room_for_everybody_else(tmp_path: Path) -> None:
    async with a_world(tmp_path, limits=StreamLimits()) as world, streams(world) as open_, asyncio.timeout(60):
        ann, bob = await a_member(world, "Ann"), await a_member(world, "Bob")
        statuses = [(await open_(ann)).status for _ in range(210)]
        assert (await open_(bob)).status == 200
        assert set(statuses) == {200}


async def test_a_members_oldest_stream_ends_for_a_new_one_and_is_told_not_to_come_back_soon(tmp_path: Path) -> None:
    limits = StreamLimits(streams_per_member=2)
    async with a_world(tmp_path, limits=limits) as world, streams(world) as open_, asyncio.timeout(10):
        ann = await a_member(world, "Ann")
        oldest, _, _ = await open_(ann), await open_(ann), await open_(ann)
        assert CLOSED in await oldest.rest()
        assert world.web.feed.listening == 2


async def test_where_all_streams_are_taken_whoever_has_most_gives_one_to_whoever_has_none(tmp_path: Path) -> None:
    limits = StreamLimits(streams=3)
    async with a_world(tmp_path, limits=limits) as world, streams(world) as open_, asyncio.timeout(10):
        ann, bob, cid = [await a_member(world, name) for name in ("Ann", "Bob", "Cid")]
        first, _, _ = await open_(bob), await open_(ann), await open_(bob)
        assert (await open_(cid)).status == 200
        assert CLOSED in await first.rest()
        assert (await open_(await a_member(world, "Dan"))).status == 503


async def test_a_program_may_have_a_stream_for_each_of_many_chats(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, streams(world) as open_, asyncio.timeout(10):
        assert {(await open_(BEARER)).status for _ in range(30)} == {200}
        assert world.http.feed.listening == 30


@pytest.mark.parametrize(("wait", "status"), [(0, 200), (20, 429)])
async def test_a_poll_that_waits_counts_as_a_stream(tmp_path: Path, wait: int, status: int) -> None:
    limits = StreamLimits(streams_per_member=1)
    async with a_world(tmp_path, limits=limits) as world, streams(world) as open_, asyncio.timeout(10):
        ann = await a_member(world, "Ann")
        await open_(ann)
        async with world.client() as client:
            answer = await client.get(f"{EVENTS}?wait={wait}", headers=ann)
        assert answer.status_code == status
        assert world.web.feed.listening == 1


MOST, EACH = 6, 3


class Crowd(RuleBasedStateMachine):
    """Members open and close streams in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners = Listeners()
        self.open: dict[Listener, str] = {}
        """Oldest first."""

    def of(self, member: str) -> list[Listener]:
        return [listener for listener, owner in self.open.items() if owner == member]

    @rule(member=st.sampled_from(["ann", "bob", "cid", "dan", "eve", "fay", "gil", ""]))
    def come(self, member: str) -> None:
        before = {owner: self.of(owner) for owner in self.open.values()}
        mine = before.get(member, [])
        has_room = self.listeners.make_room(member, MOST)
        greediest = max(map(len, before.values()), default=0)
        assert has_room is (len(self.open) < MOST or greediest > len(mine) + 1)
        for gone in [listener for listener in self.open if listener.is_superseded]:
            assert before[self.open[gone]][0] is gone
            assert len(before.pop(self.open.pop(gone))) == greediest
        if has_room:
            oldest = self.of(member)[0] if member and len(self.of(member)) >= EACH else None
            new = self.listeners.add("lobby", member, EACH if member else 0)
            if oldest is not None:
                assert oldest.is_superseded
                del self.open[oldest]
            self.open[new] = member

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        listener = data.draw(st.sampled_from(list(self.open)))
        self.listeners.remove(listener)
        del self.open[listener]

    @invariant()
    def only_those_over_a_limit_are_closed(self) -> None:
        assert not any(listener.is_superseded for listener in self.open)
        assert self.listeners.count == len(self.open) <= MOST


TestCrowd = Crowd.TestCase
