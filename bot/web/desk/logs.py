"""The daemon's log, newest lines first, loaded again every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response
from starlette.routing import Route

from bot.web.desk.accounts import DeskRole
from bot.web.desk.desk import Desk, Visit

_FILES = ("rollcall.jsonl", "function_calls.jsonl", "model_requests.jsonl")
_LEVELS = ("debug", "info", "warning", "error", "critical")
_MOST_LINES = 200
_BLOCK_BYTES, _MOST_BYTES = 64 * 1024, 4 * 1024 * 1024
_SHOWN = ("timestamp", "at", "level", "event")


class LogLine(NamedTuple):
    """One line of a log."""

    at_ms: int | None
    """Milliseconds since 1970 UTC."""
    level: str
    """Empty in logs without levels."""
    event: str
    rest: str
    """The other fields."""


class LogPages:
    """The page, and its lines."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        """The page, and the part that is loaded again."""
        return [
            self._desk.get("/logs", self._page, DeskRole.OPERATOR),
            self._desk.get("/logs/lines", self._lines, DeskRole.OPERATOR),
        ]

    async def _page(self, visit: Visit) -> Response:
        return await self._shown(visit, "logs.html")

    async def _lines(self, visit: Visit) -> Response:
        return await self._shown(visit, "log_lines.html")

    async def _shown(self, visit: Visit, template: str) -> Response:
        file, level = visit.query.get("file", _FILES[0]), visit.query.get("level", "info")
        words = visit.query.get("words", "").strip()[:200]
        file, level = file if file in _FILES else _FILES[0], level if level in _LEVELS else "info"
        path = Path(self._desk.settings.logging.folder) / file
        lines = await asyncio.to_thread(newest_lines, path, level, words)
        choice: dict[str, Any] = {"file": file, "files": _FILES, "level": level, "levels": _LEVELS, "words": words}
        return visit.page(template, "logs", lines=lines, **choice)


def newest_lines(path: Path, level: str, words: str) -> Sequence[LogLine]:
    """At most 200 lines of the last 4 MB, newest first, of at least that level (lines without a level always count)
    and with `words` in them, ignoring case. Empty if there is no file."""
    least, wanted = _LEVELS.index(level), words.casefold().encode()
    found: list[LogLine] = []
    for line in _backwards(path):
        if wanted and wanted not in line.lower():
            continue
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        its_level = str(fields.get("level", ""))
        if its_level in _LEVELS and _LEVELS.index(its_level) < least:
            continue
        rest = {name: value for name, value in fields.items() if name not in _SHOWN}
        found.append(LogLine(_milliseconds(fields), its_level, str(fields.get("event", "")), _written(rest)))
        if len(found) >= _MOST_LINES:
            break
    return found


def _milliseconds(fields: Mapping[str, object]) -> int | None:
    with suppress(ValueError):
        at = datetime.fromisoformat(str(fields.get("timestamp", fields.get("at", ""))))
        return round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)
    return None


def _written(fields: dict[str, object]) -> str:
    words = {name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in fields.items()}
    return "  ".join(f"{name}={word}" for name, word in words.items())


def _backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file from its end, from the last 4 MB at most."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        end = file.seek(0, 2)
        start, rest = end, b""
        while start > 0 and end - start < _MOST_BYTES:
            size = min(_BLOCK_BYTES, start)
            start -= size
            file.seek(start)
            first, *lines = (file.read(size) + rest).split(b"\n")
            yield from (line for line in reversed(lines) if line)
            rest = first
        if start == 0 and rest:
            yield rest
