"""What is kept of BASIC scripts: the tools that were compiled from them, and word that they are to be compiled anew."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from services.clock import Clock
from services.store.chats import basic_tools
from services.store.port import Store, Write

COUNTER = "basic_tools"
"""The counter that rises when another process wants scripts to be compiled anew."""


@dataclass(frozen=True, slots=True)
class KeptTool:
    """One tool, or a file that never was one: then without a definition."""

    bot: str
    tool_name: str
    source: str
    """The key of the settings under which its file was found."""
    path: str
    """Of the file in its storage."""
    etag: str
    """Of the file as it was seen last."""
    content_hash: str
    """Of what serves; empty where it is to be compiled anew."""
    definition: str
    """JSON of the tool's definition."""
    program: str
    """JSON of what is known of its code."""
    findings: str
    """JSON of what was said of the file when it was read last."""
    is_active: int
    compiled_ms: int


class BasicTools:
    """The tools as the store has them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watchers: set[asyncio.Event] = set()

    async def everything(self) -> list[KeptTool]:
        """All of them, file after file; one query. Raises StoreError."""
        return [KeptTool(**row) for row in await self._store.read(basic_tools.everything())]

    async def script_of(self, bot: str, tool: str, content_hash: str) -> str | None:
        """The text that the tool was compiled from; None where another one is kept. Raises StoreError."""
        rows = await self._store.read(basic_tools.script_of(bot, tool))
        return next((row["script"] for row in rows if row["content_hash"] == content_hash), None)

    def kept(
        self,
        *,
        bot: str,
        tool: str,
        source: str,
        path: str,
        etag: str,
        content_hash: str,
        script: str,
        definition: str,
        program: str,
        findings: str,
        is_active: bool = True,
    ) -> Write:
        """The tool was compiled now."""
        return basic_tools.keep(
            bot=bot,
            tool_name=tool,
            source=source,
            path=path,
            etag=etag,
            content_hash=content_hash,
            script=script,
            definition=definition,
            program=program,
            findings=findings,
            is_active=int(is_active),
            compiled_ms=self._clock.now_ms(),
        )

    def gone(self, tool: KeptTool) -> Write:
        """The tool serves nobody any more; it stays to be looked at."""
        return basic_tools.deactivate(tool.bot, tool.tool_name, tool.source)

    async def commit(self, writes: Sequence[Write]) -> None:
        """All of them or nothing. Raises StoreError."""
        if writes:
            await self._store.commit(writes)

    async def outdated(self) -> set[tuple[str, str]]:
        """Source and path of the files that are to be compiled anew. Raises StoreError."""
        return {(row["source"], row["path"]) for row in await self._store.read(basic_tools.outdated())}

    async def look(self) -> None:
        """Another process has changed rows: who watches is told."""
        for event in self._watchers:
            event.set()

    @contextmanager
    def watched(self, event: asyncio.Event) -> Iterator[None]:
        """Meanwhile `event` is set whenever scripts are to be compiled anew; for the watcher to clear."""
        self._watchers.add(event)
        try:
            yield
        finally:
            self._watchers.discard(event)
