"""What the daemon writes about itself: JSON lines in a rotated file, and more on standard error where wanted."""

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
    """The last processor: writes an event to each place it goes to."""

    def __init__(
        self, file: RotatingFile | None, redact: Redactor, console: TextIO | None, style: Literal["text", "json"]
    ) -> None:
        self._file = file
        self._redact = redact
        self._console = console
        self._as_text = style == "text"
        self._render = structlog.dev.ConsoleRenderer(colors=console is not None and console.isatty())
        self._lost = 0
        """Lines that the disk refused since it last took one."""

    def __call__(self, logger: object, name: str, event: Event) -> str:
        event = self._redact.value(event)
        if self._file is not None:
            self._keep(self._file, event)
        self._show(self._render(logger, name, event) if self._as_text else _line(event).decode().rstrip("\n"))
        # Nothing is left for the logger below.
        raise structlog.DropEvent

    def _keep(self, file: RotatingFile, event: Event) -> None:
        """A disk that refuses loses the line, not the daemon, and is told so once it takes lines again."""
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
        """Nobody may be reading any more, which ends nothing."""
        if self._console is not None:
            with suppress(OSError, ValueError):
                self._console.write(f"{text}\n")


def set_up_logs(
    settings: LoggingSettings, *, redact: Redactor, somebody_chats_here: bool, stderr: TextIO = sys.stderr
) -> bool:
    """Configure structlog for the process. `somebody_chats_here`: the terminal belongs to a conversation, which logs
    must not disturb. Returns whether logs are to be seen on `stderr`. Raises OSError when the folder cannot be made."""
    style = settings.console
    if style == "auto":
        style = "off" if somebody_chats_here else "text"
    _make_private(settings.folder)
    max_bytes = settings.max_megabytes * _BYTES_PER_MEGABYTE
    file = RotatingFile(settings.folder / "rollcall.jsonl", max_bytes=max_bytes, keep_files=settings.keep_files)
    sink = _Sink(file, redact, None if style == "off" else stderr, "json" if style == "json" else "text")
    _configure(sink, settings.level)
    return style != "off"


def _make_private(folder: Path) -> None:
    """Make the folder, and take it and the logs in it from group and others: they hold arguments of private chats. A
    folder in which there is more than logs keeps its rights. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = list(folder.iterdir())
    logs = [file for file in files if ".jsonl" in file.suffixes]
    with suppress(PermissionError):  # somebody else's; what is written from now on is private all the same
        for path in [*logs, *([folder] if len(logs) == len(files) else [])]:
            make_private(path)


def set_up_logs_of_a_command(stderr: TextIO) -> None:
    """Configure structlog for a process that answers on standard output: errors alone, on `stderr`, to no file."""
    _configure(_Sink(None, Redactor(), stderr, "text"), "error")


def _configure(sink: _Sink, level: str) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # As text, and without the local variables that other ways of showing a traceback would add.
            structlog.processors.format_exc_info,
            sink,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _line(event: Event) -> bytes:
    return orjson.dumps(event, default=str) + b"\n"
