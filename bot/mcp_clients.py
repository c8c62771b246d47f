"""The sources of the settings' MCP servers: each with its connection, all with the same pins."""

from __future__ import annotations

from collections.abc import Sequence

from bot.function_sources import WantedSource
from config.mcp_servers import McpServerSettings
from function_calls.sources.mcp_servers import McpFunctions
from services.clock import Clock
from services.mcp.opening import Opening, Start
from services.mcp.pins import Pins
from services.mcp.server import McpServer


def mcp_sources(
    servers: Sequence[McpServerSettings], pins: Pins, clock: Clock, start: Start, *, asks_first: bool
) -> Sequence[WantedSource]:
    """One for each of `servers`. `start` says how their programs are started. `asks_first`: a server of which nothing
    is known is asked for its tools."""

    def functions_of(one: McpServerSettings) -> McpFunctions:
        server = McpServer(one, pins, clock, Opening(one, clock, start), asks_first=asks_first)
        return McpFunctions(one, server, pins, clock)

    return [WantedSource(functions_of(one), one) for one in servers]
