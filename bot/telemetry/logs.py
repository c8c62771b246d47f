"""Log of the daemon: JSON lines in a rotated file, optionally also on standard error."""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TextIO

import orjson
import structlog

from config.settings import LoggingSettings
from services.call_log import RotatingFile
from services.redaction import Redactor
from services.storage import make_private

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_BYTES_PER_MEGABYTE = 1_000_000

Event = MutableMapping[str, Any]


class _Sink:
    """The last processor: writes each event to the file and the console."""

    def __init__(
        self, file: RotatingFile | None, redact: Redactor, console: TextIO | None, style: Literal["text", "json"]
    ) -> None:
        self._file = file
        self._redact = redact
        self._console = console
        self._as_text = style == "text"
        self._render = structlog.dev.ConsoleRenderer(colors=console is not None and console.isatty())
        self._lost = 0
        """Lines lost since the last successful write."""

    def __call__(self, logger: object, name: str, event: Event) -> str:
        event = self._redact.value(event)
        if self._file is not None:
            self._keep(self._file, event)
        self._show(self._render(logger, name, event) if self._as_text else _line(event).decode().rstrip("\n"))
        # Stops processing: the logger itself writes nothing.
        raise structlog.DropEvent

    def _keep(self, file: RotatingFile, event: Event) -> None:
        """Write the event. Lines lost by an error are counted, and the count is logged with the next success."""
        lines = _line(event)
        if self._lost:
            lines = _line({"event": "log_lines_lost", "level": "warning", "lines": self._lost}) + lines
        try:
            file.append(lines)
        except OSError as error:
            if self._lost == 0:
                self._show(f"the log {file.path} cannot be written: {error}")
            self._lost += 1
        else:
            self._lost = 0

    def _show(self, text: str) -> None:
        """Errors are ignored, since the reader of the console may be gone."""
        if self._console is not None:
            with suppress(OSError, ValueError):
                self._console.write(f"{text}\n")


def set_up_logs(
    settings: LoggingSettings, *, redact: Redactor, console_chat: bool, stderr: TextIO = sys.stderr
) -> bool:
    """Configure structlog for the process. `console_chat`: the terminal is used for a chat, so `auto` logs
    nothing there. Returns whether logs go to `stderr`. Raises OSError if the folder cannot be created."""
    style = settings.console
    if style == "auto":
        style = "off" if console_chat else "text"
    _make_private(settings.folder)
    max_bytes = settings.max_megabytes * _BYTES_PER_MEGABYTE
    file = RotatingFile(settings.folder / "rollcall.jsonl", max_bytes=max_bytes, keep_files=settings.keep_files)
    sink = _Sink(file, redact, None if style == "off" else stderr, "json" if style == "json" else "text")
    _configure(sink, settings.level)
    return style != "off"


def _make_private(folder: Path) -> None:
    """Create the folder, and remove the access of group and others to it and its logs, which contain arguments of
    private chats. A folder with other files keeps its permissions. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = list(folder.iterdir())
    logs = [file for file in files if ".jsonl" in file.suffixes]
    with suppress(PermissionError):  # owned by another user; new files are private anyway
        for path in [*logs, *([folder] if len(logs) == len(files) else [])]:
            make_private(path)


def set_up_logs_of_a_command(stderr: TextIO) -> None:
    """Configure structlog for a command that prints to standard output: only errors, to `stderr`, without a file."""
    _configure(_Sink(None, Redactor(), stderr, "text"), "error")


def _configure(sink: _Sink, level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # As text, without the local variables that other traceback formatters include.
            structlog.processors.format_exc_info,
            sink,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _line(event: Event) -> bytes:
    return orjson.dumps(event, default=str) + b"\n"
