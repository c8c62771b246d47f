"""Schemas from types and from external definitions: valid draft 7, compact, and without remote references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel

from function_calls.declaration import declaration_of
from function_calls.handlers.chat import chat_control
from function_calls.handlers.chat import help as help_handlers
from function_calls.handlers.group import poll, todo
from function_calls.handlers.lookup import weather
from function_calls.handlers.small import calculate, dice, time
from function_calls.loading.python_functions import as_spec
from function_calls.schema.definition import DefinitionError, schema_arguments
from function_calls.schema.schema import UnusableSchema, imported, schema_of
from function_calls.spec import FunctionSpec
from tests.fakes.functions import Recorder
from tests.function_calls.sample_functions import Booking, RawText, Trip, Units, book, hello, travel

HANDLERS = (calculate, chat_control, dice, help_handlers, poll, time, todo, weather)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas within a schema."""
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            yield from nodes(list(value.values()) if key == "properties" else value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.requirement("D20", "D21", "D43", "D57", "B7")
@pytest.mark.parametrize("arguments", [Booking, Trip, Units, RawText])
def test_models_and_dataclasses_give_plain_draft_7(arguments: Any) -> None:
    schema = schema_of(arguments)
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["type"] == "object"
    for node in nodes(schema):
        assert not {"title", "$ref", "$defs", "definitions", "discriminator"} & set(node)
        assert {"type": "null"} not in node.get("anyOf", [])
        assert node.get("default", 0) is not None


@pytest.mark.requirement("D21", "D57", "B26", "E22", "E23", "E24")
def test_every_kind_of_field_keeps_what_it_means() -> None:
    properties = schema_of(Booking)["properties"]
    assert properties["title"] == {
        "type": "string",
        "description": "What to book",
        "minLength": 1,
        "maxLength": 40,
    }
    assert properties["guests"] == {"type": "integer", "default": 2, "minimum": 1, "maximum": 8}
    assert properties["kind"]["enum"] == ["room", "desk"]
    assert (properties["priority"]["enum"], properties["priority"]["default"]) == (["low", "high"], "low")
    assert properties["address"]["required"] == ["street", "zip_code"]
    assert properties["address"]["properties"]["zip_code"]["pattern"] == r"^\d{4}$"
    assert properties["places"]["items"]["required"] == ["name"]
    assert properties["prices"]["additionalProperties"] == {"type": "number"}
    assert properties["note"] == {"type": "string", "description": "Anything else"}
    assert [one["type"] for one in properties["size"]["anyOf"]] == ["integer", "number"]
    assert schema_of(Booking)["required"] == ["title"]


@pytest.mark.requirement("D21", "D57")
def test_a_dataclass_gives_the_schema_that_its_fields_say() -> None:
    schema = schema_of(Trip)
    assert schema["required"] == ["to", "stops"]
    assert list(schema["properties"]) == ["to", "stops", "days", "via"]
    assert schema["properties"]["to"]["properties"]["floor"] == {"type": "integer"}
    assert schema["properties"]["via"]["enum"] == ["sea", "air"]


@pytest.mark.requirement("D20", "D21")
def test_no_arguments_are_an_empty_object() -> None:
    assert as_spec(hello, {}).parameters == {"type": "object", "properties": {}, "required": []}


def handler_functions() -> list[Callable[..., Any]]:
    """All decorated functions of the built-in handlers."""
    return [one for module in HANDLERS for one in vars(module).values() if declaration_of(one) is not None]


@pytest.mark.requirement("D20", "D32", "D68", "B7")
def test_every_function_of_our_own_has_a_valid_schema_and_a_typed_model() -> None:
    class Anything(dict[type, object]):
        """A service of every type."""

        def __contains__(self, kind: object) -> bool:
            return True

        def __missing__(self, kind: type) -> object:
            return kind

    specs: list[FunctionSpec] = [as_spec(function, Anything()) for function in handler_functions()]
    assert len(specs) >= 15
    for spec in specs:
        jsonschema.Draft7Validator.check_schema(spec.parameters)
        assert list(spec.parameters)[:3] == ["type", "properties", "required"], spec.name
        for name, schema in spec.parameters["properties"].items():
            assert schema.get("description"), f"{spec.name}.{name} is not described"


@dataclass
class Node:
    children: list[Node]


class Loop(BaseModel):
    inner: Loop | None = None


class Odd(BaseModel):
    run: Callable[[], None]


@pytest.mark.parametrize("arguments", [Node, Loop, Odd, list[int], int])
def test_a_type_that_no_model_can_be_told_is_refused(arguments: Any) -> None:
    with pytest.raises(UnusableSchema):
        schema_of(arguments)


@pytest.mark.requirement("E18", "B6")
@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("string", "string"),
        ("integer", "integer"),
        ("float", "number"),
        ("number", "number"),
        ("boolean", "boolean"),
        ("array", "array"),
        ("object", "object"),
        ("int", "integer"),
        ("bool", "boolean"),
        ("str", "string"),
        ("dict", "object"),
        ("tuple", "array"),
        ("HashMap", "object"),
        ("String", "string"),
        ("Integer", "integer"),
    ],
)
def test_types_of_other_languages_become_those_of_json(declared: str, kind: str) -> None:
    schema = imported({"type": "dict", "properties": {"x": {"type": declared}, "y": {"type": [declared, "null"]}}})
    assert schema["properties"] == {"x": {"type": kind}, "y": {"type": [kind, "null"]}}
    jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.requirement("D20")
def test_references_within_a_foreign_schema_are_written_out() -> None:
    schema = imported(
        {
            "$defs": {"Name": {"type": "string", "title": "Name", "minLength": 1}, "Pair": {"$ref": "#/$defs/Name"}},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/Pair", "description": "First"}, "title": {"type": "string"}},
        }
    )
    assert schema["properties"] == {
        "a": {"type": "string", "minLength": 1, "description": "First"},
        "title": {"type": "string"},
    }


def test_references_may_point_anywhere_within_the_schema() -> None:
    schema = imported(
        {
            "$defs": {"a/b~c": {"type": "integer"}, "anything": True},
            "properties": {
                "a": {"type": "array", "items": [{"type": "string", "maxLength": 3}]},
                "b": {"$ref": "#/properties/a/items/0"},
                "c": {"$ref": "#/$defs/a~1b~0c"},
                "d": {"$ref": "#/%24defs/anything"},
            },
        }
    )
    assert schema["properties"]["b"] == {"type": "string", "maxLength": 3}
    assert (schema["properties"]["c"], schema["properties"]["d"]) == ({"type": "integer"}, {})


@pytest.mark.parametrize(
    "schema",
    [
        "object",
        [],
        {"type": "array"},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": "a"},
        {"type": "object", "required": True},
        {"type": "object", "required": "a"},
        {"type": "object", "required": [1]},
        {"type": "object", "properties": {"a": {"type": "blob"}}},
        {"type": "object", "properties": {"a": {"type": 5}}},
        {"type": "object", "properties": {"a": {"type": ["string", "blob"]}}},
        {"type": "object", "properties": {"a": {"minimum": "one"}}},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "other.json#/x"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/type"}}},
        {"type": "object", "properties": {"a": {"$ref": 5}}},
        {"type": "object", "properties": {"a": {"$ref": {"type": "string"}}}},
        {"$defs": [], "type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<!x)y"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": r"(a)\1"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_where_it_is_loaded(schema: Any) -> None:
    with pytest.raises(DefinitionError, match="function 'act'"):
        schema_arguments("act", schema)


def test_a_schema_that_would_grow_without_end_is_refused() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)
    }
    definitions["d40"] = {"type": "string"}
    with pytest.raises(DefinitionError, match="too large"):
        schema_arguments("act", {"$defs": definitions, "properties": {"a": {"$ref": "#/$defs/d0"}}})


def test_a_schema_nested_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(DefinitionError, match="too deep"):
        schema_arguments("act", {"properties": {"a": deep}})


@pytest.mark.requirement("B25")
def test_extensions_of_a_schema_survive_untouched() -> None:
    extension = {"type": "slider", "title": "Guests", "$ref": "anything"}
    schema = imported({"properties": {"n": {"type": "integer", "x-ui": extension, "example": 99.99}}})
    assert schema["properties"]["n"] == {"type": "integer", "x-ui": extension, "example": 99.99}


def test_a_blocking_function_and_one_with_a_result_model_have_schemas_too() -> None:
    assert as_spec(travel, {}).parameters["required"] == ["to", "stops"]
    spec = as_spec(book, {})
    assert spec.prompt.result_schema is not None
    assert spec.prompt.result_schema["properties"]["title"] == {"type": "string"}
    assert "title" in spec.prompt.result_schema["required"]


def test_a_recorder_without_parameters_has_the_empty_schema() -> None:
    assert Recorder("act").spec.parameters == {"type": "object", "properties": {}, "required": []}
