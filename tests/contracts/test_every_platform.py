"""The contract of chat networks, on the platforms that are always there: test kit, terminal, web and IRC. Those of the
other networks are in tests/bot/platforms."""

from __future__ import annotations

import asyncio
import io
import json
import os
from base64 import b64decode
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bot.platforms.adapter import Host
from bot.platforms.base import LinkState
from bot.platforms.console import Console
from bot.platforms.contract import Network, PlatformContract, Shown, a_host
from bot.platforms.irc.platform import IrcPlatform
from bot.testing import TestPlatform
from services.clock import SystemClock
from services.store.port import Statement, Store
from services.store.turns.http_events import EVENTS
from services.store.turns.http_files import FILES
from tests.bot.web_world import a_world
from tests.contracts.described import DescribedContract
from tests.harness.irc_client import Person, a_person
from tests.harness.irc_servers import an_irc_server, irc_settings

NOT_ON_IRC = frozenset(
    {
        *("edit", "delete", "react", "press", "open_thread", "add_bot", "repeat", "send_garbage", "fail_next"),
        *(
            "promote",
            "disconnect",
            "empower",
        ),  # tests/bot/platforms/irc has them, with services and a server that is killed
    }
)


class Screen:
    """An other side that only shows what the bot sends."""

    def __init__(self, shown: Callable[[], Awaitable[Sequence[str | Shown]]]) -> None:
        self._shown = shown

    async def shown(self, chat: str = "") -> list[Shown]:
        return [Shown(one) if isinstance(one, str) else one for one in await self._shown()]

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


class OnlySends(PlatformContract):
    lacks = frozenset({"say", "fail_next"})


class TestTestKit(OnlySends):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        platform = TestPlatform()

        async def shown() -> list[str]:
            return [one.text for one in platform.sent]

        async with a_host(home) as host:
            yield Network(platform, Screen(shown)), host


class TestConsole(OnlySends):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        read, write = os.pipe()
        screen = io.StringIO()

        async def shown() -> list[str]:
            return [line.strip() for line in screen.getvalue().splitlines() if line.strip(" ›")]

        async with a_host(home) as host:
            with os.fdopen(read) as quiet:
                console = Console("Ann", SystemClock(), read_from=quiet, write_to=screen)
                yield Network(console, Screen(shown)), host
                os.close(write)


class TestWeb(OnlySends):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_world(home) as world, a_host(home) as host:
            yield Network(world.http, Screen(partial(as_shown, world.store))), host


async def as_shown(store: Store) -> list[Shown]:
    """The messages of the bot, after its edits and deletions."""
    messages: dict[str, Any] = {}
    for row in await store.read(Statement("tests.events", select(EVENTS.c.body).order_by(EVENTS.c.id)).query()):
        event = json.loads(row["body"])
        if event["type"] == "deleted":
            del messages[event["id"]]
        else:
            messages[event["id"]] = messages.get(event["id"], {}) | event
    files: dict[str, list[bytes]] = defaultdict(list)
    for row in await store.read(Statement("tests.files", select(FILES).order_by(FILES.c.id)).query()):
        files[row["native_id"]].append(b64decode(row["data"]))
    return [
        Shown(one["text"], id_, tuple(each["label"] for each in one["choices"]), files=tuple(files[id_]))
        for id_, one in messages.items()
    ]


class Channel:
    """Members of #family on an IRC server."""

    def __init__(self, port: int, people: AsyncExitStack) -> None:
        self._port = port
        self._people = people
        self._members: dict[str, asyncio.Task[Person]] = {}

    def begin(self, who: str) -> asyncio.Task[Person]:
        """Let a member, named by native id (`~` and the nick), join the channel, unless they have."""
        if who not in self._members:
            caps = "message-tags echo-message labeled-response batch"
            person = a_person(self._port, who.removeprefix("~"), "#family", caps=caps)
            self._members[who] = asyncio.create_task(self._people.enter_async_context(person))
        return self._members[who]

    async def member(self, who: str) -> Person:
        """A member who is in the channel."""
        return await self.begin(who)

    async def say(
        self, who: str, text: str, *, chat: str = "", mention: bool = False, reply_to: str = "", file: object = None
    ) -> str:
        member = await self.member(who)
        after = len(member.seen)
        tags = f"+draft/reply={reply_to}" if reply_to else ""
        target = "Rollcall" if chat.startswith("~") else "#family"
        member.say(target, f"Rollcall: {text}" if mention else text, tags)
        (echo, *_) = await member.until(lambda one: one.command == "PRIVMSG" and one.nick == member.nick, after=after)
        return echo.tags.get("msgid", "")

    async def enter(self, who: str) -> None:
        await self.member(who)

    async def leave(self, who: str) -> None:
        (await self.member(who)).send("PART #family")

    async def shown(self, chat: str = "") -> list[Shown]:
        ann = await self.member("~ann")
        await ann.settled()
        messages: list[str] = []
        longest = False
        for line in ann.heard("Rollcall"):
            # A line of the maximum length continues in the next.
            messages.append(messages.pop() + line if longest else line)
            longest = len(line) > 350
        return [Shown(text) for text in messages]

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


class JoinedIrc(IrcPlatform):
    """Counts as connected when it is in its channel."""

    def link(self) -> LinkState:
        state = super().link()
        return replace(state, is_up=state.is_up and "in 1 channels" in state.words)


class OnIrc(DescribedContract):
    kind = ""
    lacks = NOT_ON_IRC

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with an_irc_server(self.kind, home) as server, a_host(home) as host, AsyncExitStack() as people:
            opened: list[JoinedIrc] = []

            def reopen() -> JoinedIrc:
                opened.append(JoinedIrc(irc_settings(server), host))
                return opened[-1]

            channel = Channel(server.port, people)
            # A server registers a connection each second, so the bot does not wait for her.
            channel.begin("~ann")
            ids = {"group": "#family", "ann": "~ann", "ben": "~ben", "robot": "~robot"}
            network = Network(reopen(), channel, **ids, reopen=reopen)
            yield network, host
            for platform in opened:
                await platform.close()
            await channel.member("~ann")


class TestInspircd(OnIrc):
    kind = "inspircd"


class TestNgircd(OnIrc):
    kind = "ngircd"
    lacks = NOT_ON_IRC | {"say"}  # its messages have no ids


del OnIrc, OnlySends
