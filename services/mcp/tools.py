"""Tools of an MCP server: definitions with digests, and pins of the accepted definitions."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from services.clock import Clock
from services.refs import JsonObject, JsonValue
from services.store.chats import mcp_pins
from services.store.port import Row, Store, Write

_PINNED = ("name", "description", "inputSchema", "outputSchema", "annotations")
"""Fields of a definition that are pinned; others, such as icons, are not used."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Definition of a tool in the server's words."""

    name: str
    content: JsonObject
    """`name` and, if present, `description`, `inputSchema`, `outputSchema` and `annotations`."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def canonical(self) -> str:
        """Canonical JSON. ASCII only, with lone surrogates escaped, so that every store can hold it."""
        return json.dumps(self.content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @property
    def description(self) -> str:
        """The tool's description; may be empty."""
        text = self.content.get("description")
        return text if isinstance(text, str) else ""

    def hint(self, name: str) -> bool:
        """Whether the named annotation is true."""
        annotations = self.content.get("annotations")
        return isinstance(annotations, Mapping) and annotations.get(name) is True


def definition_of(tool: Mapping[str, Any]) -> ToolDefinition:
    """Pinned fields of a listed tool. Raises ValueError if it has no name."""
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a tool without a name")
    return ToolDefinition(name, {key: tool[key] for key in _PINNED if tool.get(key) is not None})


@dataclass(frozen=True, slots=True)
class Listing:
    """Usable tools of a server at one moment, with the problems of the others."""

    tools: tuple[ToolDefinition, ...]
    problems: tuple[str, ...] = ()
    """Problems of the listing without server text, each once."""
    details: tuple[str, ...] = ()
    """Details of the omitted tools for the log, in the server's words."""
    is_whole: bool = True
    """False if a limit cut the listing."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Result of a tool call; `structured` is the optional structured content."""

    blocks: tuple[JsonObject, ...]
    """Unmodified content: `{"type": "text" | "image" | "audio" | "resource_link" | "resource", …}`."""
    structured: JsonValue = None
    is_error: bool = False
    """The tool itself reported a failure."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions that a server asks before a call continues."""

    requests: Mapping[str, JsonObject]
    """Parameters of elicitation requests, by key."""
    token: JsonObject
    """Identifies the waiting call; plain data."""


class Replies(NamedTuple):
    """Answers with which a waiting call continues."""

    token: JsonObject
    answers: Mapping[str, JsonObject]
    """Elicitation results by the keys of their requests: `action`, and `content` if it is `accept`."""


class LookUp(NamedTuple):
    """Request for resources or prompts."""

    kind: Literal["resources", "prompts"]
    name: str = ""
    """URI of a resource, or name of a prompt. Empty: list them."""
    arguments: Mapping[str, str] = MappingProxyType({})
    """Arguments of a prompt."""


OnProgress = Callable[[float, float | None], Awaitable[None]]
"""Callback for the progress of a call in the server's units, and the total, or None if it is unknown."""
COUNTER = "mcp_pins"
"""Store counter that increases when another process changes pins."""
_NO_DIGEST = ""
"""Digest that marks a removed tool."""


class PinState(StrEnum):
    """State of a tool's latest definition relative to the accepted one."""

    ACCEPTED = "accepted"
    WAITING = "waiting"  # no version was ever accepted
    CHANGED = "changed"  # a different version was accepted
    GONE = "gone"  # the server has removed the tool


@dataclass(frozen=True, slots=True)
class Pin:
    """Known definitions of one tool: the latest and the accepted one."""

    server: str
    tool: str
    accepted: str | None
    """Digest of the accepted definition."""
    digest: str
    """Digest of the latest definition; empty if the tool was removed."""
    seen: ToolDefinition | None
    """The latest definition."""
    was: ToolDefinition | None
    """The accepted definition, if it is known."""

    @property
    def state(self) -> PinState:
        """State derived from the digests: GONE without a latest digest, WAITING without an accepted one, ACCEPTED if
        they are equal, else CHANGED."""
        if self.digest == _NO_DIGEST:
            return PinState.GONE
        if self.accepted is None:
            return PinState.WAITING
        return PinState.ACCEPTED if self.accepted == self.digest else PinState.CHANGED


def pin_of(row: Mapping[str, Any]) -> Pin:
    """Convert a row of `mcp_pins` to a Pin."""
    definitions = json.loads(row["definition"])
    seen, was = _definition(definitions.get("seen")), _definition(definitions.get("accepted"))
    if row["accepted"] is not None and row["accepted"] == row["digest"]:
        was = seen
    return Pin(row["server"], row["tool"], row["accepted"], row["digest"], seen, was)


def _definition(content: JsonObject | None) -> ToolDefinition | None:
    return None if content is None else ToolDefinition(content["name"], content)


class Pins:
    """All pins, cached from the store. Each daemon has one instance."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pins: dict[str, dict[str, Pin]] = {}
        self._watchers: dict[str, list[asyncio.Event]] = {}
        self._loaded = False
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Reload the pins and notify the watchers of servers whose pins have changed. Raises StoreError."""
        async with self._loading:
            rows = await self._store.read(mcp_pins.EVERYTHING)
            self._take(rows)

    async def loaded(self) -> None:
        """Load the pins unless they were loaded before."""
        if not self._loaded:
            await self.load()

    def of(self, server: str) -> Mapping[str, Pin]:
        """Pins of `server` by tool name; empty for an unknown server or before `load`."""
        return self._pins.get(server, {})

    @contextmanager
    def watched(self, server: str, event: asyncio.Event) -> Iterator[None]:
        """Context manager: within the block, set `event` whenever the pins of `server` change; the watcher clears
        it."""
        watchers = self._watchers.setdefault(server, [])
        watchers.append(event)
        try:
            yield
        finally:
            watchers.remove(event)
            if not watchers:
                self._watchers.pop(server, None)

    async def note(self, server: str, listing: Listing, pin: Literal["first", "ask"]) -> None:
        """Store new and changed definitions of `server`, and mark tools missing from a whole listing as removed. With
        `first` the definitions are accepted if the server had no pins. Raises StoreError."""
        accepted = pin == "first" and not self.of(server)
        writes = list(self._changes(server, listing, accepted=accepted))
        if writes:
            await self._store.commit(writes)
            await self.load()

    def _changes(self, server: str, listing: Listing, *, accepted: bool) -> Iterator[Write]:
        known = self.of(server)
        seen = partial(mcp_pins.seen, server=server, now_ms=self._clock.now_ms())
        for tool in listing.tools:
            pin, digest = known.get(tool.name), tool.digest
            if pin is None or pin.digest != digest:
                definition = _stored_definitions(tool, pin)
                yield seen(tool=tool.name, digest=digest, definition=definition, accepted=accepted)
        listed = {tool.name for tool in listing.tools}
        for pin in known.values():
            if listing.is_whole and pin.tool not in listed and pin.state is not PinState.GONE:
                definition = _stored_definitions(None, pin)
                yield seen(tool=pin.tool, digest=_NO_DIGEST, definition=definition, accepted=False)

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


def _stored_definitions(seen: ToolDefinition | None, pin: Pin | None) -> str:
    """JSON text to store for a tool: `seen`, its latest definition, and `accepted`, the accepted definition; each may
    be null."""
    was = pin.was if pin is not None and pin.accepted is not None else None
    definitions = {"seen": None if seen is None else seen.content, "accepted": None if was is None else was.content}
    return json.dumps(definitions, separators=(",", ":"), ensure_ascii=True)
