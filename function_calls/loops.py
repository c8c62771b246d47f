"""Loops: whether a model that calls one function after another still learns anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from function_calls.calls_made import FROM_BEFORE
from function_calls.spec import FunctionResult
from services.json_values import JsonObject


@dataclass(slots=True)
class LoopWatch:
    """What the calls of one turn have brought so far.

    A round makes progress when one of its calls gives a function's result that this turn has not seen, with arguments
    that are not those of its last call made longer. Calls that repeat, alternate or grow make none.
    """

    stalled: int = 0
    """Rounds without progress, one after another."""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    """Functions, each with the digest of something that it gave."""
    _latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _progress: bool = False

    def note(self, function: str, arguments: Mapping[str, Any], result: FunctionResult) -> None:
        """A call of this round has ended. What was given to it from before is nothing new."""
        if result.metadata is FROM_BEFORE:
            return
        given = orjson.dumps((result.data, result.error, [one.text for one in result.messages]), default=str)
        found = (function, hashlib.blake2b(given, digest_size=16).hexdigest())
        if found not in self._seen and not _grown(self._latest.get(function), arguments):
            self._progress = True
        self._seen.add(found)
        self._latest[function] = arguments

    def end_round(self) -> None:
        """All calls of the round have ended."""
        self.stalled = 0 if self._progress else self.stalled + 1
        self._progress = False

    def to_json(self) -> JsonObject:
        """As plain data, in the middle of a round too."""
        return {
            "stalled": self.stalled,
            "seen": sorted(self._seen),
            "latest": dict(self._latest),
            "progress": self._progress,
        }


def loops_from_json(data: JsonObject) -> LoopWatch:
    """The watch that `to_json` wrote."""
    seen = {(function, digest) for function, digest in data["seen"]}
    return LoopWatch(data["stalled"], seen, data["latest"], data["progress"])


def _grown(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> bool:
    """Whether `now` is `before` with one or more of its texts made longer."""
    if before is None or before.keys() != now.keys() or before == now:
        return False
    return all(
        now[name] == value
        or (isinstance(value, str) and isinstance(now[name], str) and value != "" and value in now[name])
        for name, value in before.items()
    )
