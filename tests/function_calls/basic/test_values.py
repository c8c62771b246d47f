"""Operators, conversions and members in scripts."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.value_sizes import DEEPEST, LARGEST, MOST_ITEMS, shallow_size, size_of
from function_calls.basic.values import (
    OPERATORS,
    is_null,
    item,
    items_of,
    member,
    negated,
    normalized_value,
    number_of,
    set_item,
    set_member,
    text_of,
    truth,
)

LONG = "x" * (LARGEST - 10)


def code_of(operator: str, left: Any, right: Any) -> RunCode:
    with pytest.raises(RunError) as fault:
        OPERATORS[operator](left, right)
    return fault.value.code


@pytest.mark.requirement("B5")
@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (2, "+", 3, 5),
        ("a", "+", 1, "a1"),
        (1, "+", "1", "11"),
        ("Total: ", "+", 3.0, "Total: 3"),
        ("a", "+", None, "a"),
        (None, "+", 1, 1),
        (None, "+", None, 0),
        ([1], "+", [2], [1, 2]),
        (None, "+", [2], [2]),
        ("Items: ", "+", [1, "b"], 'Items: [1, "b"]'),
        (1, "&", 2, "12"),
        (None, "&", True, "true"),
        ("10", "-", "3", 7),
        ("1,234.5", "*", 2, 2469.0),
        (" 6 ", "/", "2", 3),
        (6, "/", 2, 3),
        (7, "/", 2, 3.5),
        (-7, "\\", 2, -3),
        (7.9, "\\", 2, 3),
        (-7, "mod", 3, -1),
        (7.5, "mod", 2, 1.5),
        (2, "^", 10, 1024),
        (2, "^", -1, 0.5),
        (-1, "^", 10**18 + 1, -1),
        (0, "^", 0, 1),
        (True, "+", 1, 2),
    ],
)
def test_operators_reckon_and_join(left: Any, operator: str, right: Any, result: Any) -> None:
    given_back = OPERATORS[operator](left, right)
    assert given_back == result
    assert type(given_back) is type(result)


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        ("2026-11-20", "+", 7, "2026-11-27"),
        ("2026-11-20", "-", 20, "2026-10-31"),
        ("2026-11-20 22:15:00", "+", 0.125, "2026-11-21 01:15:00"),
        ("2026-11-20", "+", 0.5, "2026-11-20 12:00:00"),
        ("2026-11-20", "-", "2026-11-13", 7),
        ("2026-11-20 12:00:00", "-", "2026-11-20", 0.5),
        ("2026-11-20", "+", " is Friday", "2026-11-20 is Friday"),
        ("2026-02-30", "+", 1, "2026-02-301"),
        ("on 2026-11-20", "+", 1, "on 2026-11-201"),
    ],
)
def test_days_can_be_added_to_a_date(left: Any, operator: str, right: Any, result: Any) -> None:
    assert OPERATORS[operator](left, right) == result


@pytest.mark.parametrize(
    ("left", "operator", "right", "code"),
    [
        (1, "/", 0, RunCode.DIVISION),
        (1, "/", "0.0", RunCode.DIVISION),
        (1, "\\", 0, RunCode.DIVISION),
        (1, "mod", None, RunCode.DIVISION),
        (0, "^", -1, RunCode.DIVISION),
        ("a", "-", 1, RunCode.WRONG_TYPE),
        ("", "*", 1, RunCode.WRONG_TYPE),
        ([1], "+", 1, RunCode.WRONG_TYPE),
        ({}, "+", {}, RunCode.WRONG_TYPE),
        ("abc", "<", 5, RunCode.WRONG_TYPE),
        ([1], "<", [2], RunCode.WRONG_TYPE),
        ([1], "in", "text", RunCode.WRONG_TYPE),
        (10, "^", 400, RunCode.BAD_VALUE),
        (10.5, "^", 400, RunCode.BAD_VALUE),
        (1e308, "*", 10, RunCode.BAD_VALUE),
        (-1e308, "-", 1e308, RunCode.BAD_VALUE),
        (-8, "^", 0.5, RunCode.BAD_VALUE),
        ("2026-11-20", "+", 1e300, RunCode.BAD_VALUE),
        (LONG, "+", LONG, RunCode.MEMORY),
        (LONG, "&", LONG, RunCode.MEMORY),
        ([None] * MOST_ITEMS, "+", [None], RunCode.MEMORY),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_kind(left: Any, operator: str, right: Any, code: RunCode) -> None:
    assert code_of(operator, left, right) is code


def test_a_power_of_a_large_exponent_is_refused_at_once() -> None:
    before = time.process_time()
    assert code_of("^", 10, 10**18) is RunCode.BAD_VALUE
    assert time.process_time() - before < 0.5


def test_whole_numbers_beyond_64_bits_become_fractions() -> None:
    assert OPERATORS["+"](2**63 - 1, 1) == 2.0**63
    assert type(OPERATORS["*"](2**62, 4)) is float
    assert type(OPERATORS["+"](2**62, 1)) is int
    assert negated("5") == -5


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        ("5", "=", 5, True),
        ("5.0", "=", 5, True),
        ("5.0", "=", "5", False),
        ("Ann", "=", "ann", False),
        (0.1 + 0.2, "=", 0.3, True),
        (0.1 + 0.2, "<=", 0.3, True),
        (0.1 + 0.2, ">", 0.3, False),
        (1, "=", 1.0, True),
        (True, "=", "TRUE", True),
        (True, "=", 1, True),
        (False, "=", "no", False),
        (None, "=", None, True),
        (None, "=", "", True),
        (None, "=", [], True),
        (None, "=", 0, False),
        ("", "=", 0, False),
        ([], "=", {}, False),
        ([1, {"a": 2}], "=", [1.0, {"a": 2}], True),
        ([1], "=", 1, False),
        ("a", "<>", 1, True),
        ("10", "<", "9", False),
        ("a10", "<", "a9", True),
        ("b", ">", "a", True),
        (None, "<", 1, True),
        (None, "<", "a", True),
        ("2026-11-20", "<", "2026-12-01", True),
        ("2026-11-20 08:00:00", ">", "2026-11-20", True),
        (2, "in", ["1", "2"], True),
        ("b", "in", {"a": 1, "b": 2}, True),
        ("B", "in", {"a": 1, "b": 2}, False),
        ("ell", "in", "hello", True),
        (1, "in", None, False),
        ([1], "in", [[1], [2]], True),
        ("Hello World", "like", "hello*", True),
        ("Hello World", "like", "%w_rld", True),
        ("Hello", "like", "h?llo", True),
        ("Hello", "like", "h?lo", False),
        ("", "like", "*", True),
        ("", "like", "?", False),
        (2026, "like", "20%", True),
        (None, "like", "a", False),
        ("a.c", "like", "a.c", True),
        ("abc", "like", "a.c", False),
        ("北京市", "like", "北?市", True),
        (1, "and", 0, False),
        ("", "or", "x", True),
    ],
)
def test_comparisons_say_what_people_expect(left: Any, operator: str, right: Any, result: bool) -> None:
    assert OPERATORS[operator](left, right) is result


@given(st.text("ab*?%_", max_size=12), st.text("ab", max_size=12))
def test_a_pattern_fits_what_a_search_by_hand_finds(pattern: str, text: str) -> None:
    def fits(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] in "*%":
            return any(fits(pattern[1:], text[start:]) for start in range(len(text) + 1))
        return bool(text) and pattern[0] in ("?", "_", text[0]) and fits(pattern[1:], text[1:])

    short = pattern.replace("**", "*").replace("%%", "%")
    assert OPERATORS["like"](text, pattern) is fits(short, text)


def test_a_pattern_of_many_stars_takes_no_longer_than_its_text() -> None:
    before = time.process_time()
    assert not OPERATORS["like"]("a" * 50_000, "*a" * 100 + "b")
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (None, False),
        (0, False),
        (0.0, False),
        ("", False),
        ("0", False),
        ("False", False),
        ([], False),
        ({}, False),
        (-1, True),
        ("no", True),
        (" ", True),
        ("0.0", True),
        ([0], True),
        ({"a": None}, True),
    ],
)
def test_what_is_empty_does_not_hold(value: Any, holds: bool) -> None:
    assert truth(value) is holds


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (3.0, "3"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (19.99 * 3, "59.97"),
        (1e-7, "0.0000001"),
        (1e20, "1e+20"),
        (123456789012345.0, "123456789012345"),
        (1 / 3, "0.333333333333333"),
        ([1.0, "é", None, True], '[1, "é", null, true]'),
        ({"a": {"b": 0.1 + 0.2}}, '{"a": {"b": 0.3}}'),
    ],
)
def test_values_are_said_without_what_machines_add(value: Any, said: str) -> None:
    assert text_of(value) == said


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        (" -3.5\n", -3.5),
        ("+7", 7),
        (".5", 0.5),
        ("5.", 5.0),
        ("1,234,567.89", 1234567.89),
        ("1e3", 1000.0),
        ("１２", 12),
        (None, 0),
        (True, 1),
    ],
)
def test_texts_that_write_numbers_are_numbers(text: Any, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", "abc", "1,23", "12a", "1_000", "inf", "nan", "0x10", "e5", ".", "-", "1e999", "--1", "9" * 101]
)
def test_other_texts_are_none(text: str) -> None:
    with pytest.raises(RunError) as fault:
        number_of(text)
    assert fault.value.code is RunCode.WRONG_TYPE


def test_members_are_found_as_written_and_then_whatever_their_capitals() -> None:
    row = {"Name": "Ann", "name": "Bo", "eMail": "a@b"}
    assert member(row, "name") == "Bo"
    assert member(row, "email") == "a@b"
    assert member(row, "phone") is None
    assert member(None, "name") is None


def test_a_row_set_stands_for_its_first_row() -> None:
    rows = [{"name": "Ann"}, {"name": "Bo"}]
    assert member(rows, "name") == "Ann"
    assert item(rows, "name") == "Ann"
    assert member([], "name") is None
    assert is_null([])
    assert set_member(rows, "name", "Eve") == [{"name": "Eve"}, {"name": "Bo"}]


def test_lists_and_texts_tell_their_length() -> None:
    assert member([1, 2], "length") == 2
    assert member("abc", "Length") == 3
    assert member([{"count": 9}], "count") == 9


def test_items_are_counted_from_0() -> None:
    assert item(["a", "b"], 1) == "b"
    assert item(["a", "b"], "1") == "b"
    assert item("abc", 2.0) == "c"
    assert item({"1": "one"}, 1) == "one"
    assert item({"a": 1}, "b") is None
    assert item(None, 5) is None


@pytest.mark.parametrize("index", [-1, 2, 0.5, 1e300])
def test_an_index_beyond_the_list_is_named(index: float) -> None:
    with pytest.raises(RunError, match="no item") as fault:
        item(["a", "b"], index)
    assert fault.value.code is RunCode.NO_SUCH_INDEX


def test_nothing_is_changed_where_it_stands() -> None:
    items, row = [1, 2], {"a": 1}
    assert set_item(items, 0, 9) == [9, 2]
    assert set_item(items, 4, 9) == [1, 2, None, None, 9]
    assert set_item(row, "b", 2) == {"a": 1, "b": 2}
    assert set_member(row, "A", 2) == {"a": 2}
    assert set_member(None, "a", 1) == set_member([], "a", 1) == set_item([], "a", 1) == {"a": 1}
    assert set_item(None, 0, 1) == [1]
    assert (items, row) == ([1, 2], {"a": 1})


def test_a_list_does_not_grow_to_whatever_index_is_named() -> None:
    with pytest.raises(RunError) as fault:
        set_item([], 10**12, 1)
    assert fault.value.code is RunCode.MEMORY


def test_for_each_goes_over_items_keys_and_characters() -> None:
    assert items_of([1, 2]) == [1, 2]
    assert items_of({"a": 1}) == ["a"]
    assert items_of("ab") == ["a", "b"]
    assert items_of(None) == []
    with pytest.raises(RunError, match="FOR EACH"):
        items_of(5)


def test_a_list_that_grows_by_ten_thousand_items_is_quickly_made() -> None:
    items: Any = []
    before = time.process_time()
    for number in range(10_000):
        items = set_item(items, number, number)
    assert time.process_time() - before < 2
    assert len(items) == 10_000


def test_sizes_count_what_is_shared_as_often_as_it_stands() -> None:
    shared = ["x" * 1000]
    assert size_of([shared] * 10) > 10 * size_of(shared)
    assert shallow_size([shared] * 10) < 1000
    doubled: Any = [1]
    for _ in range(60):
        doubled = [doubled, doubled]
    before = time.process_time()
    assert size_of(doubled, LARGEST) >= LARGEST
    with pytest.raises(RunError):
        text_of(doubled)
    assert time.process_time() - before < 2


def test_what_is_nested_without_end_is_refused_and_never_recursed_into() -> None:
    deep: Any = []
    other: Any = []
    for _ in range(50_000):
        deep, other = [deep], [other]
    for refuse in (size_of, text_of, normalized_value):
        with pytest.raises(RunError, match=f"{DEEPEST} deep"):
            refuse(deep)
    assert OPERATORS["="](deep, other) is True
    assert OPERATORS["="](deep, [other]) is False


def test_values_from_outside_are_settled() -> None:
    assert normalized_value({"a": [10**40]}) == {"a": [1e40]}
    fine = {"a": [1, "b"]}
    assert normalized_value(fine) is fine
    for number in (math.inf, math.nan, 10**400):
        with pytest.raises(RunError):
            normalized_value([number])


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
NEARLY = st.sampled_from(
    ["2026-11-20", "1,234.5", "-0", "1e308", "9" * 30, "TRUE", "*a?", 2**63, 10**400, 1e308, -1e-320]
)
VALUES = st.recursive(
    PLAIN | NEARLY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(OPERATORS)), VALUES, VALUES)
def test_an_operator_gives_a_value_or_a_fault_of_ours(operator: str, left: Any, right: Any) -> None:
    try:
        result = OPERATORS[operator](left, right)
        text_of(result)
    except RunError:
        pass
    else:
        assert type(result) is not float or math.isfinite(result)


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES, VALUES)
def test_members_give_a_value_or_a_fault_of_ours(of: Any, index: Any, value: Any) -> None:
    for use in (
        lambda: item(of, index),
        lambda: member(of, str(index)[:9]),
        lambda: set_item(of, index, value),
        lambda: set_member(of, str(index)[:9], value),
        lambda: items_of(of),
        lambda: number_of(of),
        lambda: negated(of),
        lambda: normalized_value(of),
    ):
        with suppress(RunError):
            use()
