"""A language model that says what a test has written for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from services.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall
from services.refs import ErrorCode

Scripted = ModelAnswer | ModelError | Callable[[ModelRequest], ModelAnswer]


class ScriptedModel:
    """Gives the answers of its script in order and keeps the requests. An error in the script is raised; a callable is
    asked for the answer."""

    name = "scripted"

    def __init__(self, *script: Scripted) -> None:
        self._script = list(script)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """The next answer. Raises AssertionError when the script has run out."""
        # As it was sent: the conversation grows in place.
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
        """Go on with these answers where the script would end."""
        self._script += script

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None:
        return None

    @property
    def answers_left(self) -> int:
        """How many answers of the script were not asked for."""
        return len(self._script)


def says(text: str, **fields: Any) -> ModelAnswer:
    """An answer in words."""
    return ModelAnswer(text=text, finish="stop", **fields)


def calls(*wanted: ToolCall, text: str = "", **fields: Any) -> ModelAnswer:
    """An answer that asks for runs."""
    return ModelAnswer(text=text, calls=wanted, finish="tool_calls", **fields)


def call(name: str, /, call_id: str = "c1", *, uncertain: bool = False, **arguments: Any) -> ToolCall:
    """One call that could be read."""
    return ToolCall(call_id, name, arguments, raw=orjson.dumps(arguments).decode(), uncertain=uncertain)


def unreadable_call(name: str, fault: ErrorCode, call_id: str = "c1") -> ToolCall:
    """One call whose arguments could not be read."""
    return ToolCall(call_id, name, None, raw='{"city": "Os', fault=fault)
