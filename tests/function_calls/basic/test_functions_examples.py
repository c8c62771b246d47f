"""The examples in the functions' declarations are correct."""

from __future__ import annotations

import re

import pytest

from function_calls.basic.functions import ARITIES, CHANGING, EXAMPLE_NOW, FUNCTIONS, SUBJECTS, LanguageFunction
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.calls import call, worked_out

EVERY = [pytest.param(each, id=each.name) for each in FUNCTIONS.values()]

ASKED_FOR = """
    now today date time format random rnd randomize timer ubound lbound len replace split join mid left right
    instr instrrev lcase lower ucase upper trim ltrim rtrim val str int fix round abs sqr sgn min max sin cos
    tan atn log exp chr asc space string reverse startswith endswith contains title proper dateadd datediff
    datevalue year month day hour minute second weekday weekdayname monthname days isdate isnumeric isempty
    isnull nvl coalesce iif typeof typename count sum avg average push append pop first last slice sort unique
    keys values haskey range indexof guid uuid tojson parsejson toyaml hex base64 hash sha256 urlencode cstr
    cint cdbl cbool cdate isarray isobject
"""


@pytest.mark.parametrize("function", EVERY)
def test_an_example_gives_what_it_says(function: LanguageFunction) -> None:
    assert worked_out(function.example) == function.gives
    assert type(worked_out(function.example)) is not bool or type(function.gives) is bool


@pytest.mark.parametrize("function", EVERY)
def test_a_function_is_written_as_its_usage_says(function: LanguageFunction) -> None:
    assert re.fullmatch(r"[A-Z0-9_]+\((.*)\)", function.usage)
    assert function.usage.split("(")[0].lower() == function.name == function.name.lower()
    slots = [each for each in function.usage[len(function.name) + 1 : -1].split(", ") if each and each != "…"]
    if function.most is not None:
        assert len(slots) == function.most
        assert function.most - sum("[" in each for each in slots) == function.fewest
    else:
        assert "…" in function.usage
    assert function.about.endswith(".")
    assert function.name in function.example.lower()


def test_what_scripts_use_most_is_there() -> None:
    assert set(ASKED_FOR.split()) <= FUNCTIONS.keys()


def test_every_function_stands_under_one_name_once() -> None:
    named = [each.name for subject in SUBJECTS.values() for each in subject]
    assert len(named) == len(set(named)) == len(FUNCTIONS) == len(ARITIES)


def test_the_parser_is_told_how_many_values_each_takes() -> None:
    assert ARITIES["left"] == (2, 2)
    assert ARITIES["now"] == (0, 0)
    assert ARITIES["mid"] == (2, 3)
    assert ARITIES["max"] == (1, None)


def test_what_changes_a_variable_gives_it_another_value() -> None:
    assert FUNCTIONS.keys() >= CHANGING
    held = [3, 1, 2]
    assert call("push", held, 4) == [3, 1, 2, 4]
    assert call("sort", held) == [1, 2, 3]
    assert held == [3, 1, 2]


def test_the_examples_hold_at_the_moment_that_is_named() -> None:
    assert f"{FixedWorld().now():%Y-%m-%d %H:%M:%S}" == EXAMPLE_NOW
