"""The contract of chat networks, with a real XMPP server and members that use slixmpp's own plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.platforms.adapter import Host
from bot.platforms.contract import Failure, Network
from tests.bot.platforms.xmpp.family import a_family
from tests.contracts.described import DescribedContract
from tests.harness.xmpp_servers import XmppServer


class TestXmpp(DescribedContract):
    # Threads of XMPP are no chats of their own. The stream counts its stanzas, so a server repeats none; those that the
    # archive repeats are in test_xmpp. Servers slow a client down instead of rejecting a message because of its rate.
    lacks = frozenset({"open_thread", "repeat", Failure.RATE_LIMITED})

    server: XmppServer

    @pytest.fixture(autouse=True)
    def _on(self, server: XmppServer) -> None:
        self.server = server

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_family(self.server, home, "ben") as (_, network, host):
            yield network, host
