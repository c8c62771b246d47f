"""The contract of chat networks on OneBot, in both directions and both formats of messages."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bot.platforms.adapter import Host
from bot.platforms.contract import Failure, Network, a_host
from bot.platforms.onebot.platform import OneBotPlatform
from bot.platforms.onebot.session import OneBotSettings
from tests.contracts.described import DescribedContract
from tests.fakes.onebot_server import ANN, BEN, GROUP, ROBOT, TOKEN, OneBotServer

# QQ has no edits, buttons and threads; OneBot v11 has no form of a rate limit and no markup.
LACKS = frozenset({"edit", "press", "open_thread", Failure.RATE_LIMITED, Failure.BAD_MARKUP})


def a_free_port() -> int:
    """A port below the range for outgoing connections: a client that dials a port in it may connect to itself."""
    while True:
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@asynccontextmanager
async def a_network(home: Path, server: OneBotServer, **facts: Any) -> AsyncIterator[tuple[Network, Host]]:
    """`server`, which is served, and a platform; the server dials it if `facts` has its `port`."""
    async with a_host(home) as host:
        usual: dict[str, Any] = {"access_token": TOKEN, "file_hosts": ("127.0.0.1",)}
        settings = OneBotSettings(**(usual | ({} if "port" in facts else {"url": server.url}) | facts))
        platform = OneBotPlatform(settings, host)
        network = Network(
            platform,
            server,
            group=f"group-{GROUP}",
            private=f"private-{ANN}",
            ann=ANN,
            ben=BEN,
            robot=ROBOT,
            reopen=lambda: OneBotPlatform(settings, host),
        )
        try:
            yield network, host
        finally:
            await platform.close()


class TestForward(DescribedContract):
    lacks = LACKS

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with OneBotServer().serving() as server, a_network(home, server) as opened:
            yield opened


class TestReverse(DescribedContract):
    lacks = LACKS

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        port = a_free_port()
        async with (
            OneBotServer(strings=True).serving() as server,
            server.dialling(f"ws://127.0.0.1:{port}/onebot/v11/ws"),
            a_network(home, server, port=port) as opened,
        ):
            yield opened
