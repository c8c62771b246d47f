"""One spec in everybody's spelling, as golden files show, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from function_calls.definition import DefinitionError
from function_calls.encodings import anthropic_tool, imported_definition, mcp_tool, openai_bare, openai_tool
from function_calls.sources.mappings import new_spec
from function_calls.sources.python_functions import as_spec
from function_calls.spec import FunctionSpec
from services.llm.encoding import encode_tools
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing
from tests.function_calls.sample_functions import book, hello, travel

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "functions"
ENCODERS = {"openai": openai_tool, "openai_bare": openai_bare, "anthropic": anthropic_tool, "mcp": mcp_tool}


def a_spec(name: str) -> FunctionSpec:
    """A function for the golden file of that name."""
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
