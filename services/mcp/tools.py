"""Tools of an MCP server: definitions with digests, and which of them were accepted."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from services.clock import Clock
from services.refs import JsonObject, JsonValue
from services.store.chats import mcp_pins
from services.store.port import Row, Store, Write

_PINNED = ("name", "description", "inputSchema", "outputSchema", "annotations")
"""What of a definition decides or is read by somebody; icons and the like are not used here."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool in its server's own words."""

    name: str
    content: JsonObject
    """`name` and, where the server gave them, `description`, `inputSchema`, `outputSchema` and `annotations`."""

    @property
    def digest(self) -> str:
        """SHA-256 over all of it, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def canonical(self) -> str:
        """All of it as JSON that is the same for the same content. Lone surrogates are escaped like all that is not
        ASCII, so every store can hold it."""
        return json.dumps(self.content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @property
    def description(self) -> str:
        """What it does; empty where the server does not say."""
        text = self.content.get("description")
        return text if isinstance(text, str) else ""

    def hint(self, name: str) -> bool:
        """Whether the annotation of that name is true."""
        annotations = self.content.get("annotations")
        return isinstance(annotations, Mapping) and annotations.get(name) is True


def definition_of(tool: Mapping[str, Any]) -> ToolDefinition:
    """What of a listed tool is pinned. Raises ValueError where it has no name."""
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a tool without a name")
    return ToolDefinition(name, {key: tool[key] for key in _PINNED if tool.get(key) is not None})


@dataclass(frozen=True, slots=True)
class Listing:
    """All tools that a server has at one moment."""

    tools: tuple[ToolDefinition, ...]
    problems: tuple[str, ...] = ()
    """What of the listing cannot be used, in sentences of ours; each once."""
    details: tuple[str, ...] = ()
    """The same for the log: what was left out, in the server's words."""
    is_whole: bool = True
    """False: there was more than is read."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call gave."""

    blocks: tuple[JsonObject, ...]
    """The content as it came: `{"type": "text" | "image" | "audio" | "resource_link" | "resource", …}`."""
    structured: JsonValue = None
    is_error: bool = False
    """The tool itself says that it failed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come, by the server's count."""

    done: float
    total: float | None = None


COUNTER = "mcp_pins"
"""The counter that rises when another process has changed pins."""
_GONE = ""
"""The digest of what a server no longer has."""


class PinState(StrEnum):
    """How the last definition of a tool stands to the one that was accepted."""

    ACCEPTED = "accepted"
    WAITING = "waiting"  # none was ever accepted
    CHANGED = "changed"  # another one was accepted
    GONE = "gone"  # the server had it and has it no more


@dataclass(frozen=True, slots=True)
class Pin:
    """What is known of one tool."""

    server: str
    tool: str
    accepted: str | None
    """The digest of the definition that may be used."""
    digest: str
    """Of the one that the server gave last; empty when it has none any more."""
    seen: ToolDefinition | None
    """The one that the server gave last."""
    was: ToolDefinition | None
    """The one that was accepted, where it is known."""

    @property
    def state(self) -> PinState:
        """How it stands."""
        if self.digest == _GONE:
            return PinState.GONE
        if self.accepted is None:
            return PinState.WAITING
        return PinState.ACCEPTED if self.accepted == self.digest else PinState.CHANGED


def pin_of(row: Mapping[str, Any]) -> Pin:
    """The pin that stands in a row of `mcp_pins`."""
    kept = json.loads(row["definition"])
    seen, was = _definition(kept.get("seen")), _definition(kept.get("accepted"))
    if row["accepted"] is not None and row["accepted"] == row["digest"]:
        was = seen
    return Pin(row["server"], row["tool"], row["accepted"], row["digest"], seen, was)


def _definition(content: JsonObject | None) -> ToolDefinition | None:
    return None if content is None else ToolDefinition(content["name"], content)


class Pins:
    """All pins, as the store has them. Belongs to one daemon."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pins: dict[str, dict[str, Pin]] = {}
        self._watchers: dict[str, list[asyncio.Event]] = {}
        self._loaded = False
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Read them again; who watches a server whose pins have changed is told."""
        async with self._loading:
            rows = await self._store.read(mcp_pins.everything())
            self._take(rows)

    async def loaded(self) -> None:
        """Return when they were read at least once."""
        if not self._loaded:
            await self.load()

    def of(self, server: str) -> Mapping[str, Pin]:
        """The pins of `server`, by the names of its tools."""
        return self._pins.get(server, {})

    @contextmanager
    def watched(self, server: str, event: asyncio.Event) -> Iterator[None]:
        """Meanwhile `event` is set whenever the pins of `server` have changed; for the watcher to clear."""
        watchers = self._watchers.setdefault(server, [])
        watchers.append(event)
        try:
            yield
        finally:
            watchers.remove(event)
            if not watchers:
                self._watchers.pop(server, None)

    async def note(self, server: str, listing: Listing, pin: Literal["first", "ask"]) -> None:
        """`server` has these tools now. With `first` they are accepted where nothing was ever seen of the server."""
        accepted = pin == "first" and not self.of(server)
        writes = list(self._changes(server, listing, accepted=accepted))
        if writes:
            await self._store.commit(writes)
            await self.load()

    def _changes(self, server: str, listing: Listing, *, accepted: bool) -> Iterator[Write]:
        known, now_ms = self.of(server), self._clock.now_ms()
        for tool in listing.tools:
            pin, digest = known.get(tool.name), tool.digest
            if pin is None or pin.digest != digest:
                yield mcp_pins.seen(
                    server=server,
                    tool=tool.name,
                    digest=digest,
                    definition=_kept(tool, pin),
                    now_ms=now_ms,
                    accepted=accepted,
                )
        listed = {tool.name for tool in listing.tools}
        for pin in known.values():
            if listing.is_whole and pin.tool not in listed and pin.state is not PinState.GONE:
                kept = _kept(None, pin)
                yield mcp_pins.seen(
                    server=server, tool=pin.tool, digest=_GONE, definition=kept, now_ms=now_ms, accepted=False
                )

    def _take(self, rows: Sequence[Row]) -> None:
        pins: dict[str, dict[str, Pin]] = {}
        for row in rows:
            pins.setdefault(row["server"], {})[row["tool"]] = pin_of(row)
        before, self._pins = self._pins, pins
        self._loaded = True
        for server, watchers in self._watchers.items():
            if before.get(server) != pins.get(server):
                for event in watchers:
                    event.set()


def _kept(seen: ToolDefinition | None, pin: Pin | None) -> str:
    """What is kept of a tool: its last definition, and the accepted one as long as that is another."""
    was = pin.was if pin is not None and pin.accepted is not None else None
    kept = {"seen": None if seen is None else seen.content, "accepted": None if was is None else was.content}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=True)
