"""Telegram fulfils the contract of chat networks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.platforms.adapter import Host
from bot.platforms.contract import Network
from tests.bot.platforms.telegram.side import on_telegram
from tests.contracts.described import DescribedContract


class TestTelegram(DescribedContract):
    # The Bot API does not report deletions.
    lacks = frozenset({"delete"})

    @asynccontextmanager
    async def open(self, home: Path) -> AsyncIterator[tuple[Network, Host]]:
        async with on_telegram(home) as (network, _, host):
            yield network, host
