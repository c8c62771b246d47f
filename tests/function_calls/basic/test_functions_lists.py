"""Functions for lists and maps, random values, selection and types."""

from __future__ import annotations

from typing import Any

import pytest

from function_calls.basic.codes import RunCode, RunError
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.calls import call, refused

ROWS = [{"name": "Bo", "price": "10"}, {"name": "ann", "price": "9"}, {"name": "Cy", "price": None}]


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("ubound", ([],), 0),
        ("ubound", (None,), 0),
        ("count", ({"a": 1},), 1),
        ("count", ("banana", "an"), 2),
        ("first", ([],), None),
        ("last", ([1, 2],), 2),
        ("first", ("Ann Smith",), "Ann"),
        ("last", ("Ann van Smith",), "Smith"),
        ("first", ([1, 2, 3], 2), [1, 2]),
        ("last", ([1, 2, 3], 2), [2, 3]),
        ("last", ([1, 2, 3], 0), []),
        ("first", ("one two three", 2), ["one", "two"]),
        ("last", (ROWS, "Name"), "Cy"),
        ("first", ([], "name"), None),
        ("indexof", (["a"], "z"), -1),
        ("indexof", (["1", "2"], 2), 1),
        ("sum", ([],), 0),
        ("sum", (["1", 2.5, None, ""],), 3.5),
        ("sum", (ROWS, "price"), 19),
        ("avg", ([],), None),
        ("avg", ([1, 2],), 1.5),
        ("median", ([3, 1, 2, 10],), 2.5),
        ("min", (ROWS, "price"), "9"),
        ("max", ("2026-11-20", "2026-12-01"), "2026-12-01"),
        ("max", ([],), None),
        ("min", (3, None, 2), 2),
        ("column", (ROWS, "Name"), ["Bo", "ann", "Cy"]),
        ("keys", (ROWS,), ["name", "price"]),
        ("keys", (None,), []),
        ("slice", ([1, 2, 3], -2), [2, 3]),
        ("slice", ("hello", 1, 3), "el"),
        ("sort", ([10, "9", "b", "A", None, 8.5],), [8.5, "9", 10, "A", "b", None]),
        ("sort", (ROWS, "name"), [ROWS[1], ROWS[0], ROWS[2]]),
        ("sort", (ROWS, "price", "desc"), [ROWS[2], ROWS[0], ROWS[1]]),
        ("unique", ([1, 1.0, "1", None, "", {"a": 1}, {"a": 1}],), [1, "1", None, "", {"a": 1}]),
        ("unique", ([{"k": 1}, {"k": 1, "x": 2}, {"k": 2}], "k"), [{"k": 1}, {"k": 2}]),
        ("range", (3,), [1, 2, 3]),
        ("range", (5, 1, -2), [5, 3, 1]),
        ("range", (3, 1), [3, 2, 1]),
        ("range", (1, 3, -1), []),
        ("range", (0, 1, 0.25), [0, 0.25, 0.5, 0.75, 1]),
        ("push", (None, 1, 2), [1, 2]),
        ("unshift", ([2], 1), [1, 2]),
        ("pop", ([],), []),
        ("remove", ({"a": 1, "b": 2}, "a"), {"b": 2}),
        ("remove", (["1", 1, 2], 1), [2]),
        ("put", (None, "a", 1), {"a": 1}),
        ("put", ([1, 2], 0, 5), [5, 2]),
        ("iif", ("", 1), None),
        ("nvl", ("", "x"), "x"),
        ("nvl", (0, "x"), 0),
        ("coalesce", (None, []), None),
        ("choose", (5, "a"), None),
        ("isnull", ([],), True),
        ("isnull", ("",), False),
        ("isnull", (None, 5), 5),
        ("isempty", ("  ",), True),
        ("isempty", (0,), False),
        ("isnumeric", ("1,5",), False),
        ("isnumeric", (True,), False),
        ("isdate", ("22:15",), False),
        ("typeof", (None,), "null"),
        ("typeof", ({},), "object"),
        ("cbool", ("是",), True),
        ("cbool", ("2",), True),
        ("cint", ("-2.5",), -3),
        ("sametext", ("Ann", "aNN"), True),
    ],
)
def test_lists_and_choices(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    given = call(name, *arguments)
    assert given == result
    assert isinstance(given, bool) is isinstance(result, bool)


def test_a_median_or_mean_beyond_all_numbers_is_refused() -> None:
    for name in ("sum", "avg"):
        assert refused(name, [1e308, 1e308])[0] is RunCode.BAD_VALUE


def test_an_item_that_is_not_there_is_not_removed() -> None:
    assert refused("removeat", [1], 1)[0] is RunCode.NO_SUCH_INDEX
    assert refused("insertat", [1], 3, 0)[0] is RunCode.NO_SUCH_INDEX


def test_chance_is_the_world_s_and_stays_within_what_is_asked() -> None:
    world = FixedWorld()
    thrown = [call("random", 1, 6, world=world) for _ in range(200)]
    assert set(thrown) == {1, 2, 3, 4, 5, 6}
    assert {call("random", 3, world=world) for _ in range(60)} == {1, 2, 3}
    assert {call("random", 5, -5, world=world) for _ in range(300)} == set(range(-5, 6))
    assert all(0 <= call("rnd", world=world) < 1 for _ in range(50))
    assert call("random", ["a"], world=world) == "a"
    assert sorted(call("shuffle", [3, 1, 2], world=world)) == [1, 2, 3]
    assert len(set(call("sample", [1, 2, 3], 2, world=world))) == 2
    assert call("pick", [], world=world) is None


def test_a_seed_makes_chance_the_same_again() -> None:
    world = FixedWorld()
    call("randomize", 5, world=world)
    first = [call("random", 1000, world=world) for _ in range(5)]
    call("randomize", 5, world=world)
    assert [call("random", 1000, world=world) for _ in range(5)] == first


def test_ids_are_the_world_s() -> None:
    world = FixedWorld()
    assert call("guid", world=world) != call("uuid", world=world)


def test_sorting_and_finding_what_holds_one_large_list_very_often_ends() -> None:
    large = [["x" * 1000] * 1000] * 100_000
    assert refused("sort", large)[0] is RunCode.MEMORY
    assert refused("unique", large)[0] is RunCode.MEMORY
    assert refused("indexof", large, [["y"] * 1000])[0] is RunCode.MEMORY


PRICES = [{"price": "12,50"}, {"price": "1.234,50 €"}, {"price": ""}]


@pytest.mark.parametrize(("name", "total"), [("sum", 1247.0), ("avg", 623.5), ("min", 12.5), ("max", 1234.5)])
def test_amounts_of_a_sheet_are_read_as_people_write_them(name: str, total: float) -> None:
    assert call(name, PRICES, "price") == total


@pytest.mark.parametrize("name", ["sum", "avg", "min", "max"])
def test_a_column_that_no_row_has_is_no_column_of_nothing(name: str) -> None:
    with pytest.raises(RunError, match="no row has a column 'pricse'; the columns are: price"):
        call(name, PRICES, "pricse")
    with pytest.raises(RunError, match="in the column 'price'"):
        call("sum", [*PRICES, {"price": "free"}], "price")


@pytest.mark.parametrize(("name", "arguments"), [("first", ([1], -1)), ("last", ([1], 0.5)), ("first", ({"a": 1}, 2))])
def test_first_and_last_refuse_what_is_no_count(name: str, arguments: tuple[Any, ...]) -> None:
    code, _ = refused(name, *arguments)
    assert code in (RunCode.BAD_VALUE, RunCode.WRONG_TYPE)
