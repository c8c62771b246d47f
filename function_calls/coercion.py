"""The one coercion of raw arguments, compiled from a schema once. What it does is a closed list: text where a number,
yes/no, a list or an object is wanted is read as that, and null for an optional means absent. It never guesses, and what
fits already stays as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from function_calls.spec import ArgumentFault
from services.json_values import JsonObject
from services.llm.tool_arguments import loads_unique

_DIGITS = 19
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})

Coercion = Callable[[Any], Any]


class DoesNotFit(Exception):
    """A value that no lossless reading makes fit."""


class ObjectReader:
    """Coerces the properties of one object."""

    def __init__(self, schema: JsonObject, definitions: Definitions | None = None) -> None:
        definitions = definitions or Definitions(schema.get("$defs") or {})
        self._properties: dict[str, Any] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        self._optional = frozenset(self._properties) - required
        self._nullable = frozenset(name for name, sub in self._properties.items() if _may_be_null(sub))
        self._coercions = {
            name: coercion
            for name, sub in self._properties.items()
            if (coercion := _coercion(sub, definitions)) is not None
        }
        self._is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        parts = schema.get("allOf") or ()
        self._parts = [ObjectReader(part, definitions) for part in parts if isinstance(part, dict)]

    def __call__(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The coerced copy. Raises ArgumentFault for what cannot fit."""
        values = dict(raw)
        problems: dict[str, JsonObject | None] | None = None
        coercions = self._coercions
        for name, value in raw.items():
            if value is None and (name in self._optional or name in self._nullable):
                if name not in self._nullable:
                    del values[name]
                continue
            coercion = coercions.get(name)
            if coercion is not None:
                try:
                    values[name] = coercion(value)
                except DoesNotFit:
                    problems = {**(problems or {}), name: self._properties[name]}
            elif self._is_closed and name not in self._properties:
                problems = {**(problems or {}), name: None}
        if problems:
            required = [name for name in self._properties if name not in self._optional and name not in values]
            raise ArgumentFault(problems, required)
        for part in self._parts:
            values = part(values)
        return values


class Definitions:
    """The schemas that refer to themselves, each compiled when the first value gets there."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._compiled: dict[str, Coercion | None] = {}

    def coercion(self, reference: str) -> Coercion | None:
        """What to do with a value for what `reference` points to."""
        name = reference.removeprefix("#/$defs/")
        if name not in self._schemas:
            return None

        def coerce(value: Any) -> Any:
            if name not in self._compiled:
                self._compiled[name] = _coercion(self._schemas[name], self)
            compiled = self._compiled[name]
            return value if compiled is None else compiled(value)

        return coerce


def _may_be_null(schema: Any) -> bool:
    """Whether null may be valid; where only the validator can tell, it may."""
    if not isinstance(schema, dict):
        return schema is True
    kind = schema.get("type")
    if kind is not None and "null" not in (kind if isinstance(kind, list) else [kind]):
        return False
    if ("const" in schema and schema["const"] is not None) or ("enum" in schema and None not in schema["enum"]):
        return False
    unions = [schema[union] for union in ("anyOf", "oneOf") if union in schema]
    return all(any(_may_be_null(one) for one in union) for union in unions) and all(
        _may_be_null(one) for one in schema.get("allOf") or ()
    )


def _coercion(schema: Any, definitions: Definitions) -> Coercion | None:
    """What to do with a value for `schema`; None when text and the rest pass as they are."""
    if not isinstance(schema, dict):
        return None
    steps = [_typed(schema, definitions)]
    if isinstance(schema.get("$ref"), str):
        steps.append(definitions.coercion(schema["$ref"]))
    if schema.get("type") != "object":
        steps += [_coercion(part, definitions) for part in schema.get("allOf") or ()]
    for union in ("anyOf", "oneOf"):
        given = [one for one in schema.get(union) or () if not (isinstance(one, dict) and one.get("type") == "null")]
        if len(given) == 1:
            steps.append(_coercion(given[0], definitions))
    return _in_a_row([one for one in steps if one is not None], schema)


def _in_a_row(steps: list[Coercion], schema: JsonObject) -> Coercion | None:
    if not steps:
        return None
    if len(steps) == 1 and not _may_be_null(schema):
        return steps[0]
    admits_null = _may_be_null(schema)

    def coerce(value: Any) -> Any:
        if value is None and admits_null:
            return None
        for step in steps:
            value = step(value)
        return value

    return coerce


def _typed(schema: JsonObject, definitions: Definitions) -> Coercion | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "array":
        return _array(schema, definitions)
    if kind == "object":
        return _object(schema, definitions)
    return _SCALARS.get(kind) if isinstance(kind, str) else None


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, str):
        if len(value) < _DIGITS and value.isdecimal() and value.isascii():
            return int(value)
        text = value.strip()
        if not _INTEGER.fullmatch(text):
            raise DoesNotFit
        return int(text)
    if isinstance(value, bool):
        raise DoesNotFit
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            raise DoesNotFit
        number = float(text)
        if not math.isfinite(number):
            raise DoesNotFit
        return int(text) if _INTEGER.fullmatch(text) else number
    if isinstance(value, bool):
        raise DoesNotFit
    return value


def _boolean(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
    raise DoesNotFit


_SCALARS: dict[str, Coercion] = {"integer": _integer, "number": _number, "boolean": _boolean}


def _array(schema: JsonObject, definitions: Definitions) -> Coercion:
    # Beside `prefixItems`, `items` is only about what follows them.
    items = None if "prefixItems" in schema else _coercion(schema.get("items"), definitions)

    def coerce(value: Any) -> Any:
        if isinstance(value, str):
            value = _decoded(value, list)
        if items is None or not isinstance(value, list):
            return value
        return [items(item) for item in value]

    return coerce


def _object(schema: JsonObject, definitions: Definitions) -> Coercion:
    read = ObjectReader(schema, definitions)

    def coerce(value: Any) -> Any:
        if isinstance(value, str):
            value = _decoded(value, dict)
        if not isinstance(value, Mapping):
            return value
        try:
            return read(value)
        except ArgumentFault:
            raise DoesNotFit from None

    return coerce


def _decoded(text: str, wanted: type) -> Any:
    """JSON inside a string, where the schema wants a list or an object."""
    try:
        orjson.loads(text)  # knows more of what is no JSON than the exact decoder
        value = loads_unique(text)
    except (ValueError, RecursionError):
        raise DoesNotFit from None
    if not isinstance(value, wanted):
        raise DoesNotFit
    return value
