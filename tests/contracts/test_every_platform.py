"""The contract of chat networks, on the platforms that are always there: test kit, terminal, web and IRC. Those of the
other networks are in tests/bot/platforms."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bot.platforms.adapter import Host
from bot.platforms.base import Outgoing
from bot.platforms.console import Console
from bot.platforms.contract import Daemon, Network, PlatformContract, Shown, a_host
from bot.platforms.irc.platform import IrcPlatform
from bot.testing import TestPlatform
from services.clock import SystemClock
from services.refs import ChatRef
from services.store.port import Statement, Store
from services.store.turns.http_events import EVENTS
from tests.bot.web_world import a_world
from tests.harness.irc_client import a_person
from tests.harness.irc_servers import an_irc_server, irc_settings


class Screen:
    """An other side that only shows what the bot sends."""

    def __init__(self, shown: Callable[[], Awaitable[Sequence[str | Shown]]]) -> None:
        self._shown = shown

    async def shown(self, chat: str = "") -> list[Shown]:
        return [Shown(one) if isinstance(one, str) else one for one in await self._shown()]

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(name)


def a_screen(platform: Any, shown: Callable[[], Awaitable[Sequence[str | Shown]]], **facts: Any) -> Network:
    """A network of which only sending is tested here."""
    lacks = frozenset({"fail_next", "promote", *facts.pop("lacks", ())})
    return Network(platform, Screen(shown), receives=False, lacks=lacks, **facts)


class TestTestKit(PlatformContract):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        platform = TestPlatform()

        async def shown() -> list[str]:
            return [one.text for one in platform.sent]

        async with a_host(home) as host:
            yield a_screen(platform, shown), host


class TestConsole(PlatformContract):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        read, write = os.pipe()
        screen = io.StringIO()

        async def shown() -> list[str]:
            return [line.strip() for line in screen.getvalue().splitlines() if line.strip(" ›")]

        async with a_host(home) as host:
            with os.fdopen(read) as quiet:
                yield a_screen(Console("Ann", SystemClock(), read_from=quiet, write_to=screen), shown), host
                os.close(write)


class TestWeb(PlatformContract):
    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_world(home) as world, a_host(home) as host:
            yield a_screen(world.http, partial(as_shown, world.store)), host


async def as_shown(store: Store) -> list[Shown]:
    """The messages of the bot, after its edits and deletions."""
    messages: dict[str, Any] = {}
    for row in await store.read(Statement("tests.events", select(EVENTS.c.body).order_by(EVENTS.c.id)).query()):
        event = json.loads(row["body"])
        if event["type"] == "deleted":
            del messages[event["id"]]
        else:
            messages[event["id"]] = messages.get(event["id"], {}) | event
    return [Shown(one["text"], id_, tuple(each["label"] for each in one["choices"])) for id_, one in messages.items()]


class OnIrc(PlatformContract):
    kind = ""

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with an_irc_server(self.kind, home) as server, a_host(home) as host:
            platform = IrcPlatform(irc_settings(server), ["Rollcall"], SystemClock())
            running = asyncio.create_task(platform.run(Daemon(host.store).deliver))
            async with a_person(server.port, "ann", "#family") as ann:
                await ann.sees("#family", "Rollcall")
                family = ChatRef("irc", platform.account, "#family")
                await platform.until_reachable(Outgoing(family, "1:0:0", "Tea."), SystemClock().now_ms())

                async def shown() -> list[str]:
                    await ann.settled()
                    messages: list[str] = []
                    longest = False
                    for line in ann.heard("Rollcall"):
                        # A line of the maximum length continues in the next.
                        messages.append(messages.pop() + line if longest else line)
                        longest = len(line) > 350
                    return messages

                yield a_screen(platform, shown, group="#family", ann="~ann", lacks={"exact text"}), host
                running.cancel()
                await asyncio.wait([running])
                await platform.close()


class TestInspircd(OnIrc):
    kind = "inspircd"


class TestNgircd(OnIrc):
    kind = "ngircd"


del OnIrc
