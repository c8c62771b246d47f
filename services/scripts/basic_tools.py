"""Stored BASIC tools, and requests to recompile them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from services.store.chats import basic_tools
from services.store.port import Store, Write

COUNTER = "basic_tools"
"""Change counter, increased when another process requests a recompilation."""


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A compiled tool, or (without a definition) a file that was never a valid tool."""

    bot: str
    tool_name: str
    source: str
    """Settings key of the source that has its file."""
    path: str
    """Path of the file in its storage."""
    etag: str
    """Etag of the file when it was last read."""
    content_hash: str
    """Digest of the compiled version in use; empty if it is to be recompiled."""
    definition: str
    """JSON of the tool's definition."""
    program: str
    """JSON of facts about its code."""
    findings: str
    """JSON of the findings of the last compilation."""
    is_active: int
    compiled_ms: int


class BasicTools:
    """Store access for compiled BASIC tools, and notification of their watchers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watchers: set[asyncio.Event] = set()

    async def everything(self) -> list[StoredTool]:
        """All tools, ordered by file, in one query. Raises StoreError."""
        return [StoredTool(**row) for row in await self._store.read(basic_tools.EVERYTHING)]

    async def script_of(self, bot: str, tool: str, content_hash: str) -> str | None:
        """The source text of the tool; None if there is no such tool or a different version is stored. Raises
        StoreError."""
        rows = await self._store.read(basic_tools.script_of(bot, tool))
        return next((row["script"] for row in rows if row["content_hash"] == content_hash), None)

    async def commit(self, writes: Sequence[Write]) -> None:
        """Execute all writes or none. Raises StoreError."""
        if writes:
            await self._store.commit(writes)

    async def outdated(self) -> set[tuple[str, str]]:
        """Source and path of the files to be recompiled. Raises StoreError."""
        return {(row["source"], row["path"]) for row in await self._store.read(basic_tools.OUTDATED)}

    async def wake_watchers(self) -> None:
        """Set the events of all watchers, because another process has changed rows."""
        for event in self._watchers:
            event.set()

    @contextmanager
    def watched(self, event: asyncio.Event) -> Iterator[None]:
        """Context manager that sets `event` whenever a recompilation is requested; the watcher clears it."""
        self._watchers.add(event)
        try:
            yield
        finally:
            self._watchers.discard(event)
