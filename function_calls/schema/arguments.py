"""Parsing of raw arguments: a pass of lossless coercions, then validation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import orjson
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from function_calls.profile import ChatProfile
from function_calls.schema.schema import DRAFT_7, MANY, UnusableSchema, WithoutEnforcedEnums, closed, nodes, schema_of
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
GIVEN = "x-given"
"""Key in the schema of an argument error of all arguments together: the names of the given arguments."""


Path = tuple[str | int, ...]
"""Steps from the arguments to a value in them: names and positions."""
Problems = dict[Path, JsonObject | None]
"""Schema of allowed values by path; None: unknown argument."""


class CoercionError(Exception):
    """No lossless conversion of the value fits the schema. `problems` are those inside the value; empty: the value
    itself. `value`: the value, converted where possible."""

    def __init__(self, problems: Problems | None = None, value: Any = None) -> None:
        super().__init__()
        self.problems = problems or {}
        self.value = value

    def at(self, step: str | int, schema: Any) -> Problems:
        """Problems as seen from the value around, in which `schema` describes this one."""
        return {(step, *path): one for path, one in self.problems.items()} or {(step,): schema}


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
        """Coerced copy of `raw`. Raises CoercionError for values that cannot fit."""
        values = dict(raw)
        problems: Problems | None = None
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
                except CoercionError as error:
                    problems = {**(problems or {}), **error.at(name, self._properties[name])}
                    if error.problems:
                        values[name] = error.value
            elif self._is_closed and name not in self._properties:
                problems = {**(problems or {}), (name,): None}
        if self._parts:
            values, problems = self._of_parts(values, problems)
        if problems:
            raise CoercionError(problems, values)
        return values

    def _of_parts(self, values: JsonObject, problems: Problems | None) -> tuple[JsonObject, Problems | None]:
        for part in self._parts:
            try:
                values = part(values)
            except CoercionError as error:
                values, problems = error.value, {**(problems or {}), **error.problems}
        return values, problems


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
    if "enum" in schema:
        steps.append(_enumerated(schema["enum"]))
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


def _enumerated(values: Sequence[Any]) -> Coercion:
    """Coercion to one of `values`: an equal one, else the only one that is spelled the same apart from case, such as
    "True" for true."""
    spelled: dict[str, list[Any]] = {}
    for one in values:
        if isinstance(one, str | int | float):
            spelled.setdefault(_spelling(one), []).append(one)

    def check(value: Any) -> Any:
        if value in values:
            return value
        alike = spelled.get(_spelling(value), ()) if isinstance(value, str | int | float) else ()
        if len(alike) != 1:
            raise CoercionError
        return alike[0]

    return check


def _spelling(value: str | float) -> str:
    return str(value).strip().casefold()


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
        problems: Problems = {}
        coerced = []
        for place, item in enumerate(value):
            try:
                coerced.append(items(item))
            except CoercionError as error:
                coerced.append(error.value if error.problems else item)
                problems |= error.at(place, schema["items"])
        if problems:
            raise CoercionError(problems, coerced)
        return coerced

    return coerce


def _object(schema: JsonObject, definitions: Definitions) -> Coercion:
    read = ObjectReader(schema, definitions)

    def coerce(value: Any) -> Any:
        if isinstance(value, str):
            value = _decoded(value, dict)
        return read(value) if isinstance(value, Mapping) else value

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
        has_enum = any("enum" in node for node in nodes(self.schema))
        # The model itself does not enforce enums from `json_schema_extra`.
        read = schema_of(model, WithoutEnforcedEnums) if has_enum else self.schema
        self._read = ObjectReader(closed(read))
        # At validation this covers unions and mappings too, but it would override models that allow more.
        is_open = any(node.get("additionalProperties") is True for node in nodes(self.schema))
        self._extra: Literal["forbid"] | None = None if is_open else "forbid"
        self._validate = adapter.validator.validate_python
        self._dump = adapter.serializer.to_python
        self._is_plain = isinstance(model, type) and issubclass(model, BaseModel) and _is_plain(model)

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Instance of the model. Raises ArgumentError."""
        try:
            return self._validate(self._read(raw), extra=self._extra)
        except CoercionError as error:
            raise self._fault(error.value, error.problems) from None
        except ValidationError:
            raise self._fault(self._read(raw), {}) from None

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

    def _fault(self, values: JsonObject, problems: Problems) -> ArgumentError:
        """Error with `problems` of the coercion, and with those that the validation finds in the coerced `values`."""
        found = _Faults(self.schema, values, problems)
        try:
            self._validate(values, extra=self._extra)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            found.add_located([(item["loc"], item["type"]) for item in errors])
        return found.error()


class _Faults:
    """Collects the problems of arguments from the errors of a validator, by path."""

    def __init__(self, schema: JsonObject, values: JsonObject, problems: Problems | None = None) -> None:
        self._schema = schema
        self._values = values
        self._problems: Problems = {
            path: None if one is None else _schema_at(schema, path) or one for path, one in (problems or {}).items()
        }
        self._missing: dict[Path, None] = {}

    def error(self) -> ArgumentError:
        """The collected problems, with paths as `lines.0.qty`."""
        if not self._problems and not self._missing:
            self._problems[()] = None
        problems = {".".join(map(str, path)): schema for path, schema in self._problems.items()}
        return ArgumentError(problems, [".".join(map(str, path)) for path in self._missing])

    def add_located(self, errors: Sequence[tuple[Path, str]]) -> None:
        """Add errors of pydantic, as location and type. A location also names the variants of unions."""
        variants: dict[Path, dict[str | int, list[tuple[Path, str]]]] = {}
        for location, kind in errors:
            path: Path = ()
            value: Any = self._values
            for place, step in enumerate(location):
                is_last = place == len(location) - 1
                try:
                    value = value[step]
                except (LookupError, TypeError):
                    if is_last and kind == "missing" and isinstance(value, Mapping):
                        self._missing[(*path, step)] = None
                        break
                    if not is_last or kind != "missing":
                        rest = (*path, *location[place + 1 :])
                        variants.setdefault(path, {}).setdefault(step, []).append((rest, kind))
                        break
                    self._wrong(path)
                    break
                path = (*path, step)
            else:
                self._wrong(path, is_unknown=kind == "extra_forbidden")
        for path, errors_of in variants.items():
            # A variant whose only error is the value itself is of another type.
            inside = sorted((one for one in errors_of.values() if all(rest != path for rest, _ in one)), key=len)
            if not inside or (len(inside) > 1 and len(inside[0]) == len(inside[1])):
                self._wrong(path)
            else:
                self.add_located(inside[0])

    def add(self, errors: Iterable[jsonschema_rs.ValidationError]) -> None:
        """Add errors of a JSON Schema validator."""
        for error in errors:
            path, kind = tuple(error.instance_path), error.kind
            names = getattr(kind, "unexpected", None)
            if kind.name == "required":
                self._missing[(*path, getattr(kind, "property", ""))] = None
            elif names is not None and kind.name in ("additionalProperties", "unevaluatedProperties"):
                for name in names:
                    self._wrong((*path, name), is_unknown=True)
            elif kind.name in ("anyOf", "oneOf") and (fitting := self._variant(path, kind)) is not None:
                self.add(fitting)
            elif path:
                self._wrong(path, is_unknown=kind.name == "falseSchema")
            else:
                self._problems[()] = {kind.name: self._schema.get(kind.name), GIVEN: list(self._values)}

    def _variant(self, path: Path, kind: Any) -> Any:
        """Errors of the only variant of a union whose type fits the value at `path`, or None."""
        fitting = [
            errors
            for errors in getattr(kind, "context", ())
            if not any(
                one.kind.name in ("type", "enum", "const") and tuple(one.instance_path) == path for one in errors
            )
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _wrong(self, path: Path, *, is_unknown: bool = False) -> None:
        if path not in self._problems:
            self._problems[path] = None if is_unknown else _schema_at(self._schema, path)


def _schema_at(schema: Any, path: Path) -> JsonObject:
    """Schema of the value at `path`; empty if it cannot be found."""
    for step in path:
        schema = next((one for one in _steps(schema, step) if one is not None), None)
    return schema if isinstance(schema, dict) else {}


def _steps(schema: Any, step: str | int) -> Iterator[Any]:
    if not isinstance(schema, dict):
        return
    if isinstance(step, int):
        listed = schema.get("prefixItems") or schema.get("items")
        if isinstance(listed, list):
            yield listed[step] if step < len(listed) else schema.get("additionalItems")
        yield schema.get("items")
    else:
        yield (schema.get("properties") or {}).get(step)
        yield schema.get("additionalProperties")
    for union in MANY - {"items", "prefixItems"}:
        for one in schema.get(union) or ():
            yield from _steps(one, step)


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
        self._is_valid, self._errors = validator_of(schema)
        self._defaults = _Defaults(schema, self._read) if fills_defaults else None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """Arguments with defaults. Raises ArgumentError."""
        try:
            try:
                values = self._read(raw)
            except CoercionError as error:
                raise self._fault(error.value, error.problems) from None
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

    def _fault(self, values: JsonObject, problems: Problems | None = None) -> ArgumentError:
        found = _Faults(self.schema, values, problems)
        found.add(self._errors(values))
        return found.error()


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
        is_valid, _ = validator_of({key: schema[key] for key in ("$schema", "properties", "$defs") if key in schema})
        for name, value in declared.items():
            try:
                value = read({name: value}).get(name)
                fits = is_valid({name: value})
            except (CoercionError, ValueError, RecursionError):
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


def validator_of(
    schema: JsonObject, *, draft: str = DRAFT_7, has_formats: bool = True
) -> tuple[Callable[[Any], bool], Callable[[Any], Iterable[Any]]]:
    """Validator of `schema`: a check for validity, and an iterator over errors. `draft`: meta-schema for a schema that
    names none. `has_formats`: formats such as that of a date count. Raises UnusableSchema."""
    # Imported here because only daemons with imported functions need it.
    import jsonschema_rs

    try:
        # This regex engine has no look-around and runs in linear time.
        validator = jsonschema_rs.validator_for(
            {"$schema": draft, **schema},
            validate_formats=has_formats,
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
