"""Buffered JSONL writer of the function call log, with rotation by size."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import orjson

from services.refs import JsonObject
from services.storage import make_private


class RotatingFile:
    """Appends to `path`, private to the owner. Before a write would exceed `max_bytes`, renames it to `path.1`, that to
    `path.2`, and so on; keeps `keep_files` old files."""

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        self.path = path
        self._name = str(path)
        self._max_bytes = max_bytes
        self._keep_files = keep_files

    def append(self, lines: bytes) -> None:
        """Append all of `lines` or nothing, opening the file each time because it may be moved. Raises OSError."""
        size = self._size()
        if size and size + len(lines) > self._max_bytes:
            self._rotate()
            size = 0
        # System calls: creating a file object takes longer than the write.
        file = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A disk that fills up writes a part, and reports the error only for the rest.
            if os.write(file, lines) != len(lines):
                os.truncate(file, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._name)
        finally:
            os.close(file)

    def _size(self) -> int:
        try:
            found = os.stat(self._name)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return 0
        if found.st_mode & 0o077:
            make_private(self.path)
        return found.st_size

    def _rotate(self) -> None:
        for number in range(self._keep_files - 1, 0, -1):
            older = self._aside(number)
            if older.exists():
                older.replace(self._aside(number + 1))
        self.path.replace(self._aside(1))

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


_MOST_KEPT = 10_000
_LINE = orjson.OPT_APPEND_NEWLINE


class JsonLines:
    """Appends lines to a file within `delay_seconds`; a crash loses no more than that. Rotates by size."""

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
        """Lines that could not be written."""
        self._timer: asyncio.TimerHandle | None = None
        self.failed_writes = 0

    def append(self, line: JsonObject) -> None:
        """Encode `line` now, so that its objects need not be kept, and write it within `delay_seconds` or when
        `lines_per_write` lines are buffered. Needs a running event loop."""
        waiting = self._waiting
        waiting.append(orjson.dumps(line, default=str, option=_LINE))
        if len(waiting) >= self._lines_per_write:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_seconds, self.flush)

    def flush(self) -> None:
        """Write the buffered lines now; raises no OSError. A failed write is counted in `failed_writes`; the last
        10,000 lines are kept for the next attempt."""
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
