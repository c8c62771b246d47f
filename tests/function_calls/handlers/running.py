"""Runs the functions of a handler module as the daemon loads them: services bound by type, arguments from JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from function_calls.context import Sender
from function_calls.loading.python_functions import specs_of
from function_calls.spec import FunctionResult, FunctionSpec, ToolError
from services.refs import ChatRef
from tests.fakes.builders import FAMILY, a_call, a_message

_SLOT = re.compile(r"\{(\w+)\}")


class Functions:
    """The functions of `module` with `services`, and `ports` by their protocols."""

    def __init__(self, module: ModuleType, *services: object, ports: Mapping[type, object] = MappingProxyType({})):
        by_type = {type(service): service for service in services} | dict(ports)
        self.specs: Mapping[str, FunctionSpec] = {spec.name: spec for spec in specs_of(module, by_type)}
        self._count = 0

    async def run(
        self,
        name: str,
        *,
        by: str | Sender = "Ann",
        chat: ChatRef = FAMILY,
        language: str = "en",
        key: str = "",
        timezone: str = "Europe/Oslo",
        **raw: Any,
    ) -> FunctionResult:
        """Result of a call. Each call has a new key unless one is given."""
        self._count += 1
        spec = self.specs[name]
        context = a_message("what was written is no matter of handlers", by, chat=chat)
        call = a_call(language, key=key or f"call-{self._count}", timezone=timezone)
        try:
            return await spec.handler(context, spec.arguments.parse(raw), call)
        except ToolError as error:
            return FunctionResult.fail(error.code, error.text)

    def unknown_slots(self) -> list[tuple[str, str]]:
        """Function and slot of each example that uses an unknown parameter."""
        return [
            (spec.name, slot)
            for spec in self.specs.values()
            for example in spec.prompt.examples
            for slot in _SLOT.findall(example)
            if slot not in spec.parameters["properties"]
        ]


def text_of(result: FunctionResult) -> str:
    """All texts for the chat."""
    return "\n".join(message.text for message in result.for_chat())
