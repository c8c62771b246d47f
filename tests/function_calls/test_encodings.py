"""Encodings of a spec in the formats of providers, compared with golden files, and imports from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from bot.mcp.content import mcp_listed_tool
from function_calls.encodings import (
    anthropic_tool,
    imported_definition,
    inventory,
    mcp_stored_tool,
    mcp_tool,
    openai_bare,
    openai_tool,
)
from function_calls.loading.python_functions import as_spec
from function_calls.schema.definition import DefinitionError
from function_calls.schema.mappings import new_spec
from function_calls.schema.schema import imported, schema_of
from function_calls.spec import FunctionSpec
from services.llm.encoding import encode_tools
from services.llm.model import OfferedFunction
from services.llm.protocols.text_protocol import sample_arguments
from services.llm.text_calls import write_xml_calls
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing
from tests.function_calls.sample_functions import book, hello, travel

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "functions"
ENCODERS = {"openai": openai_tool, "openai_bare": openai_bare, "anthropic": anthropic_tool, "mcp": mcp_tool}
SPELLINGS = {**ENCODERS, "mcp_stored": mcp_stored_tool, "mcp_listed": mcp_listed_tool}


def a_spec(name: str) -> FunctionSpec:
    """A function for the golden file with that name."""
    if name == "process_order":
        parameters = {
            "product": {"type": "string", "description": "Product to order", "example": "Laptop", "required": True},
            "price": {"type": "float", "description": "Price", "example": 99.99, "required": True},
            "gift": {"type": "boolean", "default": False},
        }
        return new_spec(name, print, "Process an order", parameters=parameters, **{"x-team": "sales"})
    functions: dict[str, Callable[..., Any]] = {"book": book, "travel": travel, "hello": hello}
    return as_spec(functions[name], {})


@pytest.mark.requirement("D26", "E40", "E41", "B1", "B2", "B3", "B8", "B21", "B32", "F3")
@pytest.mark.parametrize("name", ["process_order", "book", "travel", "hello"])
def test_every_spelling_is_as_its_golden_file_shows(name: str) -> None:
    encoded = {form: encode(a_spec(name)) for form, encode in ENCODERS.items()}
    assert encoded == json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


# Functions as their authors declare them.
DECLARED: dict[str, tuple[str, dict[str, Any]]] = {
    "user_registration": (
        "Processes user registration",
        {
            "name": {"type": "string", "example": "John Smith", "description": "User's full name", "required": True},
            "age": {"type": "number", "example": 25, "description": "User's age", "required": True},
        },
    ),
    "process_order": (
        "Process a new customer order",
        {
            "customer_name": {
                "type": "string",
                "description": "Customer's full name",
                "example": "John Doe",
                "required": True,
            },
            "order_amount": {
                "type": "float",
                "description": "Total order amount",
                "example": 99.99,
                "required": True,
            },
            "shipping_address": {
                "type": "string",
                "description": "Delivery address",
                "example": "123 Main St",
                "required": True,
            },
        },
    ),
    "search_inventory": (
        "Search product inventory",
        {
            "product_name": {"type": "string", "description": "Product to search for", "required": True},
            "min_quantity": {"type": "number", "description": "Minimum quantity available"},
        },
    ),
    "get_weather": (
        "Get the current weather for a city. Returns temperature and conditions.",
        {
            "city": {"type": "string", "required": True, "description": "City name, e.g. Beijing, Tokyo"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Temperature unit"},
        },
    ),
}


@pytest.mark.requirement("A27", "A28", "B2", "B3", "B6", "B8", "B16", "B32", "E40", "E41", "F2", "F3", "F4")
@pytest.mark.parametrize("name", list(DECLARED))
def test_a_declared_function_is_spelled_exactly_as_its_golden_file_shows(name: str) -> None:
    description, parameters = DECLARED[name]
    if name == "user_registration":
        # Its golden file does not have the examples of scripts; that of process_order shows them.
        parameters = {
            name: {key: value for key, value in one.items() if key != "example"} for name, one in parameters.items()
        }
    golden = json.loads((GOLDEN / "declared.json").read_text(encoding="utf-8"))[name]
    spec = new_spec(name, print, description, parameters=parameters)
    for form, expected in golden.items():
        encoded = SPELLINGS[form](spec)
        assert encoded == expected
        assert list(encoded) == list(expected)


@pytest.mark.requirement("E40", "E41", "D26")
def test_without_parameters_the_schema_is_an_empty_object() -> None:
    empty = {"type": "object", "properties": {}, "required": []}
    for spec in (new_spec("act", print, "Acts."), as_spec(hello, {})):
        about = {"name": spec.name, "description": spec.description}
        assert openai_tool(spec) == {"type": "function", "function": {**about, "parameters": empty}}
        assert openai_bare(spec) == {**about, "parameters": empty}
        assert anthropic_tool(spec) == {**about, "input_schema": empty}
        assert mcp_tool(spec) == {**about, "inputSchema": empty}


@pytest.mark.requirement("B25", "B32", "F4")
@pytest.mark.parametrize("form", list(ENCODERS))
def test_what_was_exported_is_imported_again_with_nothing_lost(form: str) -> None:
    spec = a_spec("process_order")
    definition = imported_definition(ENCODERS[form](spec))
    assert (definition.name, definition.description) == (spec.name, spec.description)
    assert definition.parameters == spec.parameters
    assert definition.metadata == {"x-team": "sales"}
    again = new_spec(
        definition.name, print, definition.description, parameters=definition.parameters, metadata=definition.metadata
    )
    assert ENCODERS[form](again) == ENCODERS[form](spec)


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PLAIN = st.sampled_from(
    [
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 0, "default": 3},
        {"type": "number", "example": 99.99},
        {"type": ["boolean", "null"]},
        {"enum": ["a", None, 1.5]},
        {"const": None},
        {"$ref": "#/$defs/node"},
        {"type": "string", "pattern": "^a", "x-ui": {"type": "slider"}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {},
    ]
)
SCHEMAS = st.recursive(
    st.builds(lambda schema, about: {**schema, **({"description": about} if about else {})}, PLAIN, WORDS),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(
            lambda names: {"type": "object", "properties": names, "required": sorted(names)[:1]},
            st.dictionaries(WORDS, inner, max_size=3),
        ),
    ),
    max_leaves=6,
)
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}}}
DEFINED = {"name", "description", "parameters", "input_schema", "inputSchema", "arguments", "type", "function"}
METADATA = st.dictionaries(
    (WORDS.map("x-{}".format) | st.sampled_from(["title", "annotations", "_meta", "strict"])).filter(
        lambda key: key not in DEFINED
    ),
    st.none() | st.booleans() | WORDS | st.dictionaries(WORDS, st.integers(), max_size=2),
    max_size=3,
)


@pytest.mark.requirement("B2", "B7", "B25", "B32", "E17", "E18", "E19", "E20", "E21", "E22", "E23", "E24")
@given(
    name=st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True) | st.just("今日天气"),
    description=WORDS.map(str.strip),
    properties=st.dictionaries(WORDS, SCHEMAS, max_size=4),
    metadata=METADATA,
)
def test_nothing_is_lost_from_a_spec_to_any_spelling_and_back(
    name: str, description: str, properties: dict[str, Any], metadata: dict[str, Any]
) -> None:
    declared = {"type": "object", "properties": properties, "required": sorted(properties)[:1], "$defs": {"node": NODE}}
    spec = new_spec(name, print, description, parameters=declared, metadata=metadata)
    jsonschema.Draft7Validator.check_schema(spec.parameters)
    for form, encode in SPELLINGS.items():
        wire = json.loads(json.dumps(encode(spec)))
        definition = imported_definition(wire)
        assert (definition.name, definition.description) == (name, description)
        assert definition.parameters == spec.parameters
        assert json.dumps(definition.parameters) == json.dumps(spec.parameters)
        if form != "mcp_listed":
            assert definition.metadata == metadata
        again = new_spec(name, print, description, parameters=definition.parameters, metadata=definition.metadata)
        assert encode(again) == encode(spec)


class Inputs(BaseModel):
    """Input of a function that runs code."""

    lang: str = Field(examples=["python"])
    code: str = Field(examples=["print('Hello World')"])


class RunCode(BaseModel):
    inputs: Inputs


WRITTEN = {
    "properties": {
        "inputs": {
            "type": "object",
            "properties": {
                "lang": {"type": "string", "example": "python"},
                "code": {"type": "string", "example": "print('Hello World')"},
            },
        }
    }
}


@pytest.mark.requirement("B21", "C16")
@pytest.mark.parametrize("schema", [imported(WRITTEN), schema_of(RunCode)], ids=["written", "derived"])
def test_a_schema_gives_the_sample_of_a_call_in_xml(schema: dict[str, Any]) -> None:
    function = OfferedFunction("code_runner", "code_runner", "Runs code", schema)
    assert write_xml_calls([(function.name, sample_arguments(function))]) == (GOLDEN / "code_runner.xml.txt").read_text(
        encoding="utf-8"
    ).removesuffix("\n")


@pytest.mark.requirement("B1", "B25", "B32")
def test_what_mcp_says_beside_the_parameters_is_kept() -> None:
    listed = {
        "name": "find",
        "title": "Find a thing",
        "description": "Finds.",
        "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"vendor": 1},
    }
    definition = imported_definition(listed)
    assert definition.result_schema == listed["outputSchema"]
    spec = new_spec(
        "find", print, "Finds.", parameters=definition.parameters, metadata=definition.metadata, effect="once"
    )
    assert mcp_tool(spec) == listed
    # The effect of a spec does not override explicit annotations.
    assert mcp_listed_tool(spec) == {
        **listed,
        "annotations": {
            "readOnlyHint": True,
            "openWorldHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
        },
    }


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("options", "read_only", "destructive", "idempotent", "open_world"),
    [
        ({}, True, False, True, False),
        ({"touches": "reads_outside"}, True, False, True, True),
        ({"touches": "sends_out"}, False, False, True, True),
        ({"touches": "reaches_out"}, False, True, True, True),
        ({"effect": "idempotent"}, False, True, True, False),
        ({"effect": "idempotent", "roles": "admin"}, False, True, True, True),
        ({"effect": "once"}, False, True, False, True),
        ({"effect": "once", "touches": "stays_here"}, False, False, False, False),
    ],
)
def test_the_hints_of_mcp_follow_from_effect_and_touches(
    options: dict[str, Any], read_only: bool, destructive: bool, idempotent: bool, open_world: bool
) -> None:
    listed = mcp_listed_tool(new_spec("lock.the_door", print, "Lock it", **options))
    assert listed["title"] == "Lock the door"
    assert listed["annotations"] == {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    }


def test_the_inventory_describes_schemas_of_any_kind() -> None:
    parameters = {
        "properties": {"a": {"type": ["string", "null"]}, "b": True, "c": {"type": "integer", "description": "Count"}}
    }
    lines = inventory([new_spec("act", print, "Acts.", parameters=parameters)]).splitlines()
    assert [line for line in lines if line.startswith("- `")] == [
        "- `a` (string or null, optional)",
        "- `b` (any, optional)",
        "- `c` (integer, optional): Count",
    ]
    assert "- defined in: code" in lines


@pytest.mark.requirement("B25", "B32", "F4")
@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_a_schema_is_taken_under_each_of_its_names(key: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    definition = imported_definition({"name": "act", key: schema, "annotations": {"readOnly": True}, "x-a": [1]})
    assert definition.parameters == schema
    assert definition.metadata == {"annotations": {"readOnly": True}, "x-a": [1]}


@pytest.mark.parametrize(
    "definition", [{"name": "act"}, {"name": "act", "parameters": None}, {"name": "act", "parameters": {}}]
)
def test_without_a_schema_there_are_no_parameters(definition: dict[str, Any]) -> None:
    assert imported_definition(definition).parameters == {"type": "object", "properties": {}, "required": []}


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"name": ""},
        {"name": 5},
        {"type": "function", "function": {}},
        {"name": "a", "parameters": "string"},
        {"name": "a", "inputSchema": {"type": "array"}},
    ],
)
def test_a_definition_that_is_none_is_refused(definition: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        imported_definition(definition)


@pytest.mark.requirement("E9")
def test_metadata_never_takes_the_place_of_what_defines_a_function() -> None:
    clash = {"name": "evil", "description": "evil", "parameters": {}, "input_schema": {}, "inputSchema": {}, "x": 1}
    spec = new_spec("act", print, "Acts.", metadata=clash)
    for encode in (openai_bare, anthropic_tool, mcp_tool):
        encoded = encode(spec)
        assert (encoded["name"], encoded["description"], encoded["x"]) == ("act", "Acts.", 1)
    assert openai_bare(spec)["parameters"] == mcp_tool(spec)["inputSchema"] == anthropic_tool(spec)["input_schema"]


@pytest.mark.requirement("D26", "E40")
def test_what_the_model_is_sent_is_the_openai_form_without_metadata() -> None:
    weather = Recorder("weather", CITY, x_cost=3, examples=["weather in {city}"])
    functions = Routing(weather).registry.of("default")
    (sent,) = json.loads(encode_tools(functions.offer(functions.specs)))
    expected = {key: value for key, value in openai_bare(weather.spec).items() if key != "x_cost"}
    assert sent == {"type": "function", "function": expected}
