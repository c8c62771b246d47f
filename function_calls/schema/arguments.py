"""Parsing of raw arguments: a pass of lossless coercions, then validation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from function_calls.profile import ChatProfile
from function_calls.schema.schema import UnusableSchema, closed, schema_of
from function_calls.spec import ArgumentError, ArgumentParser
from services.llm.reading.tool_arguments import loads_unique
from services.refs import JsonObject

if TYPE_CHECKING:
    import jsonschema_rs


_DIGITS = 19
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})

Coercion = Callable[[Any], Any]


class CoercionError(Exception):
    """No lossless conversion of the value fits the schema."""


class ObjectReader:
    """Coerces the properties of an object."""

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
        """Coerced copy of `raw`. Raises ArgumentError for values that cannot fit."""
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
                except CoercionError:
                    problems = {**(problems or {}), name: self._properties[name]}
            elif self._is_closed and name not in self._properties:
                problems = {**(problems or {}), name: None}
        if problems:
            required = [name for name in self._properties if name not in self._optional and name not in values]
            raise ArgumentError(problems, required)
        for part in self._parts:
            values = part(values)
        return values


class Definitions:
    """Schemas that refer to themselves, each compiled on first use."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._compiled: dict[str, Coercion | None] = {}

    def coercion(self, reference: str) -> Coercion | None:
        """Coercion for the schema of `reference`, or None if it is unknown."""
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
    """Whether null may be valid. True if only the validator can decide."""
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
    """Coercion for values of `schema`; None if values pass unchanged."""
    if not isinstance(schema, dict):
        return None
    steps = [_typed(schema, definitions)]
    if isinstance(schema.get("$ref"), str):
        steps.append(definitions.coercion(schema["$ref"]))
    if schema.get("type") != "object":
        steps += [_coercion(part, definitions) for part in schema.get("allOf") or ()]
    for union in ("anyOf", "oneOf"):
        variants = [one for one in schema.get(union) or () if not (isinstance(one, dict) and one.get("type") == "null")]
        if len(variants) == 1:
            steps.append(_coercion(variants[0], definitions))
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
            raise CoercionError
        return int(text)
    if isinstance(value, bool):
        raise CoercionError
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            raise CoercionError
        number = float(text)
        if not math.isfinite(number):
            raise CoercionError
        return int(text) if _INTEGER.fullmatch(text) else number
    if isinstance(value, bool):
        raise CoercionError
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
    raise CoercionError


_SCALARS: dict[str, Coercion] = {"integer": _integer, "number": _number, "boolean": _boolean}


def _array(schema: JsonObject, definitions: Definitions) -> Coercion:
    # With `prefixItems`, `items` describes only the remaining items.
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
        except ArgumentError:
            raise CoercionError from None

    return coerce


def _decoded(text: str, kind: type) -> Any:
    """Parse JSON in a string, for a schema that expects a list or an object."""
    try:
        orjson.loads(text)  # rejects invalid JSON that the exact decoder accepts
        value = loads_unique(text)
    except (ValueError, RecursionError):
        raise CoercionError from None
    if not isinstance(value, kind):
        raise CoercionError
    return value


class ModelArguments:
    """Arguments of a pydantic model or a dataclass."""

    def __init__(self, model: Any) -> None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(model)
        except PydanticUserError as error:
            raise UnusableSchema(f"a field has a type that no argument can have: {_first_line(error)}") from None
        self._model: type = model if isinstance(model, type) else object
        self.schema = schema_of(model)
        # Unknown arguments are rejected, although the schema for models does not say so.
        self._read = ObjectReader(closed(self.schema))
        self._validate = adapter.validator.validate_python
        self._dump = adapter.serializer.to_python
        self._is_plain = isinstance(model, type) and issubclass(model, BaseModel) and _is_plain(model)

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Instance of the model. Raises ArgumentError."""
        values = self._read(raw)
        try:
            return self._validate(values)
        except ValidationError as error:
            raise self._fault(error) from None

    def dump(self, arguments: Any) -> JsonObject:
        """The instance as plain JSON that `parse` accepts, without nulls. Arguments that were never parsed are returned
        unchanged."""
        if type(arguments) is self._model:
            if self._is_plain:
                # Same result as the serializer, in a third of the time.
                values: JsonObject = arguments.__dict__.copy()
                if None in values.values():
                    values = {name: value for name, value in values.items() if value is not None}
                return values
        elif isinstance(arguments, Mapping):
            return dict(arguments)
        dumped: JsonObject = self._dump(arguments, mode="json", by_alias=True, exclude_none=True)
        return dumped

    def _fault(self, error: ValidationError) -> ArgumentError:
        problems: dict[str, JsonObject | None] = {}
        missing: list[str] = []
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            name = str(item["loc"][0]) if item["loc"] else ""
            if item["type"] in ("missing", "missing_argument") and len(item["loc"]) == 1:
                missing.append(name)
            else:
                problems[name] = self.schema["properties"].get(name)
        return ArgumentError(problems, missing)


def _is_plain(model: type[BaseModel]) -> bool:
    """Whether instances of `model` need no serialization: all fields are texts, integers or booleans, under their own
    names and without custom serializers."""
    schema: Any = model.__pydantic_core_schema__
    fields = schema.get("schema", {})
    if schema["type"] != "model" or "serialization" in schema or fields.get("type") != "model-fields":
        return False
    if fields.get("computed_fields") or schema.get("config", {}).get("extra_fields_behavior") == "allow":
        return False
    return all(_is_plain_field(field) for field in fields["fields"].values())


def _is_plain_field(field: Any) -> bool:
    if "serialization_alias" in field or "serialization_exclude" in field or "serialization_exclude_if" in field:
        return False
    schema = field["schema"]
    while schema["type"] in ("default", "nullable") and "serialization" not in schema:
        schema = schema["schema"]
    return schema["type"] in ("str", "int", "bool") and "serialization" not in schema


def _is_moment(text: str) -> bool:
    """Whether `text` is a date with a time. The zone may be missing, because people and models omit it."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return len(text) > len("2026-01-05")


def require_json(raw: Mapping[str, Any], schema: JsonObject) -> None:
    """Check that JSON, and so every store and log, can represent `raw`. Raises ArgumentError if not."""
    unfit = [name for name, value in raw.items() if not _is_json(value)]
    if unfit:
        raise ArgumentError({name: schema["properties"].get(name) for name in unfit})


def _is_json(value: Any) -> bool:
    try:
        orjson.dumps(value, default=str)
    except TypeError:
        return False
    return True


class SchemaArguments:
    """Arguments of an imported JSON Schema. Handlers get a plain dict."""

    def __init__(self, schema: JsonObject, *, fills_defaults: bool = True) -> None:
        """`fills_defaults`: absent arguments get the schema's default if it is valid. Raises UnusableSchema."""
        self.schema = schema
        self._read = ObjectReader(schema)
        self._is_valid, self._errors = _validator(schema)
        self._defaults = _Defaults(schema, self._read) if fills_defaults else None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Arguments with defaults. Raises ArgumentError."""
        try:
            values = self._read(raw)
            filled = self._defaults.filled(values) if self._defaults is not None else values
            if self._is_valid(filled):
                return filled
            if self._defaults is not None:
                # The schema may exclude a combination of given arguments and defaults.
                values = self._defaults.filled(values, only_required=True)
                if self._is_valid(values):
                    return values
            raise self._fault(values)
        except (ValueError, RecursionError):  # an object without a JSON form, or nested too deep
            raise ArgumentError({"": None}) from None

    def dump(self, arguments: Any) -> JsonObject:
        """A copy of the arguments."""
        return dict(arguments)

    def _fault(self, values: JsonObject) -> ArgumentError:
        problems: dict[str, JsonObject | None] = {}
        missing: list[str] = []
        for error in self._errors(values):
            if error.instance_path:
                name = str(error.instance_path[0])
                problems[name] = self.schema["properties"].get(name)
            else:
                missing += [name for name in self.schema["required"] if name not in values and name not in missing]
        if not problems and not missing:
            problems[""] = None
        return ArgumentError(problems, missing)


class _Defaults:
    """Valid defaults of a schema."""

    def __init__(self, schema: JsonObject, read: ObjectReader) -> None:
        self._values: list[tuple[str, Any, bool, bool]] = []
        """Name, value, whether each run needs a copy, whether the schema requires the argument."""
        declared = {
            name: sub["default"]
            for name, sub in schema["properties"].items()
            if isinstance(sub, dict) and "default" in sub
        }
        if not declared:
            return
        is_valid, _ = _validator({key: schema[key] for key in ("$schema", "properties", "$defs") if key in schema})
        for name, value in declared.items():
            try:
                value = read({name: value}).get(name)
                fits = is_valid({name: value})
            except (ArgumentError, ValueError, RecursionError):
                continue
            if fits:
                self._values.append((name, value, isinstance(value, list | dict), name in schema["required"]))

    def filled(self, values: JsonObject, *, only_required: bool = False) -> JsonObject:
        """`values` with defaults for absent arguments. Given values are never changed."""
        absent = {
            name: deepcopy(value) if copies else value
            for name, value, copies, required in self._values
            if name not in values and (required or not only_required)
        }
        return {**values, **absent} if absent else values


def _validator(schema: JsonObject) -> tuple[Callable[[Any], bool], Callable[[Any], Iterable[Any]]]:
    """Validator of `schema`: a check for validity, and an iterator over errors. Raises UnusableSchema."""
    # Imported here because only daemons with imported functions need it.
    import jsonschema_rs

    try:
        # This regex engine has no look-around and runs in linear time.
        validator = jsonschema_rs.validator_for(
            {"$schema": "http://json-schema.org/draft-07/schema#", **schema},
            validate_formats=True,
            formats={"date-time": _is_moment},
            pattern_options=jsonschema_rs.RegexOptions(),
            retriever=_refuse_to_fetch,
        )
    except jsonschema_rs.ValidationError as error:
        raise UnusableSchema(_reason(error)) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise UnusableSchema(f"the parameters are no usable JSON Schema: {_first_line(error)}") from None
    return validator.is_valid, validator.iter_errors


def _reason(error: jsonschema_rs.ValidationError) -> str:
    """Location and description of an error in a schema."""
    where = ".".join(map(str, error.instance_path))
    text = str(error.message)
    pattern = text.removesuffix(' is not a "regex"')
    if pattern != text:
        known = "look-around, references back and flags are not known here"
        text = f"{pattern} is no regular expression that can be used; {known}"
    return f"{where}: {text}" if where else text


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"$ref {uri!r} points outside the schema; nothing is fetched")


class ReadsPeople(Protocol):
    """An ArgumentParser that accepts additional forms in a chat."""

    def said(self, raw: Mapping[str, Any], profile: ChatProfile) -> Mapping[str, Any]:
        """Raw arguments converted for `parse`: `tomorrow` becomes the date in the chat's time zone. Valid and
        unrecognized values stay unchanged."""


def as_said(arguments: ArgumentParser, raw: Mapping[str, Any], profile: ChatProfile) -> Mapping[str, Any]:
    """`raw` converted by `said` if `arguments` has that method."""
    # Checked by name: an isinstance check of the protocol would take half the time of a run.
    return cast(ReadsPeople, arguments).said(raw, profile) if hasattr(arguments, "said") else raw
