"""After a server restart the bot is often back in its channels before people, who would miss its messages."""

from __future__ import annotations

import asyncio

from services.refs import ChatRef
from tests.bot.platforms.irc.test_bad_days import FAMILY, World, a_world


async def waits(world: World, chat: ChatRef = FAMILY) -> asyncio.Task[None]:
    """Start a task that waits to send a message there."""
    waiting = asyncio.create_task(world.may_say(chat))
    await world.server.gets("JOIN")
    world.server.write("PING :joined")
    await world.server.gets("PONG :joined")
    await world.clock.advance(1)
    assert not waiting.done()
    return waiting


async def comes_soon(waiting: asyncio.Task[None]) -> None:
    async with asyncio.timeout(10):
        await waiting


async def test_what_is_for_a_channel_that_the_bot_came_to_first_waits_until_somebody_comes() -> None:
    async with a_world(waits=False) as world:
        world.server.others = ""
        waiting = await waits(world)
        await world.clock.advance(200)
        assert not waiting.done()
        world.server.write(":ann!a@b JOIN #family")
        await comes_soon(waiting)
        await world.send("Tea is ready.")


async def test_in_a_channel_where_nobody_comes_it_is_said_after_five_minutes() -> None:
    async with a_world(waits=False) as world:
        world.server.others = ""
        waiting = await waits(world)
        await world.clock.advance(298)
        assert not waiting.done()
        await world.clock.advance(2)
        await comes_soon(waiting)
        # The channel is known to be empty now, so nothing waits.
        await comes_soon(asyncio.create_task(world.may_say(FAMILY)))


async def test_after_each_lost_connection_people_have_time_to_come_back() -> None:
    async with a_world() as world:
        await world.clock.advance(400)
        world.server.others = ""
        world.server.drop()
        await world.passes(lambda: world.platform.link().losses)
        waiting = asyncio.create_task(world.may_say(FAMILY))
        await world.passes(lambda: "in 1 channels" in world.platform.link().words)
        await world.clock.advance(60)
        assert not waiting.done()
        world.server.write(":ann!a@b JOIN #family")
        await comes_soon(waiting)


async def test_who_is_there_is_known_once_the_server_has_listed_them() -> None:
    async with a_world(waits=False) as world:
        world.server.refused_joins["#family"] = "000"
        await world.server.gets("JOIN")
        world.server.write(":Rollcall!r@h JOIN #family")
        waiting = await waits(world)
        world.server.write(":irc.test 353 Rollcall = #family :Rollcall ann", ":irc.test 366 Rollcall #family :End")
        await comes_soon(waiting)


async def test_a_channel_that_everybody_has_left_is_not_waited_for() -> None:
    async with a_world() as world:
        world.server.write(":ann!a@b PART #family", ":bob!a@b QUIT :bye", "PING :gone")
        await world.server.gets("PONG :gone")
        await world.clock.advance(301)
        await comes_soon(asyncio.create_task(world.may_say(FAMILY)))
