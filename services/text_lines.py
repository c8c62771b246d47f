"""Some lines of a text, as many as can be shown."""

from __future__ import annotations

from dataclasses import dataclass

from services.json_values import JsonObject

MOST_CHARS = 4000


@dataclass(frozen=True, slots=True)
class LinesShown:
    """Lines of a text, counted from 1."""

    text: str
    first_line: int
    last_line: int
    """0: there is none of those that were asked for."""
    lines: int
    """All that the text has."""
    is_cut: bool
    """More were asked for, and there was no room for them."""
    line_is_cut: bool
    """The last line is longer than all that can be shown."""

    @property
    def is_part(self) -> bool:
        """Whether the text has other lines, too."""
        return (self.first_line, self.last_line) != (1, self.lines)

    def as_json(self) -> JsonObject:
        """For models and callers in code."""
        return {
            "text": self.text,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "lines": self.lines,
            "cut": self.is_cut or self.line_is_cut,
        }


def lines_shown(text: str, first: int, last: int | None, most_chars: int = MOST_CHARS) -> LinesShown:
    """The lines from `first` to `last`, or to the end; whole ones, as many as fit, but at least a part of one."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
    wanted = lines[first - 1 : last]
    kept: list[str] = []
    left = most_chars
    for line in wanted:
        left -= len(line) + 1
        if left < 0 and kept:
            break
        kept.append(line[:most_chars])
        if left < 0:
            break
    return LinesShown(
        text="\n".join(kept),
        first_line=first,
        last_line=first + len(kept) - 1 if kept else 0,
        lines=len(lines),
        is_cut=len(kept) < len(wanted),
        line_is_cut=bool(kept) and len(wanted[len(kept) - 1]) > most_chars,
    )
