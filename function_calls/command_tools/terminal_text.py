"""What a program wrote, as text that can be shown: decoded, without what only a terminal understands."""

from __future__ import annotations

import re
from collections import deque

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
    r"|[\x80-\x9f]",
    re.DOTALL,
)
_OVERWRITTEN = re.compile(r"[^\n]*\r(?=[^\n])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LINE_CHARS = 200
_TAIL_PIECES = 8


def readable(data: bytes, most_chars: int) -> tuple[str, bool]:
    """The text of `data`, at most so long; and whether it is shorter than it was. Bytes that are no UTF-8 are replaced,
    and of a line that was written over there is what was written last."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    text = _CONTROLS.sub("", _OVERWRITTEN.sub("", text))
    return text[:most_chars], len(text) > most_chars


class Tail:
    """The end of what a program has written so far."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque(maxlen=_TAIL_PIECES)

    def add(self, data: bytes) -> None:
        """Note a further piece."""
        self._pieces.append(data[-4 * _LINE_CHARS :])

    @property
    def line(self) -> str:
        """The last line that says something; empty when there is none."""
        text, _ = readable(b"".join(self._pieces), _TAIL_PIECES * 4 * _LINE_CHARS)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:_LINE_CHARS] if lines else ""
