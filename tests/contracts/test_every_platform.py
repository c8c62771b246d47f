"""Contract of all chat networks. A new one needs an entry in PLATFORMS."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from bot.platforms.base import Accepted, ChatPlatform, Outgoing
from bot.platforms.console import Console
from bot.platforms.irc.platform import IrcPlatform
from bot.testing import TestPlatform
from function_calls.context import MessageContext
from function_calls.spec import Choice
from services.clock import SystemClock
from services.refs import ChatRef, MemberRef
from services.store.port import Statement, Write
from services.store.turns.http_events import EVENTS
from tests.bot.web_world import a_world
from tests.harness.irc_client import a_person
from tests.harness.irc_servers import an_irc_server, irc_settings


@dataclass(frozen=True)
class Network:
    """A platform under test, and its messages as seen by members."""

    platform: ChatPlatform
    shown: Callable[[], Awaitable[list[str]]]
    """Texts that are visible now."""
    group: str = "family"
    ann: str = "ann"
    """Names of a group and a member there."""


@asynccontextmanager
async def the_kits(home: Path) -> AsyncIterator[Network]:
    platform = TestPlatform()

    async def shown() -> list[str]:
        return [one.text for one in platform.sent]

    yield Network(platform, shown)


@asynccontextmanager
async def the_console(home: Path) -> AsyncIterator[Network]:
    read, write = os.pipe()
    screen = io.StringIO()

    async def shown() -> list[str]:
        return [line.strip() for line in screen.getvalue().splitlines() if line.strip(" ›")]

    with os.fdopen(read) as quiet:
        yield Network(Console("Ann", SystemClock(), read_from=quiet, write_to=screen), shown)
        os.close(write)


@asynccontextmanager
async def http(home: Path) -> AsyncIterator[Network]:
    async with a_world(home) as world:
        bodies = Statement("tests.events", select(EVENTS.c.body).order_by(EVENTS.c.id))

        async def shown() -> list[str]:
            return [str(row["body"]) for row in await world.store.read(bodies.query())]

        yield Network(world.http, shown)


@asynccontextmanager
async def irc(home: Path, kind: str) -> AsyncIterator[Network]:
    async with an_irc_server(kind, home) as server:
        platform = IrcPlatform(irc_settings(server), ["Rollcall"], SystemClock())
        running = asyncio.create_task(platform.run(nothing))
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

            yield Network(platform, shown, "#family", "~ann")
            running.cancel()
            await asyncio.wait([running])
            await platform.close()


PLATFORMS = {
    "test kit": the_kits,
    "console": the_console,
    "http": http,
    "irc on inspircd": partial(irc, kind="inspircd"),
    "irc on ngircd": partial(irc, kind="ngircd"),
}
Opened = Callable[[Path], AbstractAsyncContextManager[Network]]
every_platform = pytest.mark.parametrize("opened", PLATFORMS.values(), ids=PLATFORMS)


def an_outgoing(network: Network, text: str = "Hello.", key: str = "1:0:0") -> Outgoing:
    platform = network.platform
    return Outgoing(ChatRef(platform.name, platform.account, network.group), key, text)


async def nothing(context: MessageContext, also: Sequence[Write]) -> Accepted:
    return Accepted.NEW


@every_platform
async def test_what_is_sent_is_shown_and_has_an_id(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        first = await network.platform.send(an_outgoing(network))
        second = await network.platform.send(an_outgoing(network, "Bye.", "2:0:0"))
        assert first.native_id
        assert first.native_id != second.native_id
        shown = await network.shown()
        assert [("Hello." in text, "Bye." in text) for text in shown] == [(True, False), (False, True)]


@every_platform
async def test_a_second_send_with_the_same_key_is_dropped_where_that_is_promised(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(tmp_path) as network:
        for _ in range(2):
            receipt = await network.platform.send(an_outgoing(network))
        assert receipt.native_id
        assert len(await network.shown()) == (1 if network.platform.limits.sends_are_idempotent else 2)


@every_platform
async def test_a_text_as_long_as_the_limit_is_sent_whole(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        text = "x" * network.platform.limits.text_chars
        await network.platform.send(an_outgoing(network, text))
        assert text in (await network.shown())[0]


@every_platform
async def test_everything_that_delivery_may_hand_over_is_taken(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        platform = network.platform
        ann = MemberRef(platform.name, platform.account, network.ann)
        choices = (Choice("Yes", "yes"),) if platform.limits.choices else ()
        chat = ChatRef(platform.name, platform.account, network.group)
        outgoing = Outgoing(
            chat, "1:0:0", "你好 👨‍👩‍👧", reply_to="gone", mentions=(ann,), choices=choices, private_to=ann
        )
        assert (await platform.send(outgoing)).native_id


@every_platform
@pytest.mark.parametrize("status", ["…", "looking it up", ""])
async def test_typing_never_fails(opened: Opened, tmp_path: Path, status: str) -> None:
    async with opened(tmp_path) as network:
        await network.platform.typing(ChatRef(network.platform.name, network.platform.account, "nowhere"), status)


@every_platform
async def test_a_stranger_has_no_role(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        platform = network.platform
        chat = ChatRef(platform.name, platform.account, network.group)
        assert await platform.role(chat, MemberRef(platform.name, platform.account, "stranger")) is None


@every_platform
async def test_receiving_ends_when_it_is_cancelled(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        running = asyncio.create_task(network.platform.run(nothing))
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=5)
        assert running.done()


@every_platform
async def test_closing_twice_is_harmless(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        await network.platform.close()
        await network.platform.close()


@every_platform
async def test_limits_make_sense(opened: Opened, tmp_path: Path) -> None:
    async with opened(tmp_path) as network:
        assert network.platform.limits.text_chars >= 100
        assert network.platform.limits.sends_per_minute >= 1
        assert ":" not in network.platform.name + network.platform.account
