"""A schema as Rollcall keeps it: `$ref`s written out, types named as JSON Schema names them, nothing that only costs
tokens; as valid as before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from function_calls.schema_references import References, Target
from function_calls.schema_words import (
    DEFINITIONS,
    DRAFT_7,
    FLAGS,
    INTO_THE_VALUE,
    LIMITS,
    MANY,
    NAMED,
    ONE,
    VALIDITY,
    UnusableSchema,
)
from services.json_values import JsonObject

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
_DROPPED = DEFINITIONS | {"$anchor", "$comment", "$id", "$schema", "discriminator", "title"}
_IN_DEFINITIONS = "#/$defs/"
_MOST_NODES = 10_000
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def cleaned(
    schema: Mapping[str, Any], *, drops_null: bool = True, refs_alone: bool = False, draft: str = DRAFT_7
) -> JsonObject:
    """`schema` with its references written out, titles dropped and foreign type names mapped. What refers to itself
    stays a `$ref`, to the `$defs` at the end. `drops_null`: an optional is simply absent
    for us, so `X or null` becomes X, and a default of null no default. `refs_alone`: of what stands beside a `$ref`
    only remarks count, as until draft 7. `draft`: what it is read by; a `$ref` to the schema of that stays too."""
    try:
        references = References(schema, alone=refs_alone, draft=draft)
        result = _Cleaning(schema, references, drops_null=drops_null, refs_alone=refs_alone).whole()
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    if not isinstance(result, dict):
        raise UnusableSchema("a schema must be an object")
    return result


class _Place:
    """Where in a schema something stands."""

    __slots__ = ("base", "depth", "open")

    def __init__(self, base: str, depth: int, open_: Mapping[int, int]) -> None:
        self.base = base
        self.depth = depth
        """How many steps into the value."""
        self.open = open_
        """The schemas that are being written out around here, and at which depth each began."""

    def deeper(self) -> _Place:
        return _Place(self.base, self.depth + 1, self.open)

    def at(self, base: str) -> _Place:
        return self if base == self.base else _Place(base, self.depth, self.open)

    def within(self, target: Target) -> _Place:
        return _Place(target.base, self.depth, {**self.open, id(target.schema): self.depth})


class _Cleaning:
    """One schema being cleaned."""

    def __init__(self, root: Mapping[str, Any], references: References, *, drops_null: bool, refs_alone: bool) -> None:
        self._root = root
        self._drops_null = drops_null
        self._refs_alone = refs_alone
        self._references = references
        self._nodes_left = _MOST_NODES
        self._repeated: dict[int, tuple[str, Target]] = {}
        """What refers to itself, by identity: its name in `$defs`."""

    def whole(self) -> Any:
        root = Target(self._root, "", "root")
        result = self._clean(self._root, _Place("", 0, {}).within(root))
        definitions: JsonObject = {}
        while len(definitions) < len(self._repeated):
            name, target = list(self._repeated.values())[len(definitions)]
            definitions[name] = self._clean(target.schema, _Place("", 0, {}).within(target))
        while isinstance(result, dict) and "$ref" in result:
            # The parameters themselves say what they are: not all readers of a spec look behind a reference there.
            reference = result.pop("$ref")
            written: JsonObject | None = definitions.get(reference.removeprefix(_IN_DEFINITIONS))
            result = {"allOf": [{"$ref": reference}], **result} if written is None else {**written, **result}
        return {**result, "$defs": definitions} if definitions else result

    def _clean(self, node: Any, place: _Place) -> Any:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, Mapping):
            return node
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise UnusableSchema(f"it is too large: written out, it has more than {_MOST_NODES} parts")
        if "$ref" in node:
            return self._inlined(node, place)
        place = place.at(self._references.base_of(node, place.base))
        result: JsonObject = {}
        for key, value in node.items():
            if key == "type":
                _set_type(result, value, self._drops_null)
            elif key not in _DROPPED:
                # Pydantic names a tuple's parts as the later drafts do.
                named = "items" if key == "prefixItems" and self._drops_null else key
                result[named] = self._value(key, value, place.deeper() if key in INTO_THE_VALUE else place)
        return _without_null(result) if self._drops_null else result

    def _value(self, key: str, value: Any, place: _Place) -> Any:
        """What `key` says: schemas are cleaned, all else stays."""
        if key in NAMED and isinstance(value, Mapping):
            return {name: one if isinstance(one, list) else self._clean(one, place) for name, one in value.items()}
        if key in MANY and isinstance(value, list):
            return [self._clean(one, place) for one in value]
        if key in ONE and not (key in FLAGS and isinstance(value, bool)):
            return self._clean(value, place)
        return value

    def _inlined(self, node: Mapping[str, Any], place: _Place) -> Any:
        base = self._references.base_of(node, place.base)
        beside = {
            key: value
            for key, value in node.items()
            if key != "$ref" and not (self._refs_alone and key in VALIDITY | {"$id"})
        }
        said = self._clean(beside, place) if beside else {}
        elsewhere = self._references.to_its_draft(node["$ref"], base)
        if elsewhere:
            return _both({"$ref": elsewhere}, said)
        target = self._references.find(node["$ref"], base)
        began = place.open.get(id(target.schema))
        if began == place.depth:
            raise UnusableSchema(f"$ref {node['$ref']!r} refers to itself without end")
        if began is None and id(target.schema) not in self._repeated:
            written = self._clean(target.schema, place.within(target))
            if id(target.schema) not in self._repeated:
                return _both(written, said)
        return _both({"$ref": _IN_DEFINITIONS + self._name_of(target)}, said)

    def _name_of(self, target: Target) -> str:
        known = self._repeated.get(id(target.schema))
        if known is not None:
            return known[0]
        taken = {name for name, _ in self._repeated.values()}
        plain = _NOT_PLAIN.sub("_", target.name) or "root"
        name = next(one for one in (plain, *(f"{plain}_{n}" for n in range(2, 10_000))) if one not in taken)
        self._repeated[id(target.schema)] = (name, target)
        return name


def _both(target: JsonObject, beside: JsonObject) -> JsonObject:
    """What fits `target` and what stands beside the reference to it."""
    if beside.get("type") == target.get("type"):
        beside = {key: value for key, value in beside.items() if key != "type"}
    decides = beside.keys() & VALIDITY
    if not decides or ("$ref" not in target and decides <= LIMITS and not decides & target.keys()):
        return {**target, **beside}
    return {**beside, "allOf": [target, *beside.get("allOf", ())]}


def _set_type(result: JsonObject, value: Any, drops_null: bool) -> None:
    types = [_type_name(one) for one in value] if isinstance(value, list) else [_type_name(value)]
    if drops_null and len(types) > 1:
        types = [name for name in types if name != "null"]
    if "any" not in types:
        # Two names of others may stand for the same type.
        types = list(dict.fromkeys(types))
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
