"""Warnings about probable mistakes, and their absence in good scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from function_calls.basic.codes import Code, ScriptProblem
from function_calls.basic.compiler import lints_of
from function_calls.basic.nodes import (
    Apply,
    Assign,
    At,
    Define,
    Dim,
    Evaluate,
    Expression,
    ForEach,
    ForTo,
    Index,
    KeywordCall,
    ListOf,
    Literal,
    Member,
    Name,
    Script,
    Statement,
    Target,
    Template,
    Unit,
    With,
)
from tests.function_calls.basic.small_reader import small_script

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "basic"
HERE = At(1, 1)
PARAM = 'PARAM city AS string LIKE "Paris" DESCRIPTION "Where"\n'


def lints(text: str) -> list[tuple[int, Code]]:
    found = lints_of(small_script(text))
    assert all(one.severity == "warning" for one in found)
    return [(one.at.line, one.code) for one in found]


def lint(text: str) -> ScriptProblem:
    found = lints_of(small_script(text))
    assert len(found) == 1, found
    return found[0]


def of(*body: Statement, definitions: tuple[Define, ...] = ()) -> list[str]:
    """Subjects of the warnings about a script with these statements."""
    script = Script((Unit(HERE, (), "d", HERE, "", body),), definitions)
    return [one.message.split("`")[1] for one in lints_of(script)]


def name(text: str) -> Name:
    return Name(HERE, text)


def assign(target: Target, value: Expression) -> Statement:
    return Assign(HERE, target, value)


def says(value: Expression) -> Statement:
    return Evaluate(HERE, KeywordCall(HERE, "TALK", (("text", value),)))


@pytest.mark.requirement("A54", "B27")
@pytest.mark.parametrize("unclear", ["x", "X", "p1", "foo", "tmp", "param2"])
def test_a_name_that_says_nothing_is_told(unclear: str) -> None:
    text = f'PARAM {unclear} AS string LIKE "a" DESCRIPTION "d"\nTALK {unclear}'
    assert lints(text) == [(1, Code.UNCLEAR_NAME)]
    assert f"PARAM {unclear}" in lint(text).message


@pytest.mark.parametrize("clear", ["id", "to", "city", "temperature", "value_added", "x_axis"])
def test_a_short_name_may_be_clear(clear: str) -> None:
    assert lints(f'PARAM {clear} AS string LIKE "a" DESCRIPTION "d"\nTALK {clear}') == []


@pytest.mark.requirement("A55", "B27")
def test_a_parameter_without_an_example_is_told() -> None:
    assert lints('PARAM city AS string DESCRIPTION "d"\nTALK city') == [(1, Code.MISSING_LIKE)]


@pytest.mark.parametrize("written", ['AS "easy", "hard"', "AS boolean", "AS integer ENUM 1, 2"])
def test_what_shows_its_values_needs_no_example(written: str) -> None:
    assert lints(f'PARAM level {written} DESCRIPTION "d"\nTALK level') == []


@pytest.mark.requirement("A37")
def test_a_variable_that_nothing_sets_is_told_once_where_it_is_read_first_with_what_is_near() -> None:
    found = lint(f"{PARAM}TALK city\nTALK citty\nTALK citty")
    assert (found.code, found.at, found.severity) == (Code.UNKNOWN_VARIABLE, At(3, 6), "warning")
    assert "`citty`" in found.message
    assert "did you mean `city`?" in found.message
    assert "declare it with PARAM" in lint("TALK amount").message


@pytest.mark.requirement("A37")
@pytest.mark.parametrize(
    "known", ["username", "mobile", "from", "user.name", "city", "Today", "total", "error_message"]
)
def test_parameters_session_variables_and_what_is_set_anywhere_are_known(known: str) -> None:
    assert lints(f"{PARAM}TALK city\nTALK {known}\ntotal = 1") == []


def test_variables_of_the_configuration_and_functions_without_parentheses_are_known() -> None:
    script = small_script("TALK shop_name + guid")
    assert len(lints_of(script)) == 2
    assert lints_of(script, variables=["Shop_Name"], functions=["guid"]) == []


def test_every_statement_that_sets_a_variable_counts() -> None:
    assert of(ForEach(HERE, "one", ListOf(HERE, ()), (says(name("one")),))) == []
    assert of(ForTo(HERE, "n", Literal(HERE, 1), Literal(HERE, 2), None, (says(name("n")),))) == []
    assert of(Dim(HERE, "List", None), says(name("list"))) == []
    assert of(With(HERE, name("map"), (("a", Literal(HERE, 1)),)), says(Member(HERE, name("map"), "a"))) == []
    assert of(says(name("x1")), definitions=(Define(HERE, "f", ("x1",), ()),)) == []
    assert of(assign(Member(HERE, name("map"), "a"), Literal(HERE, 1)), says(name("map"))) == []
    inner = With(HERE, name("inner"), (("b", name("missing")),))
    assert of(With(HERE, name("outer"), (("inner", inner),)), says(name("inner"))) == ["missing"]


def test_what_is_read_to_find_a_place_is_read() -> None:
    assert of(assign(Index(HERE, name("list"), name("i")), Literal(HERE, 1))) == ["i"]
    assert of(says(Template(HERE, (Literal(HERE, "a"), name("b"))))) == ["b"]
    assert of(says(Apply(HERE, "len", (name("c"),)))) == ["c"]


def test_the_script_of_the_documents_is_a_good_one() -> None:
    assert lints((GOLDEN / "user_registration.bas").read_text(encoding="utf-8")) == []


@pytest.mark.requirement("B27")
def test_a_good_script_has_no_warnings() -> None:
    text = (
        'PARAM city AS string LIKE "Paris" DESCRIPTION "The city"\n'
        'PARAM days AS integer LIKE 3 DESCRIPTION "How many days"\n'
        'DESCRIPTION "Tells the weather"\n'
        'answer = weather_of(city, days)\nTALK "Hello ${username}, " + answer.text\nRETURN answer'
    )
    assert lints(text) == []


def test_warnings_come_in_the_order_of_their_places() -> None:
    places = [place for place, _ in lints("TALK b1\nTALK a1\nTALK c1")]
    assert places == [1, 2, 3]


def test_a_script_of_thousands_of_unknown_variables_is_checked_in_time() -> None:
    known = [assign(name(f"known_{n}"), Literal(HERE, n)) for n in range(2000)]
    unknown = [says(name(f"knwn_{n}")) for n in range(2000)]
    assert len(of(*known, *unknown)) == 2000
