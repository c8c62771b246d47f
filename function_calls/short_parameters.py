"""Parameters in the short form, a description of each by its name, as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.json_values import JsonObject

_OF_A_SCHEMA = frozenset({"$ref", "$schema", "allOf", "anyOf", "oneOf"})
"""A parameter of such a name would be described by a mapping, or not be there."""


def parameters_of(declared: Any) -> Any:
    """A JSON Schema from the short form (name → description of one parameter), nested; a schema stays as it is."""
    if declared is None or not isinstance(declared, Mapping):
        return declared
    if isinstance(declared.get("properties"), Mapping) or declared.get("type") == "object" or not declared:
        return declared
    if any(not isinstance(declared[key], Mapping) for key in _OF_A_SCHEMA & declared.keys()):
        return declared
    return _object_schema(declared)


def _object_schema(parameters: Mapping[Any, Any]) -> JsonObject:
    properties = {str(name): _property(value) for name, value in parameters.items()}
    required = [str(name) for name, value in parameters.items() if _is_required(value)]
    return {"type": "object", "properties": properties, "required": required}


def _is_required(declared: Any) -> bool:
    """Whether the parameter itself is required; a list there names what an object requires within it."""
    required = declared.get("required") if isinstance(declared, Mapping) else None
    return bool(required) and not isinstance(required, list | tuple)


def _property(declared: Any) -> JsonObject:
    if not isinstance(declared, Mapping):
        return {"type": str(declared)}
    schema: JsonObject = {key: value for key, value in declared.items() if key != "required"}
    nested = schema.get("properties")
    if isinstance(nested, Mapping):
        inner = _object_schema(nested)
        named = declared.get("required")
        if isinstance(named, list | tuple):
            inner["required"] = list(dict.fromkeys([*named, *inner["required"]]))
        schema = {**schema, **inner, "type": schema.get("type", "object")}
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _property(schema["items"])
    return schema
