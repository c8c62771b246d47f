"""The log of function calls: one JSON line each. Its own buffered writer, because it stands on the hottest path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from services.json_values import JsonObject

Entry = tuple[Callable[..., JsonObject], tuple[Any, ...]]


class JsonLines:
    """Appends lines to a file, at most `delay_seconds` late; a crash loses no more than that. Rotates by size."""

    def __init__(
        self,
        path: Path,
        *,
        lines_per_write: int = 64,
        delay_seconds: float = 0.1,
        max_bytes: int = 20_000_000,
        keep_files: int = 5,
    ) -> None:
        self._path = path
        self._lines_per_write = lines_per_write
        self._delay_seconds = delay_seconds
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        self._waiting: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self.failed_writes = 0

    def append(self, render: Callable[..., JsonObject], *facts: Any) -> None:
        """Write the line that `render(*facts)` gives, later: rendering is not done here."""
        waiting = self._waiting
        waiting.append((render, facts))
        if len(waiting) >= self._lines_per_write:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_seconds, self.flush)

    def flush(self) -> None:
        """Write what waits. A disk that refuses is counted in `failed_writes`; the lines are kept for the next time,
        up to ten thousand."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        lines = [orjson.dumps(render(*facts), default=str) for render, facts in self._waiting]
        try:
            self._rotate_when_full()
            with self._path.open("ab") as file:
                file.write(b"\n".join(lines) + b"\n")
        except OSError:
            self.failed_writes += 1
            del self._waiting[:-10_000]
            return
        self._waiting.clear()

    def _rotate_when_full(self) -> None:
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return
        if self._path.stat().st_size < self._max_bytes:
            return
        for number in range(self._keep_files - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
