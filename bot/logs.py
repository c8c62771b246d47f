"""What the daemon writes about itself: JSON lines in a rotated file, and more on standard error where wanted."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import orjson
import structlog

from config.settings import LoggingSettings
from services.redaction import Redactor
from services.rotating_file import RotatingFile

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_BYTES_PER_MEGABYTE = 1_000_000

Event = MutableMapping[str, Any]


class _Sink:
    """The last processor: writes an event to each place it goes to."""

    def __init__(self, file: RotatingFile, redact: Redactor, console: TextIO | None, style: Literal["text", "json"]):
        self._file = file
        self._redact = redact
        self._console = console
        self._as_text = style == "text"
        self._render = structlog.dev.ConsoleRenderer(colors=console is not None and console.isatty())
        self._lost = 0
        """Lines that the disk refused since it last took one."""

    def __call__(self, logger: object, name: str, event: Event) -> str:
        event = {key: self._redact.value(value) for key, value in event.items()}
        self._keep(event)
        if self._console is not None:
            text = self._render(logger, name, event) if self._as_text else _line(event).decode().rstrip("\n")
            self._console.write(f"{text}\n")
        # Nothing is left for the logger below.
        raise structlog.DropEvent

    def _keep(self, event: Event) -> None:
        """A disk that refuses loses the line, not the daemon, and is told so once it takes lines again."""
        lines = _line(event)
        if self._lost:
            lines = _line({"event": "log_lines_lost", "level": "warning", "lines": self._lost}) + lines
        try:
            self._file.append(lines)
        except OSError as error:
            if self._lost == 0 and self._console is not None:
                self._console.write(f"the log {self._file.path} cannot be written: {error}\n")
            self._lost += 1
        else:
            self._lost = 0


def set_up_logs(
    settings: LoggingSettings, *, redact: Redactor, somebody_chats_here: bool, stderr: TextIO = sys.stderr
) -> bool:
    """Configure structlog for the process. `somebody_chats_here`: the terminal belongs to a conversation, which logs
    must not disturb. Returns whether logs are to be seen on `stderr`. Raises OSError when the folder cannot be made."""
    style = settings.console
    if style == "auto":
        style = "off" if somebody_chats_here else "text"
    settings.folder.mkdir(parents=True, exist_ok=True)
    max_bytes = settings.max_megabytes * _BYTES_PER_MEGABYTE
    file = RotatingFile(settings.folder / "rollcall.jsonl", max_bytes=max_bytes, keep_files=settings.keep_files)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _Sink(file, redact, None if style == "off" else stderr, "json" if style == "json" else "text"),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    return style != "off"


def _line(event: Event) -> bytes:
    return orjson.dumps(event, default=str) + b"\n"
