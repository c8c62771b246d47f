"""Code blocks of a page, and the files that it mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)$")
_HEADING = re.compile(r"^#+ (.+)$")
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?<![\w./*<~-])(?:[\w.-]+/)*[\w.-]+\.(?:py|yaml|toml|txt|sh|md|html|js|css)\b(?!/)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    """Line number of its first text line in the page."""
    heading: str
    """The nearest heading above it."""
    language: str
    text: str

    @property
    def where(self) -> str:
        """Page and line, for error messages."""
        return f"{self.page}:{self.line}"


class Page:
    """A page of the project, by its path from the root."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = (ROOT / path).read_text(encoding="utf-8")
        self.blocks = tuple(_blocks(path, self.text))

    def of(self, language: str, heading: str = "") -> list[Block]:
        """The blocks in `language`; with `heading`, only those below it."""
        return [one for one in self.blocks if one.language == language and heading in ("", one.heading)]

    def files(self) -> set[str]:
        """File names in its code spans and diagrams."""
        spans = _CODE.findall(_without_blocks(self.text))
        drawings = [block.text for block in self.blocks if block.language == "text"]
        return {name for text in [*spans, *drawings] for name in _FILE.findall(text)}


def _blocks(path: str, text: str) -> Iterator[Block]:
    heading = language = ""
    begin = 0
    lines: list[str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        if lines is not None:
            if line == "```":
                yield Block(path, begin, heading, language, "\n".join(lines) + "\n")
                lines = None
            else:
                lines.append(line)
        elif fence is not None:
            language, begin, lines = fence[1], number + 1, []
        elif found := _HEADING.match(line):
            heading = found[1]
    if lines is not None:
        raise ValueError(f"{path}: the block at line {begin} is not closed")


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
