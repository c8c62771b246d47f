"""Settings of the Model Context Protocol."""

from __future__ import annotations

from pydantic import Field

from config.mcp_serve import McpServeSettings
from config.mcp_servers import McpServerSettings
from config.terms import Section


class McpSettings(Section):
    """The Model Context Protocol: functions across programs."""

    serve: McpServeSettings = McpServeSettings()
    servers: tuple[McpServerSettings, ...] = Field(default=(), max_length=100)
    """The servers whose tools the bot may use."""
