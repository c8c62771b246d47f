"""Filters in parts: the text of a value is never parsed as a part of the filter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scripts.filter_texts import filter_of, filter_of_parts
from services.scripts.filters import (
    Applied,
    Comparison,
    Condition,
    Constant,
    Field,
    Filter,
    FilterError,
    Not,
    Operand,
    Order,
    Problem,
)

HOLDS_VALUES = [
    ["owner = '", 0, "'"],
    ["owner = ", 0],
    ["owner='", 0, "' AND total > ", 1, " ORDER BY total DESC LIMIT 5"],
    ["(owner = ", 0, " OR owner='", 1, "') AND NOT total = 3"],
    ["name LIKE '%", 0, "%' OR name CONTAINS ", 1],
    ["total BETWEEN ", 0, " AND ", 1],
    ["owner IN ('", 0, "', ", 1, ")"],
    ['LOWER(owner) = LOWER("', 0, '")'],
    ["LOWER(owner) = LOWER('", 0, "') AND b <> 'it''s'"],
    ["INSTR(name, '", 0, "') > 0 AND DATE(day) = DATE('", 1, "')"],
    ["name = Mr ", 0, " ", 1, " AND x IS NOT NULL"],
]
GRAMMAR = [
    "'", '"', "' OR owner <> '", " OR 1", " AND ", "(", ")", "x = y", " ORDER BY name", " LIMIT 1", ", ", "null", "''",
    "' LIMIT 1", "' ) OR ( a = '", "`", "[a]", " is null", "\U000f0000", "\U000f0001", "LOWER(a)", " = ", "<>", "5",
    "%",
]  # fmt: skip
words = st.lists(st.sampled_from(GRAMMAR) | st.text(max_size=4), max_size=5).map("".join)
values = words | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False) | st.lists(words, max_size=3)


def filled(form: list[Any], first: Any, second: Any) -> list[Any]:
    """The parts, with these values inserted."""
    return [part if isinstance(part, str) else [(first, second)[part]] for part in form]


def shape(wanted: Filter) -> Any:
    """The filter without its values."""
    return _of(wanted.condition), [(_operand(one.by), one.descending) for one in wanted.orders], wanted.limit


def _of(condition: Condition | None) -> Any:
    match condition:
        case None:
            return None
        case Comparison(left, "in"):
            return _operand(left), "in"
        case Comparison(left, operator, right):
            return _operand(left), operator, [_operand(one) for one in right]
        case Not(inner):
            return "not", _of(inner)
        case _:
            return type(condition).__name__, [_of(one) for one in condition.conditions]


def _operand(operand: Operand) -> Any:
    match operand:
        case Constant():
            return "value"
        case Field(name):
            return name
        case Applied(name, arguments):
            return name, [_operand(one) for one in arguments]


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(HOLDS_VALUES), values, values)
def test_no_value_changes_which_fields_and_operators_a_filter_has(form: list[Any], first: Any, second: Any) -> None:
    assert shape(filter_of_parts(filled(form, first, second))) == shape(filter_of_parts(filled(form, "x", "y")))


@settings(max_examples=300, deadline=None)
@given(words)
def test_a_value_between_quotes_is_asked_for_as_it_is_said(said: str) -> None:
    assert filter_of_parts(["owner = '", [said], "'"]).condition == Comparison(Field("owner"), "=", (Constant(said),))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["sku=", ["7"]], "sku=7"),
        (["sku=", ["007"]], "sku=007"),
        (["sku=", [7, "7"]], "sku=7"),
        (["active = ", [True, "true"], " AND a = 1"], "active = true AND a = 1"),
        (["total > ", ["-2.5"], " LIMIT ", [3, "3"]], "total > -2.5 LIMIT 3"),
        (["total > 1", ["0"]], "total > 10"),
        (["id = '", [5, "5"], "'"], "id = '5'"),
        (["id = '", [None, ""], "'"], "id = ''"),
        (["phone=", [None, ""]], "phone="),
        (["id IN (", ["1, 2,3"], ")"], "id IN (1, 2, 3)"),
        (["id IN (", ["'a','b'"], ")"], "id IN ('a', 'b')"),
        (["id IN (", [["a", 5], '["a", 5]'], ")"], "id IN (a, 5)"),
        ([["owner"], " = 'x'"], "owner = 'x'"),
        (["[", ["Order No"], "] = 'x'"], "[Order No] = 'x'"),
        (["a = 1 ORDER BY ", ["total"], " ", ["DESC"]], "a = 1 ORDER BY total DESC"),
        (["a = 1", [""], " AND b = 2"], "a = 1 AND b = 2"),
    ],
)
def test_parts_ask_for_the_same_as_the_text_that_they_make(parts: list[Any], text: str) -> None:
    assert filter_of_parts(parts) == filter_of(text)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([["owner = 'x' OR total"], " > 5"], Problem.VALUE_HERE),
        (["owner ", ["= 'x' OR owner <>"], " 'y'"], Problem.VALUE_HERE),
        (["owner = 'x' AND ", ["a = 1"]], Problem.VALUE_HERE),
        (["a = 1 ORDER BY ", ["b DESC, c"]], Problem.VALUE_HERE),
        (["a = 1 ORDER BY b ", ["DESC LIMIT 1"]], Problem.VALUE_HERE),
        (["a = 1 LIMIT ", ["5 OR"]], Problem.NO_LIMIT),
        (["a = 1 ", ["b"], " = 2"], Problem.LEFT_OVER),
    ],
)
def test_a_value_that_would_say_more_is_refused(parts: list[Any], problem: Problem) -> None:
    with pytest.raises(FilterError) as raised:
        filter_of_parts(parts)
    assert raised.value.problem is problem


def test_an_order_by_a_value_is_one_order() -> None:
    wanted = filter_of_parts(["ORDER BY ", ["name"]])
    assert wanted.orders == (Order(Field("name")),)
