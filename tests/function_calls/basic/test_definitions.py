"""Definitions of script tools for models, and messages to their authors."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.basic.codes import Code, Profile, ScriptProblem
from function_calls.basic.compiler import ParamDecl, ToolDefinition, definitions_of
from function_calls.basic.language.param_types import type_names
from function_calls.basic.nodes import At
from function_calls.schema.arguments import SchemaArguments
from function_calls.schema.definition import schema_arguments
from function_calls.schema.model_schema import schema_for_model
from function_calls.schema.schema import imported
from function_calls.spec import ArgumentError
from services.llm.encoding import strict_schema
from tests.function_calls.basic.small_reader import small_script

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "basic"
STRICT, EXTENDED = Profile.STRICT, Profile.EXTENDED
HEAD = 'DESCRIPTION "Does a thing"\n'


def read(
    text: str, name: str = "a_tool.bas", profile: Profile = EXTENDED
) -> tuple[list[ToolDefinition], list[ScriptProblem]]:
    return definitions_of(small_script(text), name, profile, source_file=name)


def only(text: str, name: str = "a_tool.bas", profile: Profile = EXTENDED) -> ToolDefinition:
    """The definition in a valid script."""
    definitions, faults = read(text, name, profile)
    assert faults == []
    assert len(definitions) == 1
    return definitions[0]


def property_of(written: str) -> dict[str, Any]:
    schema: dict[str, Any] = only(f'{HEAD}PARAM it {written} DESCRIPTION "d"').schema()["properties"]["it"]
    return schema


def faults(text: str, profile: Profile = EXTENDED, name: str = "a_tool.bas") -> list[tuple[int, Code, str]]:
    return [(one.at.line, one.code, one.severity) for one in read(text, name, profile)[1]]


def fault(text: str, profile: Profile = EXTENDED, name: str = "a_tool.bas") -> ScriptProblem:
    found = read(text, name, profile)[1]
    assert len(found) == 1, found
    return found[0]


# -- the two documented examples


def without_examples(definition: dict[str, Any]) -> dict[str, Any]:
    copy = deepcopy(definition)
    for one in (copy.get("input_schema") or copy["parameters"])["properties"].values():
        one.pop("example", None)
    return copy


@pytest.mark.requirement("A4", "A19", "A20", "A21", "A27", "A28", "B2", "B3", "B4", "B8", "F2", "F3")
@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("name", ["user_registration", "process_order"])
def test_both_forms_are_as_their_golden_files_show(name: str, profile: Profile) -> None:
    definition = only((GOLDEN / f"{name}.bas").read_text(encoding="utf-8"), f"{name}.bas", profile)
    for form, made in (("mcp", definition.mcp()), ("tool", definition.openai())):
        golden = json.loads((GOLDEN / f"{name}.{form}.json").read_text(encoding="utf-8"))
        shows_examples = name == "process_order"
        assert json.dumps(made if shows_examples else without_examples(made)) == json.dumps(golden)


@pytest.mark.requirement("F2", "B8", "A15")
def test_an_example_is_told_where_the_author_gave_one_and_keeps_its_type() -> None:
    definition = only((GOLDEN / "user_registration.bas").read_text(encoding="utf-8"), "user_registration.bas")
    assert [one.get("example") for one in definition.schema()["properties"].values()] == ["John Smith", 25]
    assert "example" not in property_of("AS string")


# -- types


@pytest.mark.requirement("B6")
@pytest.mark.parametrize("kind", ["string", "number", "boolean"])
def test_the_three_types_of_the_language_are_those_of_json_schema(kind: str) -> None:
    text = f'{HEAD}PARAM it AS {kind} DESCRIPTION "d"'
    for profile in Profile:
        assert only(text, profile=profile).schema()["properties"] == {"it": {"type": kind, "description": "d"}}


@pytest.mark.requirement("A59")
@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("text", {"type": "string"}),
        ("integer", {"type": "integer"}),
        ("INT", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("money", {"type": "number"}),
        ("percent", {"type": "number"}),
        ("date", {"type": "string", "format": "date"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("email", {"type": "string", "format": "email"}),
        ("name", {"type": "string"}),
        ("object", {"type": "object"}),
        ("array", {"type": "array", "items": {}}),
        ("list", {"type": "array", "items": {}}),
        ("any", {}),
    ],
)
def test_other_types_say_what_a_small_model_can_fill(kind: str, schema: dict[str, Any]) -> None:
    assert property_of(f"AS {kind}") == {**schema, "description": "d"}


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("number", [1, 2.5, "3"], ["abc", True]),
        ("integer", [1, "3", 2.0], [2.5, "x"]),
        ("boolean", [True, "yes"], ["maybe", 3]),
        ("date", ["2026-01-31"], ["31/01/2026", "2026-02-30", "tomorrow"]),
        ("time", ["14:30", "7:05:59"], ["25:00", "14.30", "noon"]),
        ("hour", ["09:00"], ["9", "99:99"]),
        ("datetime", ["2026-01-31T14:30", "2026-01-31T14:30:00Z"], ["2026-01-31", "soon"]),
        ("email", ["ann@example.com"], ["ann", "ann@"]),
        ("phone", ["+1-555-123-4567", "(11) 99999-9999", "110"], ["call me", "x1"]),
        ("url", ["https://example.com/a?b=c", "http://localhost:8080", "https://zh.example/北京"], ["example", "a b"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123"]),
        ("zipcode", ["10115", "SW1A 1AA", "01310-100"], ["x", "!!!"]),
        ("cpf", ["123.456.789-09", "12345678909"], ["1"]),
        ("cnpj", ["12.345.678/0001-95"], ["1"]),
        ("object", [{"a": 1}, '{"a": 1}'], ["x", [1]]),
        ("array", [[1], "[1]"], ["x", {"a": 1}]),
        ("any", [1, "x", [1], {"a": None}], []),
        ("color", ["red", "#ff0000"], [5]),
    ],
)
def test_arguments_are_held_to_the_type(kind: str, good: list[Any], bad: list[Any]) -> None:
    definition = only(f'{HEAD}PARAM it AS {kind} DESCRIPTION "d"')
    _, arguments = schema_arguments("a_tool", definition.schema())
    for value in good:
        arguments.parse({"it": value})
    for value in bad:
        with pytest.raises(ArgumentError):
            arguments.parse({"it": value})


@pytest.mark.parametrize("kind", type_names())
def test_what_is_wanted_of_a_type_is_shown_by_an_example_that_fits_it(kind: str) -> None:
    """The example in the hint must be valid."""
    found = (
        fault(f'{HEAD}PARAM it AS {kind} LIKE [[1]] DESCRIPTION "d"') if kind not in ("any", "array", "list") else None
    )
    if found is None or " such as " not in found.message:
        return
    shown = found.message.split(" such as ")[1].split(";")[0].split(", without")[0]
    quoted = shown if shown.startswith("{") else f'"{shown}"'
    assert property_of(f"AS {kind} LIKE {quoted}")["example"] is not None


@pytest.mark.requirement("A38", "A40", "B29")
def test_an_unknown_type_is_named_with_its_place_and_what_there_is() -> None:
    found = fault(f'{HEAD}PARAM it AS blob LIKE "x" DESCRIPTION "d"')
    assert (found.code, found.at, found.severity) == (Code.BAD_TYPE, At(2, 13), "error")
    assert "`blob` is not an allowed type" in found.message
    assert "Allowed types: string, number, boolean, text, integer" in found.message
    assert "did you mean `date`?" in fault(f'{HEAD}PARAM it AS datte DESCRIPTION "d"').message


@pytest.mark.requirement("A59", "A61", "A62", "B26")
@pytest.mark.parametrize("kind", ["integer", "date", "object", "array", "email", "blob"])
def test_the_strict_profile_has_three_types(kind: str) -> None:
    found = fault(f'{HEAD}PARAM it AS {kind} DESCRIPTION "d"', STRICT)
    assert (found.code, found.at.line, found.severity) == (Code.BAD_TYPE, 2, "error")
    assert f"`{kind}`" in found.message
    assert found.message.endswith("Allowed types: string, number, boolean")


def test_a_parameter_without_a_type_is_a_text_and_needs_one_in_the_strict_profile() -> None:
    assert property_of("") == {"type": "string", "description": "d"}
    assert fault(f'{HEAD}PARAM it DESCRIPTION "d"', STRICT).code is Code.BAD_PARAM


# -- choices, defaults, optional parameters


@pytest.mark.requirement("B26")
@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ('AS "easy", "hard"', {"type": "string", "enum": ["easy", "hard"]}),
        ('AS string ENUM ["a", "b", "a"]', {"type": "string", "enum": ["a", "b"]}),
        ("AS integer ENUM 1, 2", {"type": "integer", "enum": [1, 2]}),
        ("AS number ENUM 1, 2.5", {"type": "number", "enum": [1, 2.5]}),
        ("ENUM 1, 2.5", {"type": "number", "enum": [1, 2.5]}),
        ("ENUM 1, true", {"enum": [1, True]}),
        ('AS "easy", "hard" LIKE "Hard" DEFAULT "EASY"', {"type": "string", "enum": ["easy", "hard"]}),
    ],
)
def test_choices_become_an_enum_of_their_type(written: str, schema: dict[str, Any]) -> None:
    made = property_of(written)
    assert {key: made[key] for key in made if key in ("type", "enum")} == schema
    assert made.get("default", "easy") == "easy"
    assert made.get("example", "hard") == "hard"


@pytest.mark.requirement("A18", "B16", "F1", "E20")
def test_optional_parameters_and_those_with_a_default_are_not_required() -> None:
    definition = only(
        f'{HEAD}PARAM first AS string DESCRIPTION "d"\nPARAM second AS string OPTIONAL DESCRIPTION "d"\n'
        'PARAM third AS integer DEFAULT 5 DESCRIPTION "d"\nPARAM fourth AS string DEFAULT NULL DESCRIPTION "d"\n'
        'PARAM fifth AS number REQUIRED DESCRIPTION "d"'
    )
    schema = definition.schema()
    assert schema["required"] == ["first", "fifth"]
    assert schema["properties"]["third"]["default"] == 5
    assert "default" not in schema["properties"]["fourth"]
    assert [one.default for one in definition.parameters] == [None, None, 5, None, None]
    assert SchemaArguments(imported(schema)).parse({"first": "a", "fifth": 1, "second": None}) == {
        "first": "a",
        "fifth": 1,
        "third": 5,
    }


@pytest.mark.requirement("A60", "B26")
@pytest.mark.parametrize("clause", ["OPTIONAL", 'DEFAULT "a"', 'ENUM "a", "b"'])
def test_the_strict_profile_requires_every_parameter_and_leaves_its_value_free(clause: str) -> None:
    found = fault(f'{HEAD}PARAM it AS string {clause} DESCRIPTION "d"', STRICT)
    assert (found.code, found.at.line, found.severity) == (Code.NOT_IN_STRICT, 2, "error")


@pytest.mark.parametrize(
    ("written", "severity", "told"),
    [
        ('AS number DEFAULT "abc"', "error", "the DEFAULT `abc` must be a number such as 9.99"),
        ('AS date DEFAULT "tomorrow"', "error", "the DEFAULT `tomorrow` must be a date such as 2026-01-31"),
        ('AS "a", "b" DEFAULT "c"', "error", "the DEFAULT `c` must be one of a, b"),
        ('AS integer ENUM 1, "two"', "error", "the choice `two` must be a whole number such as 3"),
        ('AS number LIKE "abc"', "warning", "the example after LIKE `abc` must be a number"),
        ('AS integer LIKE "many"', "warning", "it is not shown to models"),
        ('AS "a", "b" LIKE "c"', "warning", "must be one of a, b"),
    ],
)
def test_values_that_do_not_fit_the_type_are_faults(written: str, severity: str, told: str) -> None:
    definitions, found = read(f'{HEAD}PARAM it {written} DESCRIPTION "d"')
    assert [(one.code, one.severity, one.at.line) for one in found] == [(Code.BAD_PARAM, severity, 2)]
    assert told in found[0].message
    assert bool(definitions) is (severity == "warning")
    for definition in definitions:
        assert "example" not in definition.schema()["properties"]["it"]


def test_in_the_strict_profile_a_wrong_example_is_an_error() -> None:
    found = fault(f'{HEAD}PARAM it AS number LIKE "abc" DESCRIPTION "d"', STRICT)
    assert (found.code, found.severity) == (Code.BAD_PARAM, "error")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("object", "{po_number: 'PO-1', qty: 2}", {"po_number": "PO-1", "qty": 2}),
        ("object", "{}", {}),
        ("array", "[{id: 1}, {'id': 2}]", [{"id": 1}, {"id": 2}]),
        ("list", "['a', 'b']", ["a", "b"]),
    ],
)
def test_a_map_or_list_may_be_written_within_quotes(kind: str, text: str, value: object) -> None:
    assert property_of(f'AS {kind} LIKE "{text}"')["example"] == value


# -- names


@pytest.mark.requirement("B28")
def test_a_parameter_is_called_as_models_can_write_it() -> None:
    assert fault(f'{HEAD}PARAM 名称 AS string DESCRIPTION "d"').code is Code.BAD_NAME
    assert fault(f'{HEAD}PARAM {"a" * 65} AS string DESCRIPTION "d"').code is Code.BAD_NAME
    assert "reserved word" in fault(f'{HEAD}PARAM mod AS string DESCRIPTION "d"').message


def test_a_name_is_taken_once_whatever_its_case() -> None:
    found = fault(f'{HEAD}PARAM city AS string DESCRIPTION "d"\nPARAM City AS string DESCRIPTION "d"')
    assert (found.code, found.at.line, found.severity) == (Code.DUPLICATE_NAME, 3, "error")
    assert "on line 2" in found.message


@pytest.mark.requirement("A19")
@pytest.mark.parametrize(
    ("file", "name"),
    [("user_registration.bas", "user_registration"), ("shop.gbdialog/get-price.BAS", "get-price"), ("W2", "W2")],
)
def test_a_tool_is_called_as_its_file(file: str, name: str) -> None:
    assert only(HEAD, file).name == name


@pytest.mark.requirement("A19")
def test_a_files_name_that_providers_refuse_is_made_one_that_they_take_and_told() -> None:
    definitions, found = read(HEAD, "my tool (new).bas")
    assert [one.name for one in definitions] == ["my_tool_new"]
    assert [(one.code, one.severity) for one in found] == [(Code.BAD_NAME, "warning")]
    strict = fault(HEAD, STRICT, "my tool.bas")
    assert (strict.code, strict.severity) == (Code.BAD_NAME, "error")
    assert "use `my_tool`" in strict.message


def test_a_name_in_another_script_is_kept_with_a_word_on_what_models_see() -> None:
    definitions, found = read(HEAD, "注册.bas")
    assert [one.name for one in definitions] == ["注册"]
    assert [(one.code, one.severity) for one in found] == [(Code.BAD_NAME, "warning")]
    assert "generated name" in found[0].message


@pytest.mark.parametrize("file", ["!!!.bas", f"{'a' * 65}.bas", ".bas"])
def test_a_files_name_of_which_no_tool_can_be_called_is_an_error(file: str) -> None:
    definitions, found = read(HEAD, file)
    assert definitions == []
    assert [(one.code, one.severity) for one in found] == [(Code.BAD_NAME, "error")]


# -- descriptions


@pytest.mark.requirement("A40", "A53", "B30", "F9")
@pytest.mark.parametrize("line", ["", 'DESCRIPTION ""', 'DESCRIPTION "  "'])
def test_a_tool_without_description_is_an_error_in_the_strict_profile_alone(line: str) -> None:
    text = f'PARAM city AS string DESCRIPTION "d"\n{line}'
    found = fault(text, STRICT)
    assert (found.code, found.severity, found.at.line) == (Code.MISSING_DESCRIPTION, "error", 2 if line else 1)
    definitions, lenient = read(text, "get-price.bas")
    assert [(one.code, one.severity) for one in lenient] == [(Code.MISSING_DESCRIPTION, "warning")]
    assert definitions[0].description == "Get price"


@pytest.mark.requirement("F9")
def test_a_missing_description_is_taken_from_the_comment_above() -> None:
    text = "# ==========\n# --- Weather ---\n# Tells how warm it is\nTALK 1"
    assert read(text)[0][0].description == "Weather Tells how warm it is"
    long = read(f"# {'word ' * 200}\nTALK 1")[0][0].description
    assert len(long) <= 302
    assert long.endswith("word …")


@pytest.mark.requirement("B30", "A53")
def test_a_parameter_without_description_is_an_error_in_the_strict_profile_alone() -> None:
    text = f"{HEAD}PARAM city AS string"
    assert faults(text, STRICT) == [(2, Code.MISSING_PARAM_DESCRIPTION, "error")]
    assert faults(text) == [(2, Code.MISSING_PARAM_DESCRIPTION, "warning")]
    assert "description" not in read(text)[0][0].schema()["properties"]["city"]


def test_one_text_behind_as_is_told_as_the_description_with_a_warning() -> None:
    definitions, found = read(f'{HEAD}PARAM place AS "The city and its state"')
    assert definitions[0].schema()["properties"]["place"] == {"type": "string", "description": "The city and its state"}
    assert [(one.code, one.severity) for one in found] == [(Code.BAD_PARAM, "warning")]


# -- units, sessions, places


@pytest.mark.requirement("A58")
def test_a_late_param_is_an_error_in_the_strict_profile_alone() -> None:
    text = f'{HEAD}TALK 1\nPARAM city AS string DESCRIPTION "d"'
    assert faults(text, STRICT) == [(3, Code.LATE_PARAM, "error")]
    assert faults(text) == [(3, Code.LATE_PARAM, "warning")]
    assert "line 2" in fault(text).message


def test_a_script_without_params_is_a_tool_without_parameters() -> None:
    assert only(f"{HEAD}TALK 1").schema() == {"type": "object", "properties": {}, "required": []}


SEVERAL = """DESCRIPTION "Get a joke of the day"
RETURN 1
PARAM city AS string DESCRIPTION "d"
DESCRIPTION "Get the weather of a city"
RETURN city
DESCRIPTION "笑话"
RETURN 2
"""


def test_several_tools_of_a_file_are_called_by_it_and_what_they_do() -> None:
    definitions, found = read(SEVERAL, "apis.bas")
    assert found == []
    assert [one.name for one in definitions] == ["apis_get_joke_day", "apis_get_weather_city", "apis_3"]
    assert [(one.unit, one.line) for one in definitions] == [(0, 1), (1, 3), (2, 6)]
    assert [len(one.parameters) for one in definitions] == [0, 1, 0]
    assert read(SEVERAL.split("RETURN 1\n")[1], "apis.bas")[0][0].name == "apis_get_weather_city"


def test_a_file_may_name_its_tools_where_it_has_several() -> None:
    script = small_script(SEVERAL)
    named = replace(script, units=tuple(replace(unit, name=f"tool_{n}") for n, unit in enumerate(script.units)))
    assert [one.name for one in definitions_of(named, "apis.bas")[0]] == ["tool_0", "tool_1", "tool_2"]
    alone = replace(named, units=named.units[:1])
    assert [one.name for one in definitions_of(alone, "apis.bas")[0]] == ["apis"]


@pytest.mark.requirement("B31")
def test_a_name_that_a_file_gives_twice_is_an_error_that_names_both_places() -> None:
    script = small_script(SEVERAL)
    same = replace(script, units=tuple(replace(unit, name="Same") for unit in script.units[:2]))
    definitions, found = definitions_of(same, "apis.bas")
    assert [one.unit for one in definitions] == [0]
    assert [(one.code, one.at.line, one.severity) for one in found] == [(Code.DUPLICATE_TOOL, 3, "error")]
    assert "already defined on line 1" in found[0].message


def test_tools_of_a_file_that_do_the_same_have_names_of_their_own() -> None:
    definitions, _ = read('DESCRIPTION "A joke"\nRETURN 1\nDESCRIPTION "The joke"\nRETURN 2', "apis.bas")
    assert [one.name for one in definitions] == ["apis_joke", "apis_2"]


def test_a_wrong_tool_of_a_file_leaves_the_others() -> None:
    definitions, found = read(SEVERAL.replace("AS string", "AS strin"), "apis.bas")
    assert [one.unit for one in definitions] == [0, 2]
    assert [one.code for one in found] == [Code.BAD_TYPE]


def test_the_strict_profile_has_one_tool_in_a_file() -> None:
    assert (3, Code.NOT_IN_STRICT, "error") in faults(SEVERAL, STRICT)


@pytest.mark.parametrize("profile", list(Profile))
def test_the_script_that_begins_a_conversation_is_marked_and_needs_no_description(profile: Profile) -> None:
    assert only('TALK "Hi"', "Start.bas", profile).metadata == {"session": True}
    assert only(HEAD).metadata == {}


@pytest.mark.requirement("A3", "A22", "A25")
def test_a_definition_knows_where_it_comes_from() -> None:
    script = small_script(f'# About\n{HEAD}\nPARAM city AS string DESCRIPTION "d"')
    definition = definitions_of(script, "x.bas", bot="shop", source_file="shop.gbai/shop.gbdialog/x.bas")[0][0]
    assert (definition.bot, definition.source_file) == ("shop", "shop.gbai/shop.gbdialog/x.bas")
    assert [(one.name, one.line) for one in definition.parameters] == [("city", 4)]


def test_faults_come_in_the_order_of_their_places() -> None:
    found = read("PARAM x AS blob\nTALK 1\nPARAM x AS date DEFAULT 5", "my tool.bas")[1]
    assert [one.at for one in found] == sorted(one.at for one in found)


# -- use of the schema


KINDS = st.sampled_from(type_names())
CLAUSES = st.sampled_from(
    [
        "",
        "OPTIONAL",
        'LIKE "2026-01-31"',
        "LIKE 5",
        "LIKE true",
        "DEFAULT 3",
        'DEFAULT "x"',
        "ENUM 1, 2",
        'ENUM "a", "b"',
    ]
)
NAMES = st.from_regex(r"[a-z]{3,8}_", fullmatch=True)
PARAMS = st.lists(st.tuples(NAMES, KINDS, CLAUSES, st.booleans()), max_size=4, unique_by=lambda param: param[0])


def written(params: list[tuple[str, str, str, bool]]) -> str:
    lines = [
        f"PARAM {name} AS {kind} {clause}" + (' DESCRIPTION "d"' if described else "")
        for name, kind, clause, described in params
    ]
    return "\n".join([*lines, HEAD])


@pytest.mark.requirement("B7", "B21", "A23")
@given(PARAMS)
def test_every_schema_is_valid_is_kept_by_the_house_and_survives_its_storage(
    params: list[tuple[str, str, str, bool]],
) -> None:
    for definition in read(written(params))[0]:
        schema = definition.schema()
        jsonschema_rs.meta.validate({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
        assert imported(schema) == schema
        assert schema_for_model(schema) == schema
        SchemaArguments(imported(schema))
        assert ToolDefinition.of_json(json.loads(json.dumps(definition.to_json()))) == definition
        for decl in definition.parameters:
            assert ParamDecl.of_json(asdict(decl)) == decl


@pytest.mark.requirement("B8")
def test_an_example_does_not_keep_a_schema_from_the_strict_form_of_a_server() -> None:
    definition = only(f'{HEAD}PARAM city AS string LIKE "Paris" DESCRIPTION "d"')
    made = strict_schema(imported(definition.schema()))
    assert made is not None
    assert made["properties"] == {"city": {"type": "string", "description": "d"}}


def test_changing_what_was_made_of_a_definition_changes_no_other() -> None:
    definition = only(f'{HEAD}PARAM items AS array DEFAULT [1] DESCRIPTION "d"')
    made = definition.schema()
    made["properties"]["items"]["items"]["type"] = "string"
    made["properties"]["items"]["default"].append(2)
    assert definition.schema()["properties"]["items"] == {
        "type": "array",
        "items": {},
        "description": "d",
        "default": [1],
    }


@pytest.mark.parametrize(
    ("clauses", "example"),
    [
        ('AS array LIKE "red, green"', ["red", "green"]),
        ('AS list LIKE "red"', ["red"]),
        ('AS date LIKE "31/12/2026"', "31/12/2026"),
        ('AS date LIKE "tomorrow"', "tomorrow"),
        ('AS date LIKE "2026-12-31"', "2026-12-31"),
        ('AS time LIKE "2pm"', "2pm"),
        ('AS money LIKE "R$ 150,00"', None),
        ('AS money LIKE "150"', 150),
        ("AS array DEFAULT [] LIKE []", []),
        ("AS array LIKE [] DEFAULT [1]", []),
    ],
)
def test_an_example_as_people_write_it_is_no_warning(clauses: str, example: object) -> None:
    assert property_of(clauses).get("example") == example
