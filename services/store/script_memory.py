"""What scripts remember, by the bot, of a member or of a chat."""

from __future__ import annotations

from services.store.schema import integer, table, text

SCRIPT_MEMORY = table(
    "script_memory",
    text("bot", primary_key=True),
    text("owner", primary_key=True),  # empty for the bot's own, else the key of a member or a chat
    text("name", primary_key=True),
    text("value"),  # JSON
    integer("changed_ms"),
    integer("expires_ms", nullable=True),
    rows_in_key_order=True,
)
