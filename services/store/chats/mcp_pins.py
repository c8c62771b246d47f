"""Tool definitions of MCP servers: the accepted one of each tool, and the latest one."""

from __future__ import annotations

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Row, Statement, Write
from services.store.schema import binds, delete_row, integer, table, text, upsert

MCP_PINS = table(
    "mcp_pins",
    text("server", primary_key=True),
    text("tool", primary_key=True),
    text("accepted", nullable=True),  # digest of the definition that may be used; None if none is accepted
    text("digest"),  # of the server's latest definition; empty if the server has removed the tool
    text("definition"),  # JSON, read by services/mcp/tools.py: the latest definition, and the accepted one if different
    integer("seen_ms"),
    integer("accepted_ms", nullable=True),
)

_COPIED = Statement("mcp_pins.copied", insert(MCP_PINS).values(binds(MCP_PINS)))
_SEEN = Statement("mcp_pins.seen", upsert(MCP_PINS, "digest", "definition", "seen_ms"))
_ACCEPT = Statement(
    "mcp_pins.accept",
    update(MCP_PINS)
    .where(
        MCP_PINS.c.server == bindparam("of_server"),
        MCP_PINS.c.tool == bindparam("of_tool"),
        MCP_PINS.c.digest == bindparam("with_digest"),
    )
    .values(accepted=MCP_PINS.c.digest, accepted_ms=bindparam("now_ms")),
)
_FORGET = Statement("mcp_pins.forget", delete_row(MCP_PINS))
EVERYTHING = Statement("mcp_pins.all", select(MCP_PINS).order_by(MCP_PINS.c.server, MCP_PINS.c.tool)).query()
"""All columns of all rows, by server and tool."""


def seen(*, server: str, tool: str, digest: str, definition: str, now_ms: int, accepted: bool) -> Write:
    """Store the server's latest definition of `tool`; an empty digest means that it was removed. `accepted`: accept it
    if the tool is new; earlier acceptances do not change."""
    return _SEEN.write(
        server=server,
        tool=tool,
        accepted=digest if accepted else None,
        digest=digest,
        definition=definition,
        seen_ms=now_ms,
        accepted_ms=now_ms if accepted else None,
    )


def accept(server: str, tool: str, digest: str, now_ms: int) -> Write:
    """Accept the definition with that digest. Touches no row if the server has changed it again."""
    return _ACCEPT.write(of_server=server, of_tool=tool, with_digest=digest, now_ms=now_ms)


def forget(server: str, tool: str) -> Write:
    """Delete the tool's row, and so its acceptance."""
    return _FORGET.write(server=server, tool=tool)


def copied(row: Row) -> Write:
    """Copy a row of `EVERYTHING` to a database that has none for that tool; otherwise the unit fails with BadUnit."""
    return _COPIED.write(**row)
