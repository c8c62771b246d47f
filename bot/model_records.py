"""What is written about each question to a model: one line in logs/model_requests.jsonl."""

from __future__ import annotations

from datetime import UTC, datetime

from services.call_log import JsonLines
from services.clock import Clock
from services.json_values import JsonObject
from services.llm.model import ModelAnswer


class ModelRecords:
    """Records answers of models."""

    def __init__(self, log: JsonLines, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def record(self, turn_id: str, round_number: int, answer: ModelAnswer, duration_us: int) -> None:
        """Note one answer. What was asked and said stands in the store, not here."""
        self._log.append(_line(self._clock.now_ms(), turn_id, round_number, answer, duration_us))


def _line(at_ms: int, turn_id: str, round_number: int, answer: ModelAnswer, duration_us: int) -> JsonObject:
    return {
        "at": datetime.fromtimestamp(at_ms / 1000, UTC),
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
    }
