"""A language model with scripted answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from services.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall
from services.refs import ErrorCode

Scripted = ModelAnswer | ModelError | Callable[[ModelRequest], ModelAnswer]


class ScriptedModel:
    """Returns the answers of its script in order and records the requests. Errors in the script are raised; callables
    are called for the answer."""

    name = "scripted"

    def __init__(self, *script: Scripted) -> None:
        self._script = list(script)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The next answer. Raises AssertionError at the end of the script."""
        # Copied, because the list of messages grows in place.
        request = replace(request, messages=list(request.messages))
        self.requests.append(request)
        if not self._script:
            said = [f"{message.role}: {message.content}" for message in request.messages[-3:]]
            raise AssertionError(f"request {len(self.requests)} is one too many for the script; it ends with {said}")
        answer = self._script.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return answer if isinstance(answer, ModelAnswer) else answer(request)

    def add(self, *script: Scripted) -> None:
        """Append these answers to the script."""
        self._script += script

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None:
        return None

    @property
    def answers_left(self) -> int:
        """Number of unused answers of the script."""
        return len(self._script)


def says(text: str, **fields: Any) -> ModelAnswer:
    """An answer with text."""
    return ModelAnswer(text=text, finish="stop", **fields)


def calls(*wanted: ToolCall, text: str = "", **fields: Any) -> ModelAnswer:
    """An answer with calls."""
    return ModelAnswer(text=text, calls=wanted, finish="tool_calls", **fields)


def call(name: str, /, call_id: str = "c1", *, uncertain: bool = False, **arguments: Any) -> ToolCall:
    """A valid call."""
    return ToolCall(call_id, name, arguments, raw=orjson.dumps(arguments).decode(), uncertain=uncertain)


def unreadable_call(name: str, fault: ErrorCode, call_id: str = "c1") -> ToolCall:
    """A call with invalid arguments."""
    return ToolCall(call_id, name, None, raw='{"city": "Os', fault=fault)
