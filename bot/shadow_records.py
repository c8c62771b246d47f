"""What is written about each decision of the shadow: one line in logs/shadow_decisions.jsonl."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from function_calls.registry import FunctionRegistry
from function_calls.shadow import Comparison, Decision
from services.call_log import JsonLines
from services.clock import Clock
from services.json_values import JsonObject
from services.redaction import HIDDEN, Redactor

FILE = "shadow_decisions.jsonl"


class ShadowRecords:
    """Records comparisons; they are made on the values as they were, and written without secrets."""

    def __init__(self, log: JsonLines, registry: FunctionRegistry, clock: Clock, redact: Redactor) -> None:
        self._log = log
        self._registry = registry
        self._clock = clock
        self._redact = redact

    def record(self, comparison: Comparison) -> None:
        """Note one comparison."""
        self._log.append(self._line(comparison, self._clock.now_ms()))

    def _line(self, comparison: Comparison, at_ms: int) -> JsonObject:
        return {
            "at": datetime.fromtimestamp(at_ms / 1000, UTC),
            "turn": comparison.turn_id,
            "chat": comparison.chat.key,
            "agrees": comparison.agrees,
            "differing_arguments": comparison.differing_arguments,
            "acted": self._decision(comparison.acted),
            "shadow": self._decision(comparison.shadow),
        }

    def _decision(self, decision: Decision) -> JsonObject:
        return {
            "calls": [{"name": name, "arguments": self._arguments(name, given)} for name, given in decision.calls],
            "error": None if decision.error is None else decision.error.value,
            "duration_ms": decision.duration_us / 1000,
        }

    def _arguments(self, function: str, given: dict[str, Any] | None) -> JsonObject | None:
        if given is None:
            return None
        sensitive = {name for spec in self._registry.specs if spec.name == function for name in spec.sensitive}
        return {name: HIDDEN if name in sensitive else self._redact.value(value) for name, value in given.items()}
