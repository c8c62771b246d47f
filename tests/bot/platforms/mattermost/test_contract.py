"""The contract of networks, against a fake of Mattermost that mattermostautodriver works with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.platforms.adapter import Host
from bot.platforms.contract import Failure, Network, a_host
from bot.platforms.mattermost.platform import ADAPTER, MattermostSettings
from tests.contracts.described import DescribedContract
from tests.fakes.mattermost_server import ANN, BEN, GROUP, PRIVATE, ROBOT, TOKEN, FakeMattermost


def settings(server: FakeMattermost) -> MattermostSettings:
    """Settings of an account at the fake."""
    return MattermostSettings.model_validate({"url": server.url, "token": TOKEN})


@asynccontextmanager
async def a_network(home: Path) -> AsyncIterator[tuple[Network, Host]]:
    """Mattermost with an account of the bot."""
    async with FakeMattermost().running() as server, a_host(home) as host:
        platform = ADAPTER.open(settings(server), host)
        network = Network(
            platform,
            server,
            group=GROUP,
            private=PRIVATE,
            ann=ANN,
            ben=BEN,
            robot=ROBOT,
            reopen=lambda: ADAPTER.open(settings(server), host),
        )
        try:
            yield network, host
        finally:
            await platform.close()


class TestMattermost(DescribedContract):
    """Mattermost."""

    lacks = frozenset({Failure.REPLY_IS_GONE, Failure.BAD_MARKUP})
    open = staticmethod(a_network)  # type: ignore[assignment]
