"""The Matrix platform when the server or the daemon restarts, and when the server limits the rate."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
import structlog
from structlog.testing import capture_logs

from bot.platforms.base import SendFailed
from bot.platforms.contract import receiving, until
from bot.platforms.matrix.platform import MatrixPlatform
from function_calls.context import Kind
from tests.bot.platforms.matrix.other_side import World, a_network


async def test_messages_around_a_restart_of_the_server_are_received_once_in_order(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        for number in range(10):
            await side.say(network.ann, f"message {number}")
        await asyncio.to_thread(world.server.stop)
        await asyncio.to_thread(world.server.start)
        for number in range(10, 20):
            await side.say(network.ben, f"message {number}")
        await daemon.gets(text="message 19")
        assert daemon.texts == [f"message {number}" for number in range(20)]
        await network.platform.send(network.outgoing("Still here."))
        assert [one.text for one in await side.shown()] == ["Still here."]


async def test_the_bot_is_not_connected_before_the_server_answers(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        assert isinstance(network.platform, MatrixPlatform)
        # Commands that ran in this process may have left a level that hides warnings.
        structlog.reset_defaults()
        with capture_logs() as logs:
            side.proxy.is_away = True
            side.proxy.break_sync()
            await until(lambda: len([one for one in logs if one["event"] == "disconnected"]) >= 3)
            assert "connected" not in [one["event"] for one in logs]
            side.proxy.is_away = False
            await until(lambda: network.platform.link().is_up)
        await side.say(network.ann, "back?")
        await daemon.gets(text="back?")


async def test_more_messages_than_a_sync_returns_are_received_once_in_order(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side):
        room = await side.ann.create_room(side.bot.user, network.ben)
        await side.api(network.ben)("POST", f"join/{room}", {})
        async with receiving(network.platform, host.store) as daemon:
            await side.joined(room)
            await side.say(network.ann, "seen", chat=room)
            await daemon.gets(text="seen")
        # The process dies: nothing is closed, and another one starts with the same store.
        for number in range(120):
            await side.say(network.ben if number % 2 else network.ann, f"away {number}", chat=room)
        again = network.reopen() if network.reopen else network.platform
        async with receiving(again, host.store) as daemon:
            await daemon.gets(text="away 119")
            assert daemon.texts == [f"away {number}" for number in range(120)]
            assert {one.sender.name for one in daemon.received} == {"Ann", "Ben"}
        await again.close()


async def test_history_from_before_the_bot_came_is_marked(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store) as daemon:
        room = await side.ann.create_room(name="Work", preset="public_chat")
        await side.ann.text(room, "old")
        await side.ann("POST", f"rooms/{room}/invite", {"user_id": side.bot.user})
        await daemon.gets(Kind.ADDED)
        await side.ann.text(room, "new")
        await daemon.gets(text="new")
        assert {one.text: one.backfilled for one in daemon.received if one.text} == {"old": True, "new": False}


async def test_the_rate_limit_of_the_server_is_reported_with_its_wait(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side), receiving(network.platform, host.store):
        admin = world.server.register("admin", admin=True)
        url = f"{world.server.url}/_synapse/admin/v1/users/{side.bot.user}/override_ratelimit"
        headers = {"Authorization": f"Bearer {admin.token}"}
        limit = {"messages_per_second": 1, "burst_count": 1}
        async with aiohttp.ClientSession() as session, session.post(url, json=limit, headers=headers) as answer:
            assert answer.status == 200
        sends = [network.platform.send(network.outgoing(key=f"{number}:0:0")) for number in range(9)]
        with pytest.raises(SendFailed) as failed:
            await asyncio.gather(*sends)
        assert failed.value.retryable
        assert not failed.value.unknown_outcome
        assert failed.value.for_account
        assert 0 < (failed.value.retry_after_seconds or 0) <= 60


async def test_a_send_without_a_server_is_repeated_later(world: World, tmp_path: Path) -> None:
    async with a_network(world, tmp_path) as (network, host, side):
        async with receiving(network.platform, host.store):
            pass
        network.platform._client._web.url = "http://127.0.0.1:1"  # type: ignore[attr-defined]
        with pytest.raises(SendFailed, match="cannot be reached") as failed:
            await network.platform.send(network.outgoing())
        assert failed.value.retryable
        assert not failed.value.unknown_outcome
        assert await side.shown() == []
