"""Raw arguments become typed ones: one coercion pass that loses nothing, then validation. The coercion is compiled from
the schema once; what it does is a closed list: text where a number, yes/no, list or object is wanted is read as that,
and null for an optional means absent. It never guesses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any

import orjson
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from function_calls.schema import UnusableSchema, closed, schema_of
from function_calls.spec import ArgumentFault
from services.json_values import JsonObject
from services.llm.tool_arguments import loads_unique

_DIGITS = 19
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})

Coercion = Callable[[Any], Any]


class _DoesNotFit(Exception):
    """A value that no lossless reading makes fit."""


class ModelArguments:
    """Arguments described by a pydantic model or a dataclass."""

    def __init__(self, model: Any) -> None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(model)
        except PydanticUserError as error:
            raise UnusableSchema(f"a field has a type that no argument can have: {_first_line(error)}") from None
        self._model: type = model if isinstance(model, type) else object
        self.schema = schema_of(model)
        # Unknown arguments are refused, though models need not be told so.
        self._read = _ObjectReader(closed(self.schema))
        self._validate = adapter.validator.validate_python
        self._dump = adapter.serializer.to_python

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The model's instance. Raises ArgumentFault."""
        values = self._read(raw)
        try:
            return self._validate(values)
        except ValidationError as error:
            raise self._fault(error) from None

    def dump(self, arguments: Any) -> JsonObject:
        """The instance as plain JSON that `parse` reads again, without what is only a default of null. Arguments that
        were never parsed stay as they are."""
        if type(arguments) is not self._model and isinstance(arguments, Mapping):
            return dict(arguments)
        dumped: JsonObject = self._dump(arguments, mode="json", by_alias=True, exclude_none=True)
        return dumped

    def _fault(self, error: ValidationError) -> ArgumentFault:
        problems: dict[str, JsonObject | None] = {}
        missing: list[str] = []
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            name = str(item["loc"][0]) if item["loc"] else ""
            if item["type"] in ("missing", "missing_argument") and len(item["loc"]) == 1:
                missing.append(name)
            else:
                problems[name] = self.schema["properties"].get(name)
        return ArgumentFault(problems, missing)


def _is_moment(text: str) -> bool:
    """Whether `text` is a date with a time. The zone may be missing: people and models leave it out."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > len("2026-01-05")


def require_json(raw: Mapping[str, Any], schema: JsonObject) -> None:
    """Return when JSON, and so every store and log, can hold `raw`. Raises ArgumentFault for what it cannot."""
    unfit = [name for name, value in raw.items() if not _is_json(value)]
    if unfit:
        raise ArgumentFault({name: schema["properties"].get(name) for name in unfit})


def _is_json(value: Any) -> bool:
    try:
        orjson.dumps(value, default=str)
    except TypeError:
        return False
    return True


class SchemaArguments:
    """Arguments described by a JSON Schema from elsewhere. Handlers get a plain dict."""

    def __init__(self, schema: JsonObject, *, fills_defaults: bool = True) -> None:
        """`fills_defaults`: absent arguments get the default that the schema names. Raises UnusableSchema."""
        # Imported here: only daemons with foreign functions need it.
        import jsonschema_rs

        self.schema = schema
        self._read = _ObjectReader(schema)
        self._defaults = {
            name: sub["default"]
            for name, sub in schema["properties"].items()
            if fills_defaults and isinstance(sub, dict) and "default" in sub
        }
        try:
            # The plain regex engine has no look-around and runs in linear time.
            self._validator = jsonschema_rs.validator_for(
                _with_draft(schema),
                validate_formats=True,
                formats={"date-time": _is_moment},
                pattern_options=jsonschema_rs.RegexOptions(),
                retriever=_refuse_to_fetch,
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise UnusableSchema(f"the parameters are no usable JSON Schema: {error}") from None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The arguments with defaults filled in. Raises ArgumentFault."""
        values = {**deepcopy(self._defaults), **self._read(raw)}
        try:
            if self._validator.is_valid(values):
                return values
        except ValueError:  # an object that stands for no JSON value
            raise ArgumentFault({"": None}) from None
        problems: dict[str, JsonObject | None] = {}
        missing: list[str] = []
        for error in self._validator.iter_errors(values):
            if error.instance_path:
                name = str(error.instance_path[0])
                problems[name] = self.schema["properties"].get(name)
            else:
                missing += [name for name in self.schema["required"] if name not in values and name not in missing]
        if not problems and not missing:
            problems[""] = None
        raise ArgumentFault(problems, missing)

    def dump(self, arguments: Any) -> JsonObject:
        """The same dict."""
        return dict(arguments)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"$ref {uri!r} points outside the schema; nothing is fetched")


def _with_draft(schema: JsonObject) -> JsonObject:
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


class _ObjectReader:
    """Coerces the properties of one object."""

    def __init__(self, schema: JsonObject) -> None:
        self._properties: dict[str, Any] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        self._optional = frozenset(self._properties) - required
        self._nullable = frozenset(name for name, sub in self._properties.items() if _admits_null(sub))
        self._coercions = {
            name: coercion for name, sub in self._properties.items() if (coercion := _coercion(sub)) is not None
        }
        self._is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema

    def __call__(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(raw)
        problems: dict[str, JsonObject | None] | None = None
        for name, value in raw.items():
            if value is None and (name in self._optional or name in self._nullable):
                if name not in self._nullable:
                    del values[name]
                continue
            coercion = self._coercions.get(name)
            if coercion is not None:
                try:
                    values[name] = coercion(value)
                except _DoesNotFit:
                    problems = {**(problems or {}), name: self._properties[name]}
            elif self._is_closed and name not in self._properties:
                problems = {**(problems or {}), name: None}
        if problems:
            required = [name for name in self._properties if name not in self._optional and name not in values]
            raise ArgumentFault(problems, required)
        return values


def _admits_null(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    alternatives = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return any(_admits_null(one) for one in alternatives) or None in schema.get("enum", ())


def _coercion(schema: Any) -> Coercion | None:
    """What to do with a value for `schema`; None when text and the rest pass as they are."""
    if not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return _SCALARS.get(kind) if isinstance(kind, str) else None


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        if len(value) < _DIGITS and value.isdecimal() and value.isascii():
            return int(value)
        text = value.strip()
        if not _INTEGER.fullmatch(text):
            raise _DoesNotFit
        return int(text)
    if isinstance(value, bool):
        raise _DoesNotFit
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            raise _DoesNotFit
        number = float(text)
        if not math.isfinite(number):
            raise _DoesNotFit
        return int(text) if _INTEGER.fullmatch(text) else number
    if isinstance(value, bool):
        raise _DoesNotFit
    return value


def _boolean(value: Any) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise _DoesNotFit
    if not isinstance(value, bool):
        raise _DoesNotFit
    return value


_SCALARS: dict[str, Coercion] = {"integer": _integer, "number": _number, "boolean": _boolean}


def _array(schema: JsonObject) -> Coercion:
    items = _coercion(schema.get("items"))

    def coerce(value: Any) -> Any:
        if isinstance(value, str):
            value = _decoded(value, list)
        if items is None or not isinstance(value, list):
            return value
        return [items(item) for item in value]

    return coerce


def _object(schema: JsonObject) -> Coercion:
    read = _ObjectReader(schema)

    def coerce(value: Any) -> Any:
        if isinstance(value, str):
            value = _decoded(value, dict)
        if not isinstance(value, Mapping):
            return value
        try:
            return read(value)
        except ArgumentFault:
            raise _DoesNotFit from None

    return coerce


def _decoded(text: str, wanted: type) -> Any:
    """JSON inside a string, where the schema wants a list or an object."""
    try:
        orjson.loads(text)  # knows more of what is no JSON than the exact decoder
        value = loads_unique(text)
    except (ValueError, RecursionError):
        raise _DoesNotFit from None
    if not isinstance(value, wanted):
        raise _DoesNotFit
    return value
