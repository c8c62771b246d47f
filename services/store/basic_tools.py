"""The tools that were compiled from BASIC scripts, by bot and name."""

from __future__ import annotations

from services.store.schema import integer, table, text

BASIC_TOOLS = table(
    "basic_tools",
    text("bot", primary_key=True),
    text("tool_name", primary_key=True),
    text("source"),  # the key of the settings under which its file was found
    text("path"),  # of the file in its storage
    text("etag"),
    text("content_hash"),  # of the file's text, the profile and the compiler together
    text("script"),  # the text of the file
    text("definition"),  # JSON of the tool's definition
    integer("is_active"),
    integer("compiled_ms"),
)
