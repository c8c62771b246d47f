"""External schemas: values that are valid for them stay valid, however they are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.registry import BotFunctions
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.commands import usage_line
from function_calls.schema.definition import DefinitionError, schema_arguments
from function_calls.schema.mappings import new_spec
from function_calls.schema.model_schema import schema_for_model
from function_calls.schema.schema import UnusableSchema, imported
from function_calls.spec import ArgumentError

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/definitions/node"}},
    "required": ["root"],
    "definitions": {
        "node": {
            "type": "object",
            "description": "A node.",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/definitions/node"}},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}


def accepts(schema: dict[str, Any], arguments: dict[str, Any]) -> bool:
    try:
        SchemaArguments(imported(schema), fills_defaults=False).parse(arguments)
    except ArgumentError:
        return False
    return True


# -- cases of the JSON Schema test suite


def groups(data: Callable[[str], Path]) -> Iterator[dict[str, Any]]:
    with data("E_schema_mcp/jsts_draft7_core.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def as_property(schema: Any) -> dict[str, Any]:
    """An object whose property `value` must match `schema`, which stays a separate document for its references."""
    if isinstance(schema, dict) and "$ref" not in schema:
        schema = {"$id": "urn:the-value", **schema}
    return {"type": "object", "properties": {"value": schema}, "required": ["value"]}


def may_be_parameters(schema: Any) -> bool:
    """Whether it is for objects, as arguments are, or for any value."""
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type", "object")
    return "object" in (kinds if isinstance(kinds, list) else [kinds])


def is_reading_of(given: Any, read: Any) -> bool:
    """Whether `read` equals `given`, except for numbers and booleans written as text, and nulls for absent values."""
    if isinstance(given, str) and not isinstance(read, str):
        return bool(json.loads(given.lower()) == read)
    if isinstance(given, list) and isinstance(read, list):
        return len(given) == len(read) and all(map(is_reading_of, given, read))
    if isinstance(given, dict) and isinstance(read, dict):
        kept = {name: value for name, value in given.items() if name in read or value is not None}
        return kept.keys() == read.keys() and all(is_reading_of(kept[name], read[name]) for name in read)
    return type(given) is type(read) and bool(given == read)


def differing(schema: dict[str, Any], cases: list[tuple[dict[str, Any], bool]]) -> Iterator[str]:
    """Cases with a wrong result that no lossless conversion explains."""
    parser = SchemaArguments(imported(schema))
    for raw, is_valid in cases:
        try:
            read = parser.parse(raw)
        except ArgumentError:
            if is_valid:
                yield f"{raw} should be valid"
            continue
        given = {name: read[name] for name in read if name in raw}
        if is_valid and given != raw:
            yield f"{raw} should not become {given}"
        if not is_valid and not (is_reading_of(raw, given) and given != raw):
            yield f"{raw} should not be valid"


@pytest.mark.requirement("B13", "B23", "D7", "F8")
@pytest.mark.parametrize("way", ["property", "whole"])
def test_the_verdicts_of_the_standards_own_suite_are_ours(data: Callable[[str], Path], way: str) -> None:
    refused: list[tuple[str, str]] = []
    judged, wrong = 0, []
    for group in groups(data):
        schema = group["schema"]
        cases = [(one["data"], one["valid"]) for one in group["tests"]]
        if way == "property":
            schema, cases = as_property(schema), [({"value": value}, is_valid) for value, is_valid in cases]
        elif not may_be_parameters(schema):
            continue
        objects = [(raw, is_valid) for raw, is_valid in cases if isinstance(raw, dict)]
        try:
            wrong += [(group["description"], one) for one in differing(schema, objects)]
        except UnusableSchema as error:
            refused.append((group["description"], str(error)))
            continue
        judged += len(objects)
    assert wrong == []
    assert refused == []
    assert judged > (880 if way == "property" else 250)


def test_what_a_model_is_told_of_any_schema_is_taken_by_every_provider(data: Callable[[str], Path]) -> None:
    tried = 0
    for group in groups(data):
        for schema in (group["schema"], as_property(group["schema"])):
            if not may_be_parameters(schema):
                with pytest.raises(UnusableSchema, match="parameters must "):
                    imported(schema)
                continue
            ours = imported(schema)
            tried += 1
            assert imported(ours) == ours
            shown = schema_for_model(ours)
            jsonschema.Draft7Validator.check_schema(shown, format_checker=None)
            jsonschema.Draft202012Validator.check_schema(shown, format_checker=None)
            assert shown["type"] == "object"
            assert not shown.keys() & {"anyOf", "oneOf", "allOf", "enum", "not", "$defs", "$schema"}
            assert imported(shown) == shown
            # All parsers of specs accept this one.
            spec = new_spec("act", print, "Acts.", parameters=ours, commands=["act"])
            functions = BotFunctions([spec])
            assert functions.offer([spec]).functions[0].parameters == shown
            assert usage_line(spec).startswith("/act")
    assert tried > 450


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 2},
        {"type": "integer", "minimum": 0},
        {"type": "number", "exclusiveMaximum": 3},
        {"type": "boolean"},
        {"type": ["integer", "null"]},
        {"type": "null"},
        {"const": None},
        {"enum": ["x", 1, None, [1]]},
        {"$ref": "#/definitions/tree"},
        {"$ref": "#/definitions/few", "maxItems": 1, "description": "only a remark counts here"},
        True,
        False,
        {},
    ]
)
COMPOSED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda one, two: {"items": [one], "additionalItems": two}, inner, inner),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"oneOf": [one, two]}, inner, inner),
        st.builds(lambda one, two: {"allOf": [one, two]}, inner, inner),
        st.builds(lambda one: {"not": one}, inner),
        st.builds(lambda one, two: {"if": one, "then": two}, inner, inner),
        st.builds(
            lambda named, required, more: {
                "type": "object",
                "properties": named,
                "required": sorted(required),
                "additionalProperties": more,
            },
            st.dictionaries(NAMES, inner, max_size=2),
            st.sets(NAMES, max_size=1),
            inner,
        ),
    ),
    max_leaves=5,
)
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -1, 2.5, "", "x", "xy", "1", "true", "[1]"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
DEFINITIONS = {
    "tree": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/definitions/tree"}}},
    "few": {"type": "array", "maxItems": 2},
}


def in_the_latest_draft(node: Any) -> Any:
    """The same schema in draft 2020-12."""
    if isinstance(node, list):
        return [in_the_latest_draft(one) for one in node]
    if not isinstance(node, dict):
        return node.replace("/definitions/", "/$defs/") if isinstance(node, str) else node
    if isinstance(node.get("items"), list):
        node = {"prefixItems": node["items"], "items": node["additionalItems"]}
    return {"$defs" if key == "definitions" else key: in_the_latest_draft(value) for key, value in node.items()}


@settings(max_examples=300)
@given(st.dictionaries(NAMES, COMPOSED, max_size=2), st.dictionaries(NAMES, VALUES, max_size=3), st.booleans())
def test_any_schema_judges_as_the_reference_does(properties: dict[str, Any], raw: dict[str, Any], latest: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "definitions": DEFINITIONS}
    if latest:
        schema = in_the_latest_draft(schema)
    reference = (jsonschema.Draft202012Validator if latest else jsonschema.Draft7Validator)(schema)
    ours = imported(schema)
    assert imported(ours) == ours
    parser = SchemaArguments(ours)
    try:
        read = parser.parse(raw)
    except ArgumentError:
        assert not reference.is_valid(raw)
        return
    assert reference.is_valid(read)
    if reference.is_valid(raw):
        assert read == raw
    else:
        assert is_reading_of(raw, read)
    assert parser.parse(parser.dump(read)) == read


# -- recursion


@pytest.mark.requirement("D20", "E24")
def test_a_schema_that_refers_to_itself_is_checked_at_every_depth() -> None:
    assert accepts(TREE, {"root": {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}})
    assert not accepts(TREE, {"root": {"value": 1, "children": [{"value": 2, "children": [{"other": 3}]}]}})
    assert not accepts(TREE, {"root": {"value": 1, "children": [{"value": 2, "children": [{"children": []}]}]}})


def test_text_for_a_number_is_read_at_every_depth() -> None:
    parser = SchemaArguments(imported(TREE))
    raw = {"root": {"value": "1", "children": [{"value": "2", "children": '[{"value": "3"}]'}]}}
    assert parser.parse(raw) == {"root": {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}}


def test_a_value_without_end_is_a_fault() -> None:
    deep: dict[str, Any] = {"value": 1}
    for _ in range(5000):
        deep = {"value": 1, "children": [deep]}
    assert not accepts(TREE, {"root": deep})


def test_a_model_is_told_in_words_where_a_schema_begins_anew() -> None:
    shown = schema_for_model(imported(TREE))
    node = shown["properties"]["root"]
    assert node["properties"]["value"] == {"type": "integer"}
    assert node["properties"]["children"]["items"] == {
        "type": "object",
        "description": "A node; of the same form as the node around it, with value, children",
    }


@pytest.mark.parametrize("place", ["$defs", "definitions"])
def test_parameters_that_refer_to_themselves_as_a_whole_keep_their_properties(place: str) -> None:
    node = {
        "type": "object",
        "description": "A folder.",
        "properties": {"name": {"type": "string"}, "inner": {"$ref": f"#/{place}/folder"}},
        "required": ["name"],
    }
    schema = {"$ref": f"#/{place}/folder", place: {"folder": node}}
    ours = imported(schema)
    assert imported(ours) == ours
    assert list(schema_for_model(ours)["properties"]) == ["name", "inner"]
    assert usage_line(new_spec("act", print, "Acts.", parameters=schema, commands=["act"])) == "/act <name> [inner]"
    assert accepts(schema, {"name": "a", "inner": {"name": "b", "inner": {"name": "c"}}})
    assert not accepts(schema, {"name": "a", "inner": {"name": "b", "inner": {}}})
    assert not accepts(schema, {"inner": {"name": "b"}})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a": {"anyOf": [{"not": {"$ref": "#/$defs/a"}}]}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_is_only_itself_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="refers to itself without end"):
        schema_arguments("act", schema)


def test_two_schemas_that_refer_to_each_other_are_checked_and_keep_their_names() -> None:
    schema = {
        "properties": {"folder": {"$ref": "#/$defs/folder"}},
        "$defs": {
            "folder": {"type": "object", "properties": {"files": {"type": "array", "items": {"$ref": "#/$defs/file"}}}},
            "file": {"type": "object", "properties": {"in": {"$ref": "#/$defs/folder"}, "size": {"type": "integer"}}},
        },
    }
    assert list(imported(schema)["$defs"]) == ["folder"]
    assert accepts(schema, {"folder": {"files": [{"in": {"files": [{"size": 1}]}}]}})
    assert not accepts(schema, {"folder": {"files": [{"in": {"files": [{"size": "big"}]}}]}})
    again = imported(imported(schema))
    assert again == imported(schema)


# -- drafts


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["7", 1], ["7", "x"]),
        ({"items": [{"type": "string"}], "additionalItems": False}, ["7"], ["7", 1]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        ({"contains": {"type": "integer"}, "minContains": 2}, [1, 2], [1, "x"]),
        ({"minimum": 5, "exclusiveMinimum": True}, 6, 5),
        ({"minimum": 5, "exclusiveMinimum": False}, 5, 4),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"b": 1}, {"a": 1}),
        ({"propertyNames": {"maxLength": 2}}, {"ab": 1}, {"abc": 1}),
        ({"type": ["array", "null"], "items": {"type": ["boolean", "null"]}}, [None, True], [1]),
        ({"pattern": r"^[\w-.]+@\w+$"}, "a-b.c@d", "a b@d"),
        ({"pattern": r"\A(?P<year>\d{4})\Z"}, "2026", "x2026"),
        ({"pattern": "^\\p{Letter}+$"}, "π", "1"),
        ({"const": None}, None, 0),
        ({"enum": [None, 1]}, None, True),
        ({"enum": ["a", "a"]}, "a", "b"),
        ({"type": "integer", "maximum": 12345678901234567890}, 12345678901234567890, 12345678901234567891),
        ({"type": "object", "properties": {"a": {"type": "string", "required": True}}}, {"a": "x"}, {}),
        (True, 1, None),
        ({}, None, None),
    ],
)
def test_every_draft_means_what_it_says(schema: Any, valid: Any, invalid: Any) -> None:
    whole = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    assert accepts(whole, {"value": valid})
    if invalid is not None:
        assert not accepts(whole, {"value": invalid})
    jsonschema.Draft202012Validator.check_schema(schema_for_model(imported(whole)), format_checker=None)


def test_what_stands_beside_a_reference_counts_as_its_draft_says() -> None:
    beside = {"$ref": "#/{}/few", "maxItems": 2, "items": {"type": "integer"}}
    few = {"type": "array", "maxItems": 5}

    def schema(where: str, **more: Any) -> dict[str, Any]:
        node = {**beside, "$ref": f"#/{where}/few"}
        return {"properties": {"value": node}, where: {"few": few}, **more}

    assert accepts(schema("definitions"), {"value": ["a", "b", "c"]})
    assert not accepts(schema("definitions"), {"value": [1] * 6})
    for later in (
        schema("$defs"),
        schema("definitions", **{"$schema": "https://json-schema.org/draft/2020-12/schema"}),
    ):
        assert accepts(later, {"value": [1, 2]})
        assert not accepts(later, {"value": [1, 2, 3]})
        assert not accepts(later, {"value": ["a"]})


def test_words_that_are_no_words_of_json_schema_stay_as_they_are() -> None:
    ui = {"type": "slider", "enum": "none"}
    assert imported({"properties": {"n": {"type": "integer", "ui": ui}}})["properties"]["n"]["ui"] == ui


# -- defaults and nulls


@pytest.mark.requirement("E21")
def test_a_default_that_does_not_fit_its_own_schema_is_not_filled_in() -> None:
    wrong = {
        "n": {"type": "integer", "default": "many"},
        "text": {"type": "string", "minLength": 4, "default": "bad"},
        "none": {"type": "string", "default": None},
        "read": {"type": "integer", "default": "5"},
    }
    assert SchemaArguments(imported({"properties": wrong})).parse({}) == {"read": 5}


@pytest.mark.requirement("E20", "E21")
def test_a_required_argument_with_a_default_need_not_be_given() -> None:
    schema = {"properties": {"n": {"type": "integer", "default": 5}}, "required": ["n"]}
    assert SchemaArguments(imported(schema)).parse({}) == {"n": 5}


def test_defaults_that_exclude_what_was_given_stay_away() -> None:
    schema = {
        "properties": {"day": {"type": "string"}, "hour": {"type": "integer", "default": 9}},
        "oneOf": [{"required": ["day"]}, {"required": ["hour"]}],
    }
    parser = SchemaArguments(imported(schema))
    assert parser.parse({"day": "Monday"}) == {"day": "Monday"}
    assert parser.parse({}) == {"hour": 9}
    with pytest.raises(ArgumentError):
        parser.parse({"day": "Monday", "hour": 9})


def test_null_is_kept_where_it_may_be_meant() -> None:
    schema = {
        "properties": {
            "text": {"type": "string"},
            "anything": {},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        }
    }
    given = {"text": None, "anything": None, "either": None}
    assert SchemaArguments(imported(schema)).parse(given) == {"anything": None, "either": None}


def test_text_is_read_where_one_alternative_is_null() -> None:
    schema = {
        "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "m": {"allOf": [{"type": "integer"}]}}
    }
    assert SchemaArguments(imported(schema)).parse({"n": "3", "m": "4"}) == {"n": 3, "m": 4}


# -- descriptions for a model


def test_what_concerns_the_parameters_together_is_told_in_words() -> None:
    schema = {
        "properties": {"id": {"type": "integer"}},
        "allOf": [{"properties": {"note": {"type": "string"}}, "required": ["note"]}],
        "anyOf": [{"required": ["id"]}, {"properties": {"name": {"type": "string"}}, "required": ["name"]}],
    }
    shown = schema_for_model(imported(schema))
    assert list(shown["properties"]) == ["id", "note", "name"]
    assert shown["required"] == ["note"]
    assert shown["description"].startswith('Together the arguments must also fit this JSON Schema: {"anyOf":')
    assert not accepts(schema, {"note": "x"})
    assert accepts(schema, {"note": "x", "name": "y"})


def test_a_tuple_is_told_as_an_array_with_its_order_in_words() -> None:
    pair = {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "description": "Amount and unit."}
    shown = schema_for_model(imported({"properties": {"pair": pair}}))["properties"]["pair"]
    assert shown["items"] == {"anyOf": [{"type": "number"}, {"type": "string"}]}
    assert shown["description"] == (
        'Amount and unit; the items are, in this order: [{"type":"number"},{"type":"string"}]'
    )


def test_a_plain_schema_is_told_as_it_is() -> None:
    schema = imported({"properties": {"a": {"type": "array", "items": {"type": "string"}}}})
    assert schema_for_model(schema) is schema


# -- the metaschema


@pytest.mark.requirement("D20", "F8")
@pytest.mark.parametrize(
    ("schema", "draft"),
    [
        ({"properties": {"form": {"$ref": "http://json-schema.org/draft-07/schema#"}}}, "draft 7"),
        ({"properties": {"form": {"$ref": "https://json-schema.org/draft-07/schema"}}}, "draft 7"),
        ({"properties": {"form": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}, "draft 2020-12"),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "properties": {"form": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
            },
            "draft 2020-12",
        ),
    ],
)
def test_an_argument_may_be_a_schema_itself(schema: dict[str, Any], draft: str) -> None:
    assert accepts(schema, {"form": {"properties": {"size": {"minLength": 1}}}})
    assert not accepts(schema, {"form": {"properties": {"size": {"minLength": "one"}}}})
    ours = imported(schema)
    assert imported(ours) == ours
    assert schema_for_model(ours)["properties"]["form"] == {"type": "object", "description": f"A JSON Schema ({draft})"}


def test_arguments_may_be_a_schema_as_a_whole() -> None:
    schema = {"$ref": "http://json-schema.org/draft-07/schema#"}
    assert accepts(schema, {"minLength": 1})
    assert not accepts(schema, {"minLength": "one"})
    assert "A JSON Schema (draft 7)" in schema_for_model(imported(schema))["description"]


def test_a_part_of_the_schema_of_schemas_may_be_meant() -> None:
    count = {"$ref": "http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}
    schema = {"properties": {"count": {**count, "description": "How many"}}}
    assert accepts(schema, {"count": 1})
    assert not accepts(schema, {"count": -1})
    assert schema_for_model(imported(schema))["properties"]["count"]["description"] == (
        "How many; what /definitions/nonNegativeInteger says in the schema of JSON Schema draft 7"
    )


def test_a_schema_of_ones_own_goes_before_that_of_the_draft() -> None:
    own = {"$id": "http://json-schema.org/draft-07/schema", "type": "integer"}
    schema = {"definitions": {"own": own}, "properties": {"form": {"$ref": "http://json-schema.org/draft-07/schema#"}}}
    assert imported(schema)["properties"]["form"] == {"type": "integer"}


# -- errors with path and reason


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"a": {"pattern": "(?=x)y"}}}, r"properties\.a\.pattern: .*look-around"),
        ({"properties": {"a": {"minimum": "one"}}}, r'properties\.a\.minimum: "one" is not of type "number"'),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "http://json-schema.org/draft-04/schema#"}}}, "nothing is fetched"),
        (
            {"properties": {"a": {"$ref": "http://json-schema.org/draft-07/schema#/nowhere"}}},
            "'/nowhere' does not exist",
        ),
        ({"properties": {"a": {"type": "blob"}}}, "unknown type 'blob'"),
        ({"properties": {"a": "string"}}, r"properties\.a: .*is not of types"),
        ({"type": "string"}, "type object"),
        (True, "must be a JSON Schema object, not bool"),
    ],
)
def test_a_refusal_names_the_place_and_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason) as caught:
        schema_arguments("act", schema)
    assert "\n" not in str(caught.value)
