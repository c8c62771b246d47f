"""Programs that call the bot's functions over MCP: the official client and the bot's web app on a real port, with a
daemon on a virtual clock."""

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
"""Modes of the client: the current protocol, or the handshake of older versions."""
ERAS = (MODERN, LEGACY)


@dataclass(frozen=True, slots=True)
class Programs:
    """A bot that serves programs."""

    group: Group
    settings: Settings
    web: Web
    address: str
    """Base URL of the web server."""

    @property
    def url(self) -> str:
        """URL of the MCP endpoint."""
        return f"{self.address}/mcp"

    @asynccontextmanager
    async def client(self, token: str = TOKEN, mode: str = MODERN, **options: Any) -> AsyncIterator[Client]:
        """The official client, authenticated with `token`."""
        async with (
            self.http(token) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **options) as client,
        ):
            yield client

    def http(self, token: str = TOKEN) -> httpx2.AsyncClient:
        """An HTTP client for custom requests."""
        headers = {"authorization": f"Bearer {token}"}
        # No TLS is used, and loading the certificate authorities takes 20 ms per client.
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=20, trust_env=False, verify=False)

    async def call(self, function: str, arguments: Mapping[str, Any] | None = None, **how: Any) -> CallToolResult:
        """Result of one call; `how` is passed to `client`."""
        async with self.client(**how) as client:
            return await client.call_tool(function, dict(arguments or {}))


@asynccontextmanager
async def programs(
    functions: Sequence[object] = (),
    clients: Sequence[Mapping[str, Any]] = ({"name": "editor"},),
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[Programs]:
    """A group whose bot serves `clients`: entries of the settings, with TOKEN as the default token."""
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
    """Texts of a result."""
    return [block.text for block in result.content if isinstance(block, TextContent)]


def code(result: CallToolResult) -> str:
    """Error code of a call; empty if it succeeded."""
    return str((result.meta or {}).get("rollcall/error", {}).get("code", ""))
