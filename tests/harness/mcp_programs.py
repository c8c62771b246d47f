"""Programs that call the bot's functions by the Model Context Protocol: the official client against the bot's own web
app on a real port, over a daemon whose time stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from bot.testing import Group, a_group
from bot.web.wiring import Web
from config.settings import Settings

TOKEN = "a-token-for-the-program"
MODERN, LEGACY = "auto", "legacy"
"""How the client begins: as the protocol is now, or with the handshake of before."""
ERAS = (MODERN, LEGACY)


@dataclass(frozen=True, slots=True)
class Programs:
    """A bot that serves programs."""

    group: Group
    settings: Settings
    web: Web
    address: str
    """Of the web server."""

    @property
    def url(self) -> str:
        """Where the functions are."""
        return f"{self.address}/mcp"

    @asynccontextmanager
    async def client(self, token: str = TOKEN, mode: str = MODERN, **options: Any) -> AsyncIterator[Client]:
        """The official client, connected as the program with `token`."""
        async with (
            self.http(token) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **options) as client,
        ):
            yield client

    def http(self, token: str = TOKEN) -> httpx2.AsyncClient:
        """For requests of one's own."""
        headers = {"authorization": f"Bearer {token}"}
        # There is no TLS, so nobody need read all authorities that sign for it, which takes 20 ms a client.
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=20, trust_env=False, verify=False)

    async def call(self, function: str, arguments: Mapping[str, Any] | None = None, **how: Any) -> CallToolResult:
        """What one call gives; `how` is for `client`."""
        async with self.client(**how) as client:
            return await client.call_tool(function, dict(arguments or {}))


@asynccontextmanager
async def programs(
    functions: Sequence[object] = (),
    clients: Sequence[Mapping[str, Any]] = ({"name": "editor"},),
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[Programs]:
    """A group whose bot serves `clients`, each an entry of the settings whose token is TOKEN where it has none."""
    entries = [{"token": TOKEN, **client} for client in clients]
    given = {
        "platforms": {"web": {"page": False, "port": 0}},
        "mcp": {"serve": {"enabled": True, "clients": entries}},
        **(settings or {}),
    }
    kept: list[Settings] = []

    def keep(loaded: Settings) -> Settings:
        kept.append(loaded)
        return loaded

    async with a_group(functions, settings=given, prepare=keep, **more) as group:
        web = await Web.build(kept[0], group.daemon.store, group.daemon.ids, group.clock)
        web.live(group.daemon.live)
        address = await web.start(group.daemon)
        try:
            yield Programs(group, kept[0], web, address)
        finally:
            await web.stop()


def texts(result: CallToolResult) -> list[str]:
    """The texts of a result."""
    return [block.text for block in result.content if isinstance(block, TextContent)]


def code(result: CallToolResult) -> str:
    """Why a call gave nothing; empty when it gave something."""
    return str((result.meta or {}).get("rollcall/error", {}).get("code", ""))
