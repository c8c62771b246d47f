"""The contract of chat networks on Satori, with a gateway of satori-python-server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.adapter import Host
from bot.platforms.contract import Network, a_host
from bot.platforms.satori.gateway import SatoriSettings
from bot.platforms.satori.platform import SatoriPlatform
from tests.contracts.described import DescribedContract
from tests.harness.satori_gateway import PLATFORM, TOKEN, Family, SatoriGateway


@asynccontextmanager
async def a_network(home: Path, gateway: SatoriGateway, **facts: Any) -> AsyncIterator[tuple[Network, Host, Family]]:
    """A new network of the gateway and a platform with the settings `facts`."""
    family = await gateway.a_network()
    async with a_host(home) as host:
        usual = {"url": gateway.url, "token": TOKEN, "platform": PLATFORM, "user_id": family.account, "buttons": True}
        settings = SatoriSettings(**(usual | facts))
        platform = SatoriPlatform(settings, host)
        network = Network(
            platform,
            family,
            group=family.chat,
            private="direct/private:ann",
            reopen=lambda: SatoriPlatform(settings, host),
        )
        try:
            yield network, host, family
        finally:
            await platform.close()
            await family.do("drop")


class TestSatori(DescribedContract):
    # Threads are channels of their own.
    lacks = frozenset({"open_thread"})

    @pytest.fixture(autouse=True)
    def _with(self, gateway: SatoriGateway) -> None:
        self._gateway = gateway

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_network(home, self._gateway) as (network, host, _):
            yield network, host
