"""The contract of all networks, with a real Matrix server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.platforms.adapter import Host
from bot.platforms.contract import Network
from tests.bot.platforms.matrix.other_side import World, a_network
from tests.contracts.described import DescribedContract


class TestMatrix(DescribedContract):
    # Moderation is tested in a room of its own, in test_rooms: this one is shared.
    lacks = frozenset({"press", "empower"})

    @pytest.fixture(autouse=True)
    def _on_the_server(self, world: World) -> None:
        self._world = world

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with a_network(self._world, home) as (network, host, _):
            yield network, host
