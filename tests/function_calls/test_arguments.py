"""Parsing of raw arguments: conversions, errors, and no loss of data."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, PlainSerializer, computed_field, field_serializer, model_serializer

from config.texts import Texts
from function_calls.schema.arguments import ModelArguments, SchemaArguments
from function_calls.schema.commands import fault_text
from function_calls.schema.schema import UnusableSchema, imported
from function_calls.spec import ArgumentError
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls
from tests.function_calls.routing import Routing, said
from tests.function_calls.sample_functions import Address, Booking, Place, Trip, Units


class Spot(BaseModel):
    """Where."""

    name: str
    floor: int | None = None


class Kinds(BaseModel):
    """One field of each kind."""

    n: int = 0
    x: float = 0.0
    flag: bool = False
    text: str = ""
    names: list[str] = []
    counts: list[int] = []
    table: dict[str, int] = {}
    maybe: int | None = None
    place: Spot | None = None


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "maybe": {"type": "integer"},
        "place": {"type": "object", "properties": {"name": {"type": "string"}, "floor": {"type": "integer"}}},
    },
    "additionalProperties": False,
}
MODEL = ModelArguments(Kinds)
FOREIGN = SchemaArguments(imported(SCHEMA))


def parsed(parser: Any, raw: dict[str, Any]) -> dict[str, Any]:
    """The parsed arguments as plain data."""
    arguments = parser.parse(raw)
    return arguments.model_dump(exclude_unset=True) if isinstance(arguments, BaseModel) else dict(arguments)


@pytest.mark.requirement("D6", "D12", "E37")
@pytest.mark.parametrize("parser", [MODEL, FOREIGN], ids=["model", "schema"])
@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("n", "7", 7),
        ("n", " +7 ", 7),
        ("n", "-12", -12),
        ("n", 7.0, 7),
        ("x", "1.5", 1.5),
        ("x", "1e3", 1000.0),
        ("x", "3", 3),
        ("x", 3, 3),
        ("flag", "yes", True),
        ("flag", "OFF", False),
        ("flag", True, True),
        ("names", '["a", "b"]', ["a", "b"]),
        ("counts", ["1", 2], [1, 2]),
        ("counts", "[1, 2]", [1, 2]),
        ("table", '{"a": 1}', {"a": 1}),
        ("place", {"name": "Hall", "floor": "2"}, {"name": "Hall", "floor": 2}),
        ("text", "7", "7"),
        ("text", "[1]", "[1]"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("text", "null", "null"),
    ],
)
def test_what_surely_means_a_value_is_read_as_it(parser: Any, name: str, raw: Any, value: Any) -> None:
    assert parsed(parser, {name: raw}) == {name: value}


@pytest.mark.requirement("B13", "B23", "D7", "D29", "F8")
@pytest.mark.parametrize("parser", [MODEL, FOREIGN], ids=["model", "schema"])
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("n", "seven"),
        ("n", "7.5"),
        ("n", "7.0"),
        ("n", "1_000"),
        ("n", ""),
        ("n", True),
        ("n", 7.5),
        ("n", [7]),
        ("n", "9" * 19),
        ("x", True),
        ("x", "nan"),
        ("x", "inf"),
        ("x", "1e999"),
        ("x", "0x10"),
        ("x", "1,5"),
        ("flag", 1),
        ("flag", 0),
        ("flag", "maybe"),
        ("flag", "t"),
        ("text", 7),
        ("text", True),
        ("text", ["a"]),
        ("names", "a, b"),
        ("names", '{"a": 1}'),
        ("names", '["a"'),
        ("names", [1]),
        ("counts", [True]),
        ("counts", ["one"]),
        ("table", "[]"),
        ("table", "a"),
        ("place", {"name": 5}),
    ],
)
def test_what_does_not_fit_is_refused_by_name_with_what_is_allowed(parser: Any, name: str, raw: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        parser.parse({name: raw})
    [(place, allowed)] = caught.value.problems.items()
    assert place.partition(".")[0] == name
    assert place != name or allowed == parser.schema["properties"][name]
    assert caught.value.missing == ()


@pytest.mark.parametrize("parser", [MODEL, FOREIGN], ids=["model", "schema"])
@pytest.mark.parametrize("name", list(SCHEMA["properties"]))  # type: ignore[call-overload]
def test_null_for_an_optional_means_that_it_is_absent(parser: Any, name: str) -> None:
    assert parsed(parser, {name: None}) == {}


@pytest.mark.parametrize(
    ("parser", "raw", "names"),
    [
        (MODEL, {"city": "Oslo", "n": 1}, ["city"]),
        (FOREIGN, {"city": "Oslo", "n": "x"}, ["city", "n"]),
        (MODEL, {"": 1}, [""]),
    ],
)
def test_an_argument_that_does_not_exist_is_refused(parser: Any, raw: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        parser.parse(raw)
    assert list(caught.value.problems) == names
    assert caught.value.problems[names[0]] is None


@pytest.mark.requirement("E20")
def test_what_is_required_and_absent_is_named() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b", "a"]}
    for parser, raw in ((SchemaArguments(imported(schema)), {}), (ModelArguments(Trip), {})):
        with pytest.raises(ArgumentError) as caught:
            parser.parse(raw)
        assert caught.value.problems == {}
        assert caught.value.missing == (("b", "a") if isinstance(parser, SchemaArguments) else ("to", "stops"))


@pytest.mark.requirement("E24")
def test_a_nested_object_lacks_what_it_requires() -> None:
    for parser, raw in (
        (ModelArguments(Booking), {"title": "x", "address": {"street": "a"}}),
        (
            SchemaArguments(
                imported({"properties": {"address": {"type": "object", "required": ["zip"], "properties": {}}}})
            ),
            {"address": {}},
        ),
    ):
        with pytest.raises(ArgumentError) as caught:
            parser.parse(raw)
        assert caught.value.problems == {}
        assert caught.value.missing[0].startswith("address.zip")


def test_wrong_and_missing_are_told_together() -> None:
    parser = ModelArguments(Trip)
    with pytest.raises(ArgumentError) as caught:
        parser.parse({"to": {"name": "Oslo"}, "days": "many", "hotel": "x"})
    assert list(caught.value.problems) == ["days", "hotel"]
    assert caught.value.missing == ("stops",)


@pytest.mark.requirement("E21")
def test_defaults_are_filled_in_anew_each_time() -> None:
    schema = {"properties": {"tags": {"type": "array", "default": []}, "n": {"type": "integer", "default": 5}}}
    parser = SchemaArguments(imported(schema))
    first = parser.parse({"n": None})
    assert first == {"tags": [], "n": 5}
    first["tags"].append("mine")
    assert parser.parse({}) == {"tags": [], "n": 5}
    assert ModelArguments(Booking).parse({"title": "x"}).places == []


def test_keys_that_a_pattern_allows_are_no_unknown_arguments() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    parser = SchemaArguments(imported(schema))
    assert parser.parse({"x-note": "hi", "a": "1"}) == {"x-note": "hi", "a": 1}
    with pytest.raises(ArgumentError):
        parser.parse({"note": "hi"})


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1:9/schema.json", "other.json"])
def test_nothing_is_fetched_for_a_reference(reference: str) -> None:
    with pytest.raises(UnusableSchema):
        SchemaArguments({"type": "object", "properties": {"a": {"$ref": reference}}, "required": []})


def test_formats_of_a_foreign_schema_are_checked() -> None:
    parser = SchemaArguments(imported({"properties": {"day": {"type": "string", "format": "date"}}}))
    assert parser.parse({"day": "2026-01-05"}) == {"day": "2026-01-05"}
    with pytest.raises(ArgumentError):
        parser.parse({"day": "tomorrow"})


def test_a_pattern_of_a_foreign_schema_is_matched_in_linear_time(data: Callable[[str], Path]) -> None:
    for line in data("G_faults/redos.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        schema = imported({"properties": {"a": {"type": "string", "pattern": case["pattern"]}}})
        try:
            parser = SchemaArguments(schema)
        except UnusableSchema:
            continue
        started = time.process_time()
        with contextlib.suppress(ArgumentError):
            parser.parse({"a": case["text"] * 20})
        assert time.process_time() - started < 1, case["id"]


# -- nothing is lost

JSON = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
VALID = st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-(2**53), 2**53),
        "x": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
        "flag": st.booleans(),
        "text": st.text(max_size=10),
        "names": st.lists(st.text(max_size=5) | st.sampled_from(["1", "true", "[]", "null"]), max_size=3),
        "counts": st.lists(st.integers(-9, 9), max_size=3),
        "table": st.dictionaries(st.text(max_size=3), st.integers(-9, 9), max_size=3),
        "place": st.fixed_dictionaries({"name": st.text(max_size=3)}, optional={"floor": st.integers(-9, 9)}),
    },
)


@given(VALID)
def test_what_fits_already_is_never_changed(raw: dict[str, Any]) -> None:
    for parser in (MODEL, FOREIGN):
        assert parsed(parser, raw) == raw
        assert isinstance(parsed(FOREIGN, raw).get("flag", False), bool)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), JSON | st.none(), max_size=4))  # type: ignore[misc]
def test_any_json_gives_arguments_or_a_fault(raw: dict[str, Any]) -> None:
    for parser in (MODEL, FOREIGN):
        with contextlib.suppress(ArgumentError):
            arguments = parser.parse(raw)
            assert parser.parse(parser.dump(arguments)) == arguments


def test_aliases_come_back_from_what_was_dumped() -> None:
    parser = ModelArguments(Units)
    raw = {"from": "km", "to": "mi"}
    assert parser.dump(parser.parse(raw)) == raw


class Plain(BaseModel):
    n: int = 1
    text: str | None = None
    flag: bool = False


class Aliased(BaseModel):
    n: int = Field(1, alias="number")


class Told(BaseModel):
    n: Annotated[int, PlainSerializer(str)] = 1


class Rounded(BaseModel):
    n: int = 1

    @field_serializer("n")
    def rounded(self, value: int) -> int:
        return value // 10 * 10


class Whole(BaseModel):
    n: int = 1

    @model_serializer
    def told(self) -> dict[str, int]:
        return {"all": self.n}


class Reckoned(BaseModel):
    n: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.n


class Hidden(BaseModel):
    n: int = 1
    secret: str = Field("s", exclude=True)


class Open(BaseModel, extra="allow"):
    n: int = 1


class Colour(StrEnum):
    RED = "red"


class Chosen(BaseModel):
    n: int = 1
    colour: Colour = Colour.RED


class Derived(Plain):
    n: int = 2


@pytest.mark.parametrize(
    "model", [Plain, Aliased, Told, Rounded, Whole, Reckoned, Hidden, Open, Chosen, Derived, Kinds]
)
@given(n=st.integers(-(10**6), 10**6), text=st.none() | st.text())
def test_arguments_are_dumped_as_the_library_dumps_them(model: type[BaseModel], n: int, text: str | None) -> None:
    said = {"n": n, "number": n, "more": n} if text is None else {"n": n, "text": text}
    arguments = model(**said)
    expected = arguments.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert ModelArguments(model).dump(arguments) == expected


def test_what_is_dumped_may_be_changed_without_changing_the_arguments() -> None:
    arguments = Plain(n=3)
    ModelArguments(Plain).dump(arguments)["n"] = "hidden"
    assert arguments == Plain(n=3)


def test_arguments_with_objects_inside_come_back_from_what_was_dumped() -> None:
    parser = ModelArguments(Trip)
    trip = parser.parse({"to": {"name": "Oslo"}, "stops": [{"street": "a", "zip_code": "1234"}]})
    assert trip == Trip(Place("Oslo"), [Address(street="a", zip_code="1234")])
    assert parser.parse(parser.dump(trip)) == trip


@pytest.mark.parametrize(
    "raw",
    [
        {"names": '["a", {"b": 1, "b": 2}]'},
        {"names": "[123456789012345678901234]"},
        {"table": '{"a": 1, "a": 2}'},
        {"table": '{"a": 123456789012345678901234}'},
        {"names": "[" * 100_000},
        {"names": "[NaN]"},
    ],
)
def test_json_inside_a_text_that_cannot_be_read_without_loss_is_refused(raw: dict[str, str]) -> None:
    schema = {"type": "object", "properties": {"names": {"type": "array"}, "table": {"type": "object"}}, "required": []}
    for arguments in (SchemaArguments(imported(schema)), ModelArguments(Kinds)):
        with pytest.raises(ArgumentError) as fault:
            arguments.parse(raw)
        assert list(fault.value.problems) == list(raw)


def test_an_object_that_stands_for_no_json_value_is_a_fault() -> None:
    with pytest.raises(ArgumentError):
        SchemaArguments({"type": "object", "properties": {"n": {"type": "string"}}, "required": []}).parse(
            {"n": object()}
        )


class Line(BaseModel):
    sku: str
    qty: int = Field(default=1, ge=1)


class Basket(BaseModel):
    lines: list[Line] = Field(default_factory=list)
    pay: Line | int | None = None
    notes: dict[str, Line] = Field(default_factory=dict)
    code: int | str = 1


class Chosen(BaseModel):
    colour: str = Field(default="red", json_schema_extra={"enum": ["red", "blue"]})
    colours: list[str] = Field(default_factory=list, json_schema_extra={"enum": ["red", "blue"]})
    kind: Literal[1, 2] = 1


LINE = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 1}},
    "required": ["sku"],
    "additionalProperties": False,
}
EITHER = {"anyOf": [{"type": "integer", "minimum": 1}, LINE]}
PROPERTIES = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


def foreign(schema: dict[str, Any]) -> SchemaArguments:
    """Arguments of an imported schema."""
    return SchemaArguments(imported(schema))


@pytest.mark.parametrize(
    ("parser", "raw", "lines"),
    [
        (
            parser,
            {"lines": [{"sku": "a", "qty": 0}, {"qty": "many", "colour": "red"}, {"sku": "a"}]},
            {
                "There is no option called “lines.1.colour” here.",
                "“lines.0.qty” must be: a whole number, at least 1.",
                "“lines.1.qty” must be: a whole number, at least 1.",
                "“lines.1.sku” is missing.",
            },
        )
        for parser in (ModelArguments(Basket), foreign({"properties": {"lines": {"type": "array", "items": LINE}}}))
    ]
    + [
        (
            ModelArguments(Basket),
            {"pay": {"sku": "a", "qty": 0}, "notes": {"x": {"sku": "a", "colour": 1}}, "code": []},
            {
                "“pay.qty” must be: a whole number, at least 1.",
                "There is no option called “notes.x.colour” here.",
                "“code” must be: a whole number or some text.",
            },
        ),
        (foreign({"properties": {"t": EITHER}}), {"t": {"sku": 1}}, {"“t.sku” must be: some text."}),
        (
            foreign({"properties": {"t": EITHER}}),
            {"t": "x"},
            {"“t” must be: a whole number, at least 1 or an object."},
        ),
        (foreign({**PROPERTIES, "dependentRequired": {"a": ["b"]}}), {"a": 1}, {"“b” is missing."}),
        (foreign({**PROPERTIES, "dependencies": {"a": ["b"]}}), {"a": 1}, {"“b” is missing."}),
        (
            foreign({**PROPERTIES, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            {},
            {"One of these is needed: a, b."},
        ),
        (foreign({**PROPERTIES, "minProperties": 1}), {}, {"At least 1 of the options are needed."}),
        (
            foreign({**PROPERTIES, "not": {"required": ["a", "b"]}}),
            {"a": 1, "b": 2},
            {"These values don't fit together: a, b."},
        ),
        (
            foreign({**PROPERTIES, "patternProperties": {"^x-": {}}, "additionalProperties": False}),
            {"c": 1},
            {"There is no option called “c” here."},
        ),
        (ModelArguments(Chosen), {"colour": "green"}, {"“colour” must be: one of red, blue."}),
        (ModelArguments(Chosen), {"colours": ["red", "green"]}, {"“colours.1” must be: one of red, blue."}),
        (ModelArguments(Chosen), {"kind": "3"}, {"“kind” must be: one of 1, 2."}),
    ],
)
def test_each_wrong_place_is_named(parser: Any, raw: dict[str, Any], lines: set[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        parser.parse(raw)
    spec = Recorder("act").spec
    assert set(fault_text(spec, caught.value, Texts().of("en")).splitlines()) == lines
    assert all(fault_text(spec, caught.value, Texts().of("zh")).splitlines())


def test_extra_arguments_are_accepted_where_the_schema_allows_them() -> None:
    class Open(BaseModel, extra="allow"):
        a: int = 1

    assert ModelArguments(Open).parse({"b": 2}).model_extra == {"b": 2}
    assert foreign(PROPERTIES).parse({"c": 2}) == {"c": 2}
    assert foreign({**PROPERTIES, "additionalProperties": True}).parse({"c": 2}) == {"c": 2}


def test_an_enum_that_the_model_is_told_is_enforced() -> None:
    parser = ModelArguments(Chosen)
    assert parser.schema["properties"]["colour"]["enum"] == ["red", "blue"]
    assert parser.schema["properties"]["colours"]["items"]["enum"] == ["red", "blue"]
    values = {"colour": "blue", "colours": ["red"], "kind": 2}
    assert parser.parse({**values, "kind": "2"}) == Chosen.model_validate(values)


async def test_a_wrong_value_inside_another_is_returned_to_the_model_and_then_to_the_member() -> None:
    order = Recorder("order", {"type": "object", "properties": {"lines": {"type": "array", "items": LINE}}})
    wrong = [calls(call("order", lines=[{"qty": 1}])), calls(call("order", lines=[{"sku": "a", "qty": 0}]))]
    routing = Routing(order, script=[*wrong, calls(call("order", lines=[{"qty": 2}]))])
    outcome = await routing.hears("order")
    results = [orjson.loads(one.content) for one in routing.model.requests[-1].messages if one.role == "tool"]
    assert [one["fields"] for one in results] == [["lines.0.sku"], ["lines.0.qty"]][: len(results)]
    assert said(outcome)[0].startswith("“lines.0.")
    assert order.runs == []
