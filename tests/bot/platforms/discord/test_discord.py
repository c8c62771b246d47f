"""The Discord platform against simcord's simulation, with discord.py unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from bot.platforms.adapter import Host
from bot.platforms.contract import Network, PlatformContract, a_host
from bot.platforms.discord.adapter import DiscordSettings
from bot.platforms.discord.platform import DiscordPlatform
from tests.fakes.discord_server import TOKEN, DiscordServer, a_discord_server

SETTINGS = DiscordSettings(token=SecretStr(TOKEN))


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[tuple[Network, Host, DiscordServer]]:
    """A platform for a new server, not connected yet."""
    async with a_discord_server() as server, a_host(home) as host:
        platforms: list[DiscordPlatform] = []

        def reopen() -> DiscordPlatform:
            platforms.append(DiscordPlatform(SETTINGS, host, server.connector))
            return platforms[-1]

        people = {who: str(server.user(who)) for who in ("ann", "ben", "robot")}
        network = Network(
            reopen(), server, str(server.general.id), private=str(server.private.id), reopen=reopen, **people
        )
        try:
            yield network, host, server
        finally:
            for platform in platforms:
                await platform.close()


class TestContract(PlatformContract):
    """Discord passes the contract of all networks."""

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with opened(home) as (network, host, _):
            yield network, host
