"""Schemas in the form to which some servers hold a model: every object closed, every property required.

A property that may be left out becomes one that may be null, which the reading of arguments takes for left out.
"""

from __future__ import annotations

from services.json_values import JsonObject, JsonValue

_KEPT = frozenset({"type", "description", "enum", "const", "properties", "items", "anyOf", "required"})
_DROPPED = frozenset({"default", "example", "examples", "additionalProperties"})
"""What says nothing about validity, or is said anew."""
_LEAVES = frozenset({"string", "number", "integer", "boolean", "null"})


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """`schema` in the strict form; None where that would allow other values than it does."""
    try:
        return _strict(schema)
    except _CannotBeStrict:
        return None


class _CannotBeStrict(Exception):
    """A part of the schema has no strict form."""


def _strict(schema: JsonValue) -> JsonObject:
    if not isinstance(schema, dict) or not schema.keys() <= _KEPT | _DROPPED:
        raise _CannotBeStrict
    told = {key: value for key, value in schema.items() if key in _KEPT}
    if "anyOf" in told:
        told["anyOf"] = [_strict(one) for one in told["anyOf"]]
    elif told.get("type") == "object":
        _close(told, schema)
    elif told.get("type") == "array":
        told["items"] = _strict(told.get("items"))
    elif not _is_leaf(told.get("type")):
        raise _CannotBeStrict
    return told


def _close(told: JsonObject, schema: JsonObject) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") not in (None, False):
        raise _CannotBeStrict
    required = schema.get("required") or []
    told["properties"] = {
        name: _strict(one) if name in required else _or_null(_strict(one)) for name, one in properties.items()
    }
    told["required"] = list(properties)
    told["additionalProperties"] = False


def _or_null(schema: JsonObject) -> JsonObject:
    named = schema.get("type")
    if isinstance(named, str) and named in _LEAVES and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [named, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _is_leaf(named: JsonValue) -> bool:
    names = named if isinstance(named, list) else [named]
    return bool(names) and all(name in _LEAVES for name in names)
