import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.reading.tool_arguments import MAX_ARGUMENT_CHARACTERS, read_arguments
from services.refs import ErrorCode


def read_one(value: Any) -> Any:
    """Arguments of the only interpretation, or its error."""
    (reading,) = read_arguments(value)
    assert (reading.arguments is None) == (reading.fault is not None)
    return reading.fault or reading.arguments


@pytest.mark.parametrize("nothing", [None, "", "  \n ", "null", '""', '"  "', "{}", {}])
def test_nothing_is_an_empty_object(nothing: Any) -> None:
    assert read_one(nothing) == {}


@pytest.mark.parametrize(
    "value",
    ['{"city":"Oslo"}', ' {"city": "Oslo"}\n', {"city": "Oslo"}, '"{\\"city\\":\\"Oslo\\"}"', '{}{"city":"Oslo"}'],
)
def test_an_object_is_read_in_each_of_its_harmless_shapes(value: Any) -> None:
    assert read_one(value) == {"city": "Oslo"}


@pytest.mark.parametrize("value", ['"Oslo"', "12", "true", "[1]", '[{"city":"Oslo"}]', 12, [], False])
def test_what_is_no_object_is_not_turned_into_one(value: Any) -> None:
    assert read_one(value) is ErrorCode.NOT_AN_OBJECT


def test_an_object_encoded_three_times_is_refused() -> None:
    assert read_one(json.dumps(json.dumps(json.dumps({"a": 1})))) is ErrorCode.NOT_AN_OBJECT


@pytest.mark.parametrize(
    "broken",
    [
        "{'city': 'Oslo'}",
        '{"city": }',
        '{"city": "Oslo",}',
        '{"city": "Oslo"} and more',
        '{"city": "Oslo"}}',
        '{"path": "E:\\Chat\\a.md"}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "\"{'a': 1}\"",
        '{"a":1},{"a":2}',
        'city="Oslo"',
    ],
)
def test_what_is_not_json_is_not_repaired(broken: str) -> None:
    assert read_one(broken) is ErrorCode.INVALID_JSON


@pytest.mark.parametrize("cut", range(1, 46))
def test_the_beginning_of_json_is_truncated_wherever_it_ends(cut: int) -> None:
    whole = '{"text":"\\u00e5 \\"x\\"","list":[1.5e3,true],"n":{}}'
    assert read_one(whole[:cut]) is ErrorCode.TRUNCATED


def test_an_object_encoded_twice_that_breaks_off_inside_is_truncated() -> None:
    assert read_one(json.dumps('{"command": "rm -rf /tmp/bui')) is ErrorCode.TRUNCATED


def test_a_second_object_that_breaks_off_takes_the_first_with_it() -> None:
    assert read_one('{"a":1}{"a":') is ErrorCode.TRUNCATED


@pytest.mark.parametrize("twice", ['{"a":1,"a":2}', '{"b":{"a":1,"a":1}}', '{"a":"x:y","b":[{"c":1,"c":2}]}'])
def test_a_key_given_twice_is_refused(twice: str) -> None:
    assert read_one(twice) is ErrorCode.INVALID_JSON


def test_a_number_that_would_change_is_refused() -> None:
    assert read_one('{"id": 12345678901234567890123}') is ErrorCode.INVALID_JSON
    assert read_one('{"ids": [12345678901234567890123]}') is ErrorCode.INVALID_JSON
    assert read_one('{"id": 1234567890123456789}') == {"id": 1234567890123456789}


def test_a_windows_path_that_turned_into_control_characters_is_refused() -> None:
    assert read_one('{"path": "C:\\bin\\foo"}') is ErrorCode.INVALID_JSON
    assert read_one('{"path": "C:\\u0008in"}') is ErrorCode.INVALID_JSON
    assert read_one('{"path": "C:\\\\bin\\\\foo"}') == {"path": "C:\\bin\\foo"}
    assert read_one('{"text": "one\\n\\ttwo"}') == {"text": "one\n\ttwo"}


def test_deep_nesting_is_contained() -> None:
    for depth in (900, 2_000, 20_000):
        fault = read_one('{"a":' * depth + "1" + "}" * depth)
        assert fault is ErrorCode.INVALID_JSON or depth < 1_000


def test_arguments_beyond_the_limit_are_refused() -> None:
    assert read_one(json.dumps({"a": "x" * MAX_ARGUMENT_CHARACTERS})) is ErrorCode.INVALID_JSON
    assert read_one({"a": "x" * MAX_ARGUMENT_CHARACTERS}) is ErrorCode.INVALID_JSON


def test_different_objects_in_a_row_are_as_many_readings() -> None:
    readings = read_arguments('{"q":"杭州","n":5}\n{"q":"B{","n":5}{"n":5,"q":"杭州"}')
    assert [reading.arguments for reading in readings] == [{"q": "杭州", "n": 5}, {"q": "B{", "n": 5}]
    assert [json.loads(reading.raw) for reading in readings] == [reading.arguments for reading in readings]


def test_true_and_one_in_a_row_are_two_readings() -> None:
    assert len(read_arguments('{"a":1}{"a":true}{"a":1.0}')) == 3


def test_objects_in_a_row_without_end_are_refused() -> None:
    assert read_one('{"a":1}' * 20_000) is ErrorCode.INVALID_JSON


def test_one_bad_object_in_a_row_refuses_them_all() -> None:
    assert read_one('{"a":1}{"a":1,"a":2}') is ErrorCode.INVALID_JSON


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc:\\\"{", max_size=4), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text("abc:é{", max_size=4), _JSON, max_size=4))
def test_every_object_is_read_exactly_as_it_was_written(value: dict[str, Any]) -> None:
    assert json.dumps(read_one(json.dumps(value))) == json.dumps(value)


@given(st.text(st.sampled_from('{}[]":,\\ntrue1.-eE u0bé'), max_size=40))
def test_no_text_is_read_as_anything_but_what_json_says(text: str) -> None:
    for reading in read_arguments(text):
        if reading.arguments and len(read_arguments(text)) == 1:
            said = reading.raw.strip()
            while isinstance(said, str):
                said = json.loads(said)
            assert said == reading.arguments
