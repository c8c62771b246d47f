"""Raw arguments become typed ones: one coercion pass that loses nothing, then validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from function_calls.coercion import ObjectReader
from function_calls.schema import UnusableSchema, closed, schema_of
from function_calls.spec import ArgumentFault
from services.json_values import JsonObject

if TYPE_CHECKING:
    import jsonschema_rs


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
        self._read = ObjectReader(closed(self.schema))
        self._validate = adapter.validator.validate_python
        self._dump = adapter.serializer.to_python
        self._is_plain = isinstance(model, type) and issubclass(model, BaseModel) and _is_plain(model)

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
        if type(arguments) is self._model:
            if self._is_plain:
                # As the serializer would give it, at a third of the price.
                values: JsonObject = arguments.__dict__.copy()
                if None in values.values():
                    values = {name: value for name, value in values.items() if value is not None}
                return values
        elif isinstance(arguments, Mapping):
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


def _is_plain(model: type[BaseModel]) -> bool:
    """Whether the fields of `model` are JSON as they stand in it, under their own names: texts, whole numbers, yes and
    no, and nothing of its own is done to write them."""
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
    """Arguments described by a JSON Schema from elsewhere, in our form. Handlers get a plain dict."""

    def __init__(self, schema: JsonObject, *, fills_defaults: bool = True) -> None:
        """`fills_defaults`: absent arguments get the default that the schema names, where that fits the schema itself.
        Raises UnusableSchema."""
        self.schema = schema
        self._read = ObjectReader(schema)
        self._is_valid, self._errors = _validator(schema)
        self._defaults = _Defaults(schema, self._read) if fills_defaults else None

    def parse(self, raw: Mapping[str, Any]) -> Any:
        """The arguments with defaults filled in. Raises ArgumentFault."""
        try:
            values = self._read(raw)
            filled = self._defaults.filled(values) if self._defaults is not None else values
            if self._is_valid(filled):
                return filled
            if self._defaults is not None:
                # An author may exclude by the whole what defaults add to what was given.
                values = self._defaults.filled(values, only_required=True)
                if self._is_valid(values):
                    return values
            raise self._fault(values)
        except (ValueError, RecursionError):  # an object that stands for no JSON value, or one that has no end
            raise ArgumentFault({"": None}) from None

    def dump(self, arguments: Any) -> JsonObject:
        """The same, in a dict of its own."""
        return dict(arguments)

    def _fault(self, values: JsonObject) -> ArgumentFault:
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
        return ArgumentFault(problems, missing)


class _Defaults:
    """The defaults of one schema that fit it."""

    def __init__(self, schema: JsonObject, read: ObjectReader) -> None:
        self._values: list[tuple[str, Any, bool, bool]] = []
        """Name, value, whether every run needs a copy of its own, whether the schema requires the argument."""
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
            except (ArgumentFault, ValueError, RecursionError):
                continue
            if fits:
                self._values.append((name, value, isinstance(value, list | dict), name in schema["required"]))

    def filled(self, values: JsonObject, *, only_required: bool = False) -> JsonObject:
        """`values`, and what is absent in them. Changes nothing that was given."""
        absent = {
            name: deepcopy(value) if copies else value
            for name, value, copies, required in self._values
            if name not in values and (required or not only_required)
        }
        return {**values, **absent} if absent else values


def _validator(schema: JsonObject) -> tuple[Callable[[Any], bool], Callable[[Any], Iterable[Any]]]:
    """Two ways to ask whether a value is valid: yes or no, and why not. Raises UnusableSchema."""
    # Imported here: only daemons with foreign functions need it.
    import jsonschema_rs

    try:
        # The plain regex engine has no look-around and runs in linear time.
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
    """Where in a schema something is wrong, and what."""
    where = ".".join(map(str, error.instance_path))
    said = str(error.message)
    pattern = said.removesuffix(' is not a "regex"')
    if pattern != said:
        known = "look-around, references back and flags are not known here"
        said = f"{pattern} is no regular expression that can be used; {known}"
    return f"{where}: {said}" if where else said


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"$ref {uri!r} points outside the schema; nothing is fetched")
