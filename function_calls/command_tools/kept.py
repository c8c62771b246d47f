"""What a run leaves behind when it asks a person, as plain data, so that the answer goes on from there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from function_calls.command_tools.callables import BadReference, PythonNames, file_of, name_of
from function_calls.command_tools.definition import Definition, Step
from function_calls.command_tools.outcomes import Said
from function_calls.command_tools.request import Output
from function_calls.command_tools.words import Template
from function_calls.module_loading import is_of_an_edition
from services.json_values import JsonObject, JsonValue

_MOST_BYTES = 400_000


class CannotKeep(Exception):
    """Something that no store can hold; says what, for operators."""


def kept(value: Any) -> Any:
    """`value` as plain JSON. Raises CannotKeep."""
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError as error:
        raise CannotKeep(f"{type(value).__name__} cannot wait for an answer: {error}") from None


def within_bounds(state: JsonObject) -> JsonObject:
    """`state`, which a question can take along. Raises CannotKeep."""
    if len(orjson.dumps(state)) > _MOST_BYTES:
        raise CannotKeep("the output of the steps so far is too long to wait for an answer: lower opts.output_chars")
    return state


def outputs_to_json(outputs: list[JsonValue | Output]) -> list[JsonObject]:
    """Raises CannotKeep."""
    return [{"command": one.to_json()} if isinstance(one, Output) else {"value": kept(one)} for one in outputs]


def outputs_from_json(data: list[JsonObject]) -> list[JsonValue | Output]:
    """What `outputs_to_json` wrote."""
    return [Output(**one["command"]) if "command" in one else one["value"] for one in data]


def said_from_json(data: list[list[str | None]]) -> list[Said]:
    """What was said of steps, from the lists that JSON makes of it."""
    return [Said(model, chat) for model, chat in data]


def steps_to_json(steps: list[Step], tool: Definition) -> list[JsonValue]:
    """A number for each step that the tool has anyway, and what else has been added. Raises CannotKeep."""
    return [tool.steps.index(step) if step in tool.steps else _added(step) for step in steps]


def steps_from_json(data: list[Any], tool: Definition) -> list[Step]:
    """What `steps_to_json` wrote. Raises BadReference."""
    return [tool.steps[one] if isinstance(one, int) else _step_again(one, tool.names) for one in data]


def added_step(given: object, names: PythonNames) -> Step:
    """The step that `setup` means by `given`: a list of words, taken as they stand, or a callable. Raises
    BadReference."""
    if isinstance(given, Step):
        return given
    if isinstance(given, list | tuple) and given and all(isinstance(word, str) for word in given):
        return Step(words=tuple(Template((word,)) for word in given), added={"argv": list(given)})
    if isinstance(given, str) or callable(given):
        function = names.function(given, 2)
        return Step(function=function, name=name_of(function), added={"python": _reference_to(given, function)})
    raise BadReference(f"`setup` gives {type(given).__name__} as a step; a step is a list of texts, or a callable")


def _added(step: Step) -> JsonObject:
    if step.added is None or step.added.get("python") == "":
        raise CannotKeep(f"the step {step.name} is a function without a name of its own, so it cannot wait for a yes")
    return step.added


def _step_again(data: Mapping[str, Any], names: PythonNames) -> Step:
    return added_step(data.get("argv") or data["python"], names)


def _reference_to(given: object, function: Callable[..., Any]) -> str:
    """By which the function is found after a restart; empty where it cannot be."""
    if isinstance(given, str):
        return given
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "<")
    if "<" in name:
        return ""
    file = file_of(function)
    if file:
        return f"{file}:{name}"
    return f"{module}:{name}" if module in sys.modules and not is_of_an_edition(module) else ""
