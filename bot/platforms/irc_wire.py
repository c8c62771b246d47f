"""Lines of the IRC protocol: read whatever a server sends, write nothing but one well-formed line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

LINE_BYTES = 512
"""Of one line with its end, as every server takes it; tags do not count."""
CLIENT_TAG_BYTES = 4096
"""Of the tags that a client may send, with the `@` and the space."""
MOST_BYTES = 8191 + 4 * LINE_BYTES
"""Of a line that is read: all the tags there can be, and room for servers with longer lines."""

_NO_TAGS: Mapping[str, str] = MappingProxyType({})
_UNESCAPED = {":": ";", "s": " ", "\\": "\\", "r": "\r", "n": "\n"}
_ESCAPES = str.maketrans({";": "\\:", " ": "\\s", "\\": "\\\\", "\r": "\\r", "\n": "\\n"})
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_TAG = re.compile(r"\+?(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9-]+")
_COMMAND = re.compile(r"[A-Za-z]+|[0-9]{3}")
_BREAKS = re.compile(r"[\x00\r\n]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    command: str
    """In capital letters, or a numeric."""
    params: tuple[str, ...] = ()
    source: str = ""
    """Who it is from: `nick!user@host`, a server, or nobody."""
    tags: Mapping[str, str] = field(default_factory=lambda: _NO_TAGS)

    @property
    def nick(self) -> str:
        """The nick or server in `source`."""
        return self.source.partition("!")[0].partition("@")[0]

    @property
    def last(self) -> str:
        """The last parameter; empty where there is none."""
        return self.params[-1] if self.params else ""

    def param(self, place: int) -> str:
        """The parameter at `place`, counted from 0; empty where there is none."""
        return self.params[place] if place < len(self.params) else ""


def parse(raw: bytes) -> Line | None:
    """The line in `raw`, which has no line end any more; None when there is no command in it. Text that is not UTF-8 is
    taken for Latin-1. Never raises."""
    raw = raw.lstrip(b" ")
    tags: Mapping[str, str] = _NO_TAGS
    if raw.startswith(b"@"):
        written, _, raw = raw[1:].partition(b" ")
        tags = _tags(written.decode("utf-8", "replace"))
    text = _decoded(raw).lstrip(" ")
    source = ""
    if text.startswith(":"):
        source, _, text = text[1:].partition(" ")
    head, colon, trailing = f" {text}".partition(" :")
    words = [word for word in head.split(" ") if word]
    if not words:
        return None
    params = [*words[1:], trailing] if colon else words[1:]
    return Line(words[0].upper(), tuple(params), source, tags)


def encode(command: str, *params: str, tags: Mapping[str, str] = _NO_TAGS) -> bytes:
    """The line with its end. Raises ValueError for what cannot be said in one line: a line end or NUL anywhere; a
    space, nothing, or a leading colon in a parameter before the last; more tags than servers take. How long the rest
    may be is the caller's affair."""
    if _COMMAND.fullmatch(command) is None:
        raise ValueError(f"{command!r} is no command")
    *middle, last = params or ("",)
    for param in middle:
        if not param or " " in param or param.startswith(":"):
            raise ValueError(f"{command}: {param!r} can only be the last parameter")
    if any(_BREAKS.search(param) for param in params):
        raise ValueError(f"{command}: a parameter holds a line end or NUL")
    text = " ".join([command, *middle, f":{last}"] if params else [command])
    return f"{_written(tags)}{text}\r\n".encode("utf-8", "replace")


def one_word(text: str) -> bool:
    """Whether `text` can stand as a parameter before the last one."""
    return bool(text) and not text.startswith(":") and re.search(r"[\x00\r\n ]", text) is None


class LineSplitter:
    """Cuts a stream of bytes into lines, however it arrives. A line without an end does not outgrow memory."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rest = b""
        self._is_skipping = False
        self.skipped = 0
        """Lines that were too long and are lost."""

    def feed(self, data: bytes) -> Sequence[bytes]:
        """The lines that `data` ends, without their ends and without empty ones."""
        *whole, rest = (self._rest + data).split(b"\n")
        lines: list[bytes] = []
        for line in whole:
            if self._is_skipping or len(line) > self._most_bytes:
                self.skipped += 1
            elif line := line.rstrip(b"\r"):
                lines.append(line)
            self._is_skipping = False
        if self._is_skipping or len(rest) > self._most_bytes:
            self._is_skipping, rest = True, b""
        self._rest = rest
        return lines


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _tags(written: str) -> Mapping[str, str]:
    tags: dict[str, str] = {}
    for tag in written.split(";"):
        key, _, value = tag.partition("=")
        if key:
            tags[key] = _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[1]), value)
    return tags


def _written(tags: Mapping[str, str]) -> str:
    if not tags:
        return ""
    if any(_TAG.fullmatch(key) is None or "\0" in value for key, value in tags.items()):
        raise ValueError(f"tags that cannot be sent: {sorted(tags)}")
    text = ";".join(f"{key}={value.translate(_ESCAPES)}" if value else key for key, value in tags.items())
    text = f"@{text} "
    if len(text.encode("utf-8", "replace")) > CLIENT_TAG_BYTES:
        raise ValueError("the tags are too long")
    return text
