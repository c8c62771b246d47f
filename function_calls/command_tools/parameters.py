"""What a command tool takes, in any form it may be written in: as a JSON Schema and a reader of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel

from config.command_tools import CommandTool
from function_calls.arguments import ModelArguments
from function_calls.command_tools.callables import BadReference, PythonNames
from function_calls.definition import schema_arguments
from function_calls.schema import UnusableSchema
from function_calls.short_parameters import parameters_of
from function_calls.source_places import told
from function_calls.spec import ArgumentParser
from services.json_values import JsonObject

_TYPES: tuple[tuple[type, str], ...] = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


class BadParameters(ValueError):
    """Parameters that no schema can be made of; says why."""


def parameters_for(tool: CommandTool, names: PythonNames) -> tuple[JsonObject, ArgumentParser]:
    """The JSON Schema and what reads arguments by it. Raises BadParameters, BadReference and DefinitionError."""
    if tool.sample is not None:
        return schema_arguments(tool.name, _from_sample(tool.name, tool.sample))
    if tool.parameters is None or isinstance(tool.parameters, Mapping):
        return schema_arguments(tool.name, parameters_of(tool.parameters))
    model = names.find(tool.parameters)
    if not (inspect.isclass(model) and (issubclass(model, BaseModel) or is_dataclass(model))):
        raise BadReference(f"{tool.parameters} is neither a pydantic model nor a dataclass")
    try:
        arguments = ModelArguments(model)
    except UnusableSchema as error:
        raise BadParameters(str(error)) from None
    except (Exception, SystemExit) as error:
        raise BadReference(f"{tool.parameters} cannot be asked for its schema: {told(error)}") from error
    return arguments.schema, arguments


def _from_sample(name: str, written: Mapping[str, Any]) -> Any:
    """The parameters of a call as it is to be written, or of an OpenAI definition."""
    sample = written
    if written.get("type") == "function" and isinstance(written.get("function"), Mapping):
        sample = written["function"]
    if sample.get("name", name) != name:
        raise BadParameters(f"the schema is that of {sample['name']!r}, but the tool is called {name!r}")
    parameters = sample.get("parameters")
    if not isinstance(parameters, Mapping):
        raise BadParameters("the schema has no mapping `parameters`")
    if parameters.get("type") == "object" and isinstance(parameters.get("properties", {}), Mapping):
        return dict(parameters)
    return _schema_of(parameters)


def _schema_of(value: Any) -> JsonObject:
    """The schema of which `value` is a sample: every part is required, and shown to models as an example."""
    if isinstance(value, Mapping):
        properties = {str(name): _schema_of(one) for name, one in value.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(value, list):
        return {"type": "array", "items": _schema_of(value[0]) if value else {}, "examples": [value]}
    for kind, called in _TYPES:
        if isinstance(value, kind):
            return {"type": called, "examples": [value]}
    raise BadParameters("a sample value is empty: its type cannot be told")
