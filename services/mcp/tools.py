"""What a server says of its tools: definitions as they came, each with a digest by which any change shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.json_values import JsonObject, JsonValue

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
