"""What is written about each run of a function: one line in logs/function_calls.jsonl, and the counters of /metrics."""

from __future__ import annotations

from collections.abc import Mapping

from bot.metrics import Metrics
from function_calls.context import MessageContext
from function_calls.failed_runs import FAILURE_ID
from function_calls.results import ended_as
from function_calls.spec import FunctionResult
from function_calls.turn_log import Run
from services.call_log import JsonLines
from services.clock import Clock
from services.json_values import JsonObject
from services.redaction import HIDDEN, Redactor


class CallRecords:
    """Records runs."""

    def __init__(self, log: JsonLines, metrics: Metrics, clock: Clock, redact: Redactor) -> None:
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._redact = redact

    def record(self, context: MessageContext, run: Run, result: FunctionResult, turn_id: str, duration_us: int) -> None:
        """Note one run."""
        key, spec, given, path, round_number, request_id = run
        metadata, outcome, function = result.metadata, ended_as(result), spec.name
        self._metrics.called(function, outcome, duration_us)
        arguments = spec.arguments.dump(given)
        for name, value in arguments.items():
            if name in spec.sensitive:
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
            self._tell_of_failure(line, metadata)
        self._log.append(line)

    def _tell_of_failure(self, line: JsonObject, metadata: Mapping[str, object]) -> None:
        if FAILURE_ID in metadata:
            line["failure_id"] = metadata[FAILURE_ID]
        if "exception" in metadata:
            line["exception"] = self._redact(str(metadata["exception"]))
            line["traceback"] = self._redact(str(metadata.get("traceback", "")))
