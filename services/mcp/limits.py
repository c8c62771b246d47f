"""How much a server may say."""

from __future__ import annotations

MESSAGE_BYTES = 8 * 1024 * 1024
"""One message of a server; a connection with a longer one is ended."""
MOST_TOOLS = 512
MOST_PAGES = 100
DEFINITION_BYTES = 64 * 1024
"""The definition of one tool, as JSON."""
