"""Activity by hour for the overview: messages from the store, calls and requests from the logs."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from config.sections.bots import PriceSettings
from services.refs import JsonObject
from services.store import reports
from services.store.ids import first_id_at
from services.store.reader import OperatorConnection

HOUR_MS = 3_600_000
HOURS = 24
_MOST_DURATIONS = 20_000
"""Durations kept for each hour; percentiles of a busier hour are those of its first calls."""
ANSWERED = frozenset({"command", "function", "chat", "answered_question", "asked", "timer", "chimed_in", "gathered"})
"""Reason codes of messages that were answered."""
FAILED = frozenset(
    {"queue_full", "reply_dropped", "model_failed", "model_down", "function_failed", "unknown_outcome", "gave_up"}
)
"""Reason codes of messages whose answer failed."""
CALLS, REQUESTS = "function_calls.jsonl", "model_requests.jsonl"


@dataclass(slots=True)
class Hour:
    """Counts of one hour."""

    reasons: Counter[str] = field(default_factory=Counter)
    """Events by how they ended."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Runs of functions by outcome: `ok`, `asked`, or an error code."""
    durations_ms: list[float] = field(default_factory=list)
    """Durations of runs of functions."""
    tokens: int = 0
    cost: float = 0.0
    """In the currency of `budgets.prices`."""

    def percentile(self, share: float) -> float:
        """Nearest-rank percentile of the durations, in milliseconds; 0 without any."""
        ordered = sorted(self.durations_ms)
        return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0.0


class Activity:
    """The last 24 hours. Past hours are counted once; of the logs only new lines are read. Not thread-safe: one call at
    a time."""

    def __init__(self, logs: Path) -> None:
        self._tails = {name: _Tail(logs / name) for name in (CALLS, REQUESTS)}
        self._hours: dict[int, Hour] = {}
        self._counted_until = 0

    def by_hour(
        self, reader: OperatorConnection, prices: Mapping[str, PriceSettings], now_ms: int
    ) -> Mapping[int, Hour]:
        """The last 24 hours, oldest first, by their number since 1970 UTC. Raises ReaderError."""
        current = now_ms // HOUR_MS
        first = current - HOURS + 1
        for hour in [hour for hour in self._hours if hour < first]:
            del self._hours[hour]
        hours = {hour: self._hours.setdefault(hour, Hour()) for hour in range(first, current + 1)}
        self._count_events(reader, max(first, self._counted_until), hours)
        # A message that waits changes its reason later, and the clock may be behind that of the database.
        self._counted_until = current - 1
        for line in self._tails[CALLS].lines():
            if (found := hours.get(_hour_of(line))) is not None:
                found.outcomes[line["outcome"]] += 1
                if len(found.durations_ms) < _MOST_DURATIONS:
                    found.durations_ms.append(line["duration_ms"])
        for line in self._tails[REQUESTS].lines():
            if (found := hours.get(_hour_of(line))) is not None:
                found.tokens += line["prompt_tokens"] + line["completion_tokens"]
                found.cost += cost_of(line, prices)
        return hours

    def _count_events(self, reader: OperatorConnection, first: int, hours: Mapping[int, Hour]) -> None:
        for hour, counted in hours.items():
            if hour >= first:
                counted.reasons.clear()
        for row in reader.rows(reports.by_hour(first_id_at(first * HOUR_MS))):
            if (found := hours.get(row["hour"])) is not None and row["hour"] >= first:
                found.reasons[row["reason"]] += row["count"]


def level_of(reason: str) -> str:
    """Class of the style sheet for a reason code: `good`, `bad`, or `soft` for messages that need no answer."""
    return "good" if reason in ANSWERED else "bad" if reason in FAILED else "soft"


def cost_of(request: JsonObject, prices: Mapping[str, PriceSettings]) -> float:
    """The price of a logged model request; 0 for a model without a price."""
    price = prices.get(request["by"]) or prices.get(request["model"])
    if price is None:
        return 0.0
    return float(request["prompt_tokens"] * price.prompt + request["completion_tokens"] * price.completion) / 1e6


def requests_of(logs: Path, turn: str) -> list[JsonObject]:
    """The logged model requests of a turn, oldest first; empty if the log no longer has them."""
    wanted = f'"turn":"{turn}"'.encode()
    found: list[JsonObject] = []
    for file in _files(logs / REQUESTS):
        with file.open("rb") as lines:
            found += [_parsed(line) for line in lines if wanted in line]
    return [line for line in found if line]


class _Tail:
    """New lines of a log that is rotated by renaming."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0

    def lines(self) -> Iterator[JsonObject]:
        """Yield the lines that were added since the last call; at the first, those of all files. Lines that cannot be
        parsed are left out."""
        for file in self._unread():
            with file.open("rb") as opened:
                inode = os.fstat(opened.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._offset = inode, 0
                opened.seek(self._offset)
                for line in opened:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    if parsed := _parsed(line):
                        yield parsed

    def _unread(self) -> list[Path]:
        files = _files(self._path)
        known = [place for place, file in enumerate(files) if file.stat().st_ino == self._inode]
        return files[known[0] :] if known else files


def _files(path: Path) -> list[Path]:
    """The file and its rotated predecessors, oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: -int(file.suffix[1:] or 0))
    return [*older, *([path] if path.exists() else [])]


def _parsed(line: bytes) -> JsonObject:
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _hour_of(line: JsonObject) -> int:
    return int(datetime.fromisoformat(line["at"]).timestamp() * 1000) // HOUR_MS
