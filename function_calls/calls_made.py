"""The calls of one turn so far, so that an identical one is known again, after a question too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import orjson

from function_calls.results import result_from_json, result_to_json
from function_calls.spec import FunctionResult, FunctionSpec
from services.json_values import JsonObject
from services.refs import Effect

FROM_BEFORE = MappingProxyType({"from_before": True})
"""The metadata of a result that was given to an identical call before: what it says has been said."""
Signature = tuple[str, str]
"""The name of a function, and its arguments in one form."""


@dataclass(slots=True)
class CallsMade:
    """What was called in a turn, and what came of it."""

    count: int = 0
    """Calls that were to be run."""
    _times: dict[Signature, int] = field(default_factory=dict)
    _found: dict[Signature, FunctionResult] = field(default_factory=dict)
    """What reads gave."""
    _done: dict[Signature, FunctionResult] = field(default_factory=dict)
    """What effects gave."""

    def repeated(self, signature: Signature, most: int) -> FunctionResult | None:
        """Note a call. Where an identical one was made and this one is not to be run, what that one gave: an effect is
        run once, a read at most `most` times."""
        times = self._times[signature] = self._times.get(signature, 0) + 1
        before = self._done.get(signature)
        if before is None and times > most:
            before = self._found.get(signature)
        return None if before is None else replace(before, messages=(), metadata=FROM_BEFORE)

    def ended(self, spec: FunctionSpec, signature: Signature, result: FunctionResult) -> None:
        """Note what a call gave. What failed may be tried again, unless it is to happen once at most."""
        if result.question is not None or (result.error is not None and spec.effect is not Effect.ONCE):
            return
        kept = self._found if spec.effect is Effect.READ else self._done
        kept[signature] = result

    def to_json(self) -> JsonObject:
        """As plain data. What reads gave is left out: they may be run again."""
        return {
            "count": self.count,
            "times": [[*signature, times] for signature, times in self._times.items()],
            "done": [[*signature, result_to_json(result)] for signature, result in self._done.items()],
        }


def calls_from_json(data: JsonObject) -> CallsMade:
    """The calls that `to_json` wrote."""
    times = {(name, arguments): times for name, arguments, times in data["times"]}
    done = {(name, arguments): result_from_json(result) for name, arguments, result in data["done"]}
    return CallsMade(data["count"], times, _done=done)


def signature_of(spec: FunctionSpec, arguments: Mapping[str, Any]) -> Signature:
    """What identical calls have in common."""
    return spec.name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()
