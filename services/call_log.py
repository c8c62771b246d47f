"""The log of function calls: one JSON line each. Its own buffered writer, because it stands on the hottest path."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson

from services.json_values import JsonObject
from services.rotating_file import RotatingFile

_MOST_KEPT = 10_000
_LINE = orjson.OPT_APPEND_NEWLINE


class JsonLines:
    """Appends lines to a file, at most `delay_seconds` late; a crash loses no more than that. Rotates by size."""

    def __init__(
        self,
        path: Path,
        *,
        lines_per_write: int = 256,
        delay_seconds: float = 0.1,
        max_bytes: int = 20_000_000,
        keep_files: int = 5,
    ) -> None:
        self._file = RotatingFile(path, max_bytes=max_bytes, keep_files=keep_files)
        self._lines_per_write = lines_per_write
        self._delay_seconds = delay_seconds
        self._waiting: list[bytes] = []
        self._unwritten: list[bytes] = []
        """Lines that the disk refused."""
        self._timer: asyncio.TimerHandle | None = None
        self.failed_writes = 0

    def append(self, line: JsonObject) -> None:
        """Write `line` a moment later. It is encoded now: what it is made of is at hand, and is not kept for it."""
        waiting = self._waiting
        waiting.append(orjson.dumps(line, default=str, option=_LINE))
        if len(waiting) >= self._lines_per_write:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_seconds, self.flush)

    def flush(self) -> None:
        """Write what waits. A disk that refuses is counted in `failed_writes`; the last ten thousand lines are kept for
        the next time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._waiting = [*self._unwritten, *self._waiting], []
        if not lines:
            return
        try:
            self._file.append(b"".join(lines))
        except OSError:
            self.failed_writes += 1
            self._unwritten = lines[-_MOST_KEPT:]
        else:
            self._unwritten = []
