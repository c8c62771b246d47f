"""JSON Schema as Rollcall uses it: draft 7, `$ref`s inlined, nothing that only costs tokens."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import unquote

from pydantic import PydanticUserError, TypeAdapter

from services.json_values import JsonObject

EMPTY: JsonObject = {"type": "object", "properties": {}, "required": []}

# What other schemas call the types of JSON.
_FOREIGN_TYPES = {
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "str": "string",
    "char": "string",
    "tuple": "array",
    "list": "array",
    "set": "array",
}
_KNOWN_TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
_DROPPED = {"title", "discriminator", "$defs", "definitions", "$schema"}
_MOST_NODES = 10_000
_VALUES = frozenset({"enum", "const", "default", "examples", "example", "required"})
_MAPPINGS_OF_SCHEMAS = ("properties", "patternProperties", "dependencies")


class UnusableSchema(ValueError):
    """A schema that cannot describe the arguments of a function; says where and why."""


def schema_of(arguments: Any) -> JsonObject:
    """The schema of a pydantic model or a dataclass, as a model is told it.
    Raises UnusableSchema for a type that refers to itself, or that JSON cannot hold."""
    try:
        generated = TypeAdapter(arguments).json_schema()
    except PydanticUserError as error:
        raise UnusableSchema(f"{arguments!r} cannot be told a model: {error.message}") from None
    schema = cleaned(generated)
    if schema.get("type") != "object":
        raise UnusableSchema(f"{arguments!r} does not describe an object, so it cannot be the arguments of a function")
    # The docstring of the arguments explains them to authors.
    schema.pop("description", None)
    return _completed(schema)


def closed(schema: JsonObject) -> JsonObject:
    """The same schema, refusing unknown keys wherever an object names its own."""
    copy: JsonObject = deepcopy(schema)
    _close(copy)
    return copy


def imported(schema: object) -> JsonObject:
    """A schema from elsewhere as ours: type names of other languages mapped, `$ref`s within it inlined, and values that
    are listed for an array meant for its items.
    Raises UnusableSchema when it is no object schema, or refers outside itself."""
    if not isinstance(schema, Mapping):
        raise UnusableSchema(f"parameters must be a JSON Schema object, not {type(schema).__name__}")
    ours = cleaned(schema, drops_null=False)
    _mend(ours)
    if ours.get("type", "object") != "object":
        raise UnusableSchema(f"parameters must have type object, not {ours.get('type')!r}")
    return _completed({"type": "object", **ours})


def cleaned(schema: Mapping[str, Any], *, drops_null: bool = True) -> JsonObject:
    """`schema` with local `$ref`s inlined, titles dropped and foreign type names mapped. `drops_null`: an optional is
    simply absent for us, so `X or null` becomes X, and a default of null no default."""
    try:
        result = _Cleaning(schema, drops_null).clean(schema, ())
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    if not isinstance(result, dict):
        raise UnusableSchema("a schema must be an object")
    return result


class _Cleaning:
    """One schema being cleaned."""

    def __init__(self, root: Mapping[str, Any], drops_null: bool) -> None:
        self._root = root
        self._drops_null = drops_null
        self._nodes_left = _MOST_NODES

    def clean(self, node: Any, open_refs: tuple[str, ...]) -> Any:
        """`node`, which stands inside what the references `open_refs` point to."""
        if isinstance(node, list):
            return [self.clean(item, open_refs) for item in node]
        if not isinstance(node, Mapping):
            return node
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise UnusableSchema(f"it is too large: written out, it has more than {_MOST_NODES} parts")
        if "$ref" in node:
            return self._inlined(node, open_refs)
        result: JsonObject = {}
        for key, value in node.items():
            if key in _DROPPED:
                continue
            if key in _MAPPINGS_OF_SCHEMAS and isinstance(value, Mapping):
                result[key] = {name: self.clean(sub, open_refs) for name, sub in value.items()}
            elif key in _VALUES or key.startswith("x-"):
                result[key] = value
            elif key == "type":
                _set_type(result, value, self._drops_null)
            else:
                result["items" if key == "prefixItems" else key] = self.clean(value, open_refs)
        return _without_null(result) if self._drops_null else result

    def _inlined(self, node: Mapping[str, Any], open_refs: tuple[str, ...]) -> Any:
        reference = node["$ref"]
        if reference in open_refs:
            raise UnusableSchema(f"{reference} refers to itself; a model cannot be told such a type")
        target = self.clean(self._pointed_to(reference), (*open_refs, reference))
        beside = self.clean({key: value for key, value in node.items() if key != "$ref"}, open_refs)
        return {**target, **beside} if isinstance(target, dict) else target

    def _pointed_to(self, reference: Any) -> Any:
        """What a JSON pointer such as `#/$defs/Name` or `#/properties/a/items` finds in the whole schema."""
        node: Any = self._root
        try:
            start, *steps = reference.split("/")
            for step in steps:
                name = unquote(step).replace("~1", "/").replace("~0", "~")
                node = node[int(name)] if isinstance(node, list) else node[name]
        except (AttributeError, LookupError, TypeError, ValueError):
            start = None
        if start != "#" or not isinstance(node, Mapping | bool):
            raise UnusableSchema(f"$ref {reference!r} does not point into this schema")
        return node


def _set_type(result: JsonObject, value: Any, drops_null: bool) -> None:
    types = [_type_name(one) for one in value] if isinstance(value, list) else [_type_name(value)]
    if drops_null and len(types) > 1:
        types = [name for name in types if name != "null"]
    if "any" not in types:
        result["type"] = types[0] if len(types) == 1 else types


def _type_name(value: Any) -> str:
    if not isinstance(value, str):
        raise UnusableSchema(f"type must be a name, not {value!r}")
    name = _FOREIGN_TYPES.get(value.lower(), value.lower())
    if name not in _KNOWN_TYPES and name != "any":
        raise UnusableSchema(f"unknown type {value!r}; JSON Schema knows {', '.join(sorted(_KNOWN_TYPES))}")
    return name


def _without_null(schema: JsonObject) -> JsonObject:
    for union in ("anyOf", "oneOf"):
        alternatives = schema.get(union)
        if not isinstance(alternatives, list):
            continue
        rest = [one for one in alternatives if not (isinstance(one, dict) and one.get("type") == "null")]
        if len(rest) == len(alternatives):
            continue
        del schema[union]
        schema = {**rest[0], **schema} if len(rest) == 1 else {union: rest, **schema}
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    return schema


def _completed(schema: JsonObject) -> JsonObject:
    """Key order and the keys that every exporter relies on."""
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    if not isinstance(properties, Mapping):
        raise UnusableSchema(f"properties must be an object, not {properties!r}")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise UnusableSchema(f"required must be a list of names, not {required!r}")
    head = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {**head, **{key: value for key, value in schema.items() if key not in head}}


def _mend(node: Any) -> None:
    """Put right, in place, what authors of foreign schemas often get wrong, where it is plain what is meant."""
    if isinstance(node, list):
        for one in node:
            _mend(one)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in _MAPPINGS_OF_SCHEMAS and isinstance(value, dict):
            for sub in value.values():
                _mend(sub)
        elif key not in _VALUES and not key.startswith("x-"):
            _mend(value)
    if "examples" in node and not isinstance(node["examples"], list):
        node["examples"] = [node["examples"]]
    allowed, items = node.get("enum"), node.get("items")
    if node.get("type") == "array" and isinstance(allowed, list) and not any(isinstance(one, list) for one in allowed):
        del node["enum"]
        node["items"] = {**(items if isinstance(items, dict) else {}), "enum": allowed}


def _close(schema: Any) -> None:
    if isinstance(schema, list):
        for item in schema:
            _close(item)
    elif isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
            for sub in schema["properties"].values():
                _close(sub)
        for key in ("items", "anyOf", "oneOf", "allOf", "additionalProperties"):
            _close(schema.get(key))
