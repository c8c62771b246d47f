"""Functions that record their runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.declaration import parameters_of
from function_calls.result import normalised
from function_calls.schema.definition import build_spec, schema_arguments
from function_calls.spec import FunctionResult, FunctionSpec

Behaviour = Callable[[MessageContext, dict[str, Any], Call], Awaitable[Any]]
CITY = {"city": {"type": "string", "description": "The place", "required": True}}


class Recorder:
    """A function that records its runs and returns `gives`, or the result of `does`. Without `touches`, its effect
    stays in the chat, so that a model's call of it needs no confirmation."""

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        gives: Any = "done",
        does: Behaviour | None = None,
        **options: Any,
    ) -> None:
        self.runs: list[dict[str, Any]] = []
        self.calls: list[Call] = []
        self.contexts: list[MessageContext] = []
        self._gives = gives
        self._does = does
        if options.get("effect", "read") != "read":
            options.setdefault("touches", "stays_here")
        schema, arguments = schema_arguments(name, parameters_of(parameters))
        self.spec: FunctionSpec = build_spec(
            name=name,
            description=options.pop("description", f"Does {name}."),
            handler=self._handle,
            arguments=arguments,
            parameters=schema,
            options=options,
            source=f"tests/{name}.py:1",
        )

    async def _handle(self, context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
        self.contexts.append(context)
        self.runs.append(dict(arguments))
        self.calls.append(call)
        if self._does is not None:
            return normalised(await self._does(context, arguments, call), context.chat)
        if isinstance(self._gives, Exception):
            raise self._gives
        return normalised(self._gives, context.chat)
