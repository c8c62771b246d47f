"""The contract of chat networks, with a real XMPP server and members that use slixmpp's own plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.platforms.adapter import Host
from bot.platforms.contract import Network
from tests.bot.platforms.xmpp.family import a_family
from tests.contracts.described import DescribedContract
from tests.harness.xmpp_servers import XmppServer


class TestXmpp(DescribedContract):
    server: XmppServer

    @pytest.fixture(autouse=True)
    def _on(self, server: XmppServer) -> None:
        self.server = server

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_family(self.server, home, "ben") as (_, network, host):
            yield network, host
