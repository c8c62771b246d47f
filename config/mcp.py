"""Settings of the Model Context Protocol."""

from __future__ import annotations

from config.mcp_serve import McpServeSettings
from config.terms import Section


class McpSettings(Section):
    """The Model Context Protocol: functions across programs."""

    serve: McpServeSettings = McpServeSettings()
