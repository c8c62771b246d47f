"""Private messages for an absent member wait for a limited time until the member is present."""

from __future__ import annotations

import asyncio

import pytest

from services.refs import ChatRef, MemberRef
from tests.bot.platforms.irc.test_bad_days import FAMILY, a_world
from tests.fakes.irc_server import ALL_CAPS

ZOE, DORA = ChatRef("irc", "test", "zoe"), ChatRef("irc", "test", "~dora")
CHANGES_THAT_SHOW_ZOE = {
    "a channel": [":zo!a@b JOIN #family zoe :Zoe"],
    "her account": [":zo!a@b JOIN #family * :Zoe", ":zo!a@b ACCOUNT zoe"],
    "private words": ["@account=zoe :zo!a@b PRIVMSG Rollcall :I'm back"],
}
DAY_SECONDS = 86_400


async def comes_soon(waiting: asyncio.Task[None]) -> None:
    async with asyncio.timeout(10):
        await waiting


@pytest.mark.parametrize("comes", CHANGES_THAT_SHOW_ZOE)
async def test_what_is_for_somebody_who_is_away_waits_until_they_are_seen(comes: str) -> None:
    async with a_world(caps=ALL_CAPS) as world:
        waiting = asyncio.create_task(world.may_say(ZOE))
        await world.server.gets("WHOIS :zoe")
        await world.clock.advance(20)
        assert not waiting.done()
        # Other messages are not delayed.
        await world.send("Hello.")
        world.server.whois["zo"] = "zoe"
        world.server.write(*CHANGES_THAT_SHOW_ZOE[comes])
        await comes_soon(waiting)
        await world.send("Tea.", "2:0:0", chat=ZOE)
        assert world.server.has("PRIVMSG zo :Tea.")


async def test_who_comes_back_unseen_is_found() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        waiting = asyncio.create_task(world.may_say(ZOE))
        await world.server.gets("WHOIS :zoe")
        world.server.whois["zoe"] = "zoe"
        await world.passes(waiting.done, 60)


async def test_what_is_for_an_account_is_kept_for_a_week_from_when_it_was_said_across_starts() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        six_days_ago = world.clock.now_ms() - 6 * DAY_SECONDS * 1000
        waiting = asyncio.create_task(world.may_say(ZOE, created_ms=six_days_ago))
        await world.server.gets("WHOIS :zoe")
        await world.clock.advance(DAY_SECONDS - 700)
        assert not waiting.done()
        await world.passes(waiting.done, 60)
        failure = await world.fails_to_send("Tea.", chat=ZOE)
        assert not failure.retryable
        # A later message has a separate limit of a week.
        later = asyncio.create_task(world.may_say(ZOE))
        await world.clock.advance(1000)
        assert not later.done()
        later.cancel()


async def test_a_bare_nick_that_is_away_is_waited_for_for_an_hour() -> None:
    async with a_world() as world:
        waiting = asyncio.create_task(world.may_say(DORA))
        await world.server.gets("WHOIS :dora")
        await world.clock.advance(300)
        assert not waiting.done()
        world.server.write(":dora!a@b JOIN #family")
        await comes_soon(waiting)
        world.server.write(":dora!a@b QUIT :bye", "PING :gone")
        await world.server.gets("PONG :gone")
        await world.clock.advance(61)
        waiting = asyncio.create_task(world.may_say(DORA))
        await world.server.gets("WHOIS :dora", 2)
        await world.clock.advance(3590)
        assert not waiting.done()
        await world.passes(waiting.done, 5)


async def test_a_bare_nick_that_is_there_is_not_waited_for_and_one_with_an_account_is_somebody_else() -> None:
    async with a_world() as world:
        world.server.whois["dora"] = ""
        await comes_soon(asyncio.create_task(world.may_say(DORA)))
        world.server.whois["dora"] = "mallory"
        waiting = asyncio.create_task(world.may_say(DORA))
        await world.server.gets("WHOIS :dora", 2)
        await world.clock.advance(1)
        assert not waiting.done()
        waiting.cancel()


async def test_what_is_for_one_member_of_a_channel_waits_for_them_and_not_for_the_channel() -> None:
    async with a_world(caps=ALL_CAPS) as world:
        waiting = asyncio.create_task(world.may_say(FAMILY, MemberRef("irc", "test", "zoe")))
        await world.server.gets("WHOIS :zoe")
        await world.clock.advance(20)
        assert not waiting.done()
        world.server.write(":zo!a@b JOIN #family zoe :Zoe")
        await comes_soon(waiting)
