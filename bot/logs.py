"""What the daemon writes about itself: JSON lines in a rotated file, and more on standard error where wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Literal, TextIO

import orjson
import structlog

from config.settings import LoggingSettings
from services.redaction import Redactor

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_BYTES_PER_MEGABYTE = 1_000_000

Event = MutableMapping[str, Any]


class RotatingFile:
    """Appends lines to a file; puts it aside when it is full."""

    def __init__(self, path: Path, max_bytes: int, keep_files: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep_files = keep_files
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._size = self._file.tell()

    def write(self, line: bytes) -> None:
        """Append `line`. A disk that refuses loses the line, not the daemon."""
        try:
            if self._size + len(line) > self._max_bytes:
                self._rotate()
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
        except OSError as error:
            print(f"the log {self._path} cannot be written: {error}", file=sys.stderr)  # noqa: T201 - nowhere else is left

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._keep_files - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._file = self._path.open("ab")
        self._size = 0


class _Sink:
    """The last processor: renders an event for each place it goes to."""

    def __init__(self, file: RotatingFile | None, console: TextIO | None, style: Literal["text", "json"]) -> None:
        self._file = file
        self._console = console
        self._as_text = style == "text"
        self._render = structlog.dev.ConsoleRenderer(colors=console is not None and console.isatty())

    def __call__(self, logger: object, name: str, event: Event) -> str:
        line = orjson.dumps(event, default=str) + b"\n"
        if self._file is not None:
            self._file.write(line)
        if self._console is not None:
            text = self._render(logger, name, event) if self._as_text else line.decode().rstrip("\n")
            self._console.write(f"{text}\n")
        # Nothing is left for the logger below.
        raise structlog.DropEvent


def set_up_logs(
    settings: LoggingSettings, *, redact: Redactor, somebody_chats_here: bool, stderr: TextIO = sys.stderr
) -> Callable[[], None]:
    """Configure structlog for the process; returns what closes the files. `somebody_chats_here`: the terminal belongs
    to a conversation, which logs must not disturb."""
    style = settings.console
    if style == "auto":
        style = "off" if somebody_chats_here else "text"
    file = RotatingFile(
        settings.folder / "rollcall.jsonl", settings.max_megabytes * _BYTES_PER_MEGABYTE, settings.keep_files
    )

    def hide_secrets(logger: object, name: str, event: Event) -> Event:
        for key, value in event.items():
            if isinstance(value, str):
                event[key] = redact(value)
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            hide_secrets,
            _Sink(file, None if style == "off" else stderr, "json" if style == "json" else "text"),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    return file.close
