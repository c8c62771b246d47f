"""JSONL records: function calls, model requests and decisions of the shadow model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.telemetry.metrics import Metrics
from function_calls.context import MessageContext
from function_calls.failures import FAILURE_ID
from function_calls.registry import FunctionRegistry
from function_calls.result import ended_as
from function_calls.rounds.shadow import Comparison, Decision
from function_calls.spec import FunctionResult
from function_calls.turn import Run
from services.call_log import JsonLines
from services.clock import Clock
from services.llm.model import ModelAnswer
from services.redaction import HIDDEN, Redactor
from services.refs import JsonObject


class CallRecords:
    """Logs function calls and counts them."""

    def __init__(self, log: JsonLines, metrics: Metrics, clock: Clock, redact: Redactor) -> None:
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._redact = redact

    def record(self, context: MessageContext, run: Run, result: FunctionResult, turn_id: str, duration_us: int) -> None:
        """Log one run and count it in the metrics. Sensitive arguments are hidden, secrets in the others redacted."""
        key, spec, raw, path, round_number, request_id = run
        metadata, outcome, function = result.metadata, ended_as(result), spec.name
        self._metrics.called(function, outcome, duration_us)
        arguments = spec.arguments.dump(raw)
        for name, value in arguments.items():
            if name in spec.execution.sensitive:
                arguments[name] = HIDDEN
            elif type(value) is not int:
                arguments[name] = self._redact.value(value)
        line: JsonObject = {
            "at": self._clock.now(),
            "turn": turn_id,
            "key": key,
            "chat": context.chat.key,
            "member": context.sender.ref.key,
            "function": function,
            "arguments": arguments,
            "path": path,
            "round": round_number,
            "duration_ms": duration_us / 1000,
            "outcome": outcome,
            "request_id": request_id,
        }
        if metadata:
            self._add_failure(line, metadata)
        self._log.append(line)

    def _add_failure(self, line: JsonObject, metadata: Mapping[str, object]) -> None:
        if FAILURE_ID in metadata:
            line["failure_id"] = metadata[FAILURE_ID]
        if "exception" in metadata:
            line["exception"] = self._redact(str(metadata["exception"]))
            line["traceback"] = self._redact(str(metadata.get("traceback", "")))


class ModelRecords:
    """Logs model requests."""

    def __init__(self, log: JsonLines, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def record(
        self, turn_id: str, round_number: int, answer: ModelAnswer, duration_us: int, offered: Sequence[str]
    ) -> None:
        """Log one answer and the names of the offered functions. Prompts and texts are in the store only."""
        line: JsonObject = {
            "at": self._clock.now(),
            "turn": turn_id,
            "round": round_number,
            "by": answer.by,
            "model": answer.model,
            "request_id": answer.request_id,
            "duration_ms": duration_us / 1000,
            "finish": answer.finish,
            "calls": [call.name for call in answer.calls],
            "prompt_tokens": answer.usage.prompt,
            "completion_tokens": answer.usage.completion,
            "cached_tokens": answer.usage.cached,
            "offered": offered,
        }
        self._log.append(line)


FILE = "shadow_decisions.jsonl"


class ShadowRecords:
    """Logs comparisons with the shadow model. Values are compared unredacted and logged without secrets."""

    def __init__(self, log: JsonLines, registry: FunctionRegistry, clock: Clock, redact: Redactor) -> None:
        self._log = log
        self._registry = registry
        self._clock = clock
        self._redact = redact

    def record(self, comparison: Comparison) -> None:
        """Log one comparison with the current time."""
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
            "calls": [
                {"name": name, "arguments": self._arguments(name, arguments)} for name, arguments in decision.calls
            ],
            "error": None if decision.error is None else decision.error.value,
            "duration_ms": decision.duration_us / 1000,
        }

    def _arguments(self, function: str, arguments: dict[str, Any] | None) -> JsonObject | None:
        if arguments is None:
            return None
        sensitive = {
            name for spec in self._registry.specs if spec.name == function for name in spec.execution.sensitive
        }
        return {name: HIDDEN if name in sensitive else self._redact.value(value) for name, value in arguments.items()}
