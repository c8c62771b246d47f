"""A connection to a server of tools, as whoever looks after the server sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from services.json_values import JsonObject
from services.mcp.tools import Listing, Progress, ToolAnswer

OnProgress = Callable[[Progress], Awaitable[None]]
"""Is told how far a call has come."""


class Link(Protocol):
    """An open connection."""

    @property
    def is_open(self) -> bool:
        """Whether a call may be tried."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when the tools have changed."""

    async def ended(self) -> None:
        """Return when it has ended."""

    async def close(self) -> None:
        """End it."""

    async def list_tools(self) -> Listing:
        """All tools. Raises ServerProblem."""

    async def call(self, tool: str, arguments: JsonObject, on_progress: OnProgress) -> ToolAnswer:
        """What a tool gives. Raises ServerProblem."""
