"""Words of commands: each value stays one argument, whatever it contains, and does not become an option."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.command_tools.word_templates import (
    BadTemplate,
    WordError,
    WordProblem,
    argv_of,
    display_text,
    known_variables,
    template_of,
    text_of,
)

NASTY = st.sampled_from(
    ["; rm -rf /", "$(id)", "`id`", "* ?", "'", '"', "a b\tc\n", "${HOME}", "$${x}", "|", "\\", "", "好"]
)
VALUES = NASTY | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)


def argv(*words: str, end: int | None = None, **values: Any) -> tuple[str, ...]:
    return argv_of([template_of(word) for word in words], values, options_end=end)


@pytest.mark.requirement("C12")
@given(a=VALUES, b=VALUES)
def test_every_value_is_exactly_one_word_or_part_of_one(a: str, b: str) -> None:
    assert argv("run", "--", "${a}", "x=${a}:${b}", "${b}", a=a, b=b) == ("run", "--", a, f"x={a}:{b}", b)


@pytest.mark.requirement("C12")
@given(values=st.lists(VALUES, max_size=5))
def test_a_list_is_spread_only_where_that_is_written(values: list[str]) -> None:
    assert argv("run", "--", "${a...}", a=values) == ("run", "--", *values)
    assert argv("run", "-e${a...}!", a=values) == ("run", *(f"-e{one}!" for one in values))


@given(text=st.text(max_size=30))
def test_any_text_is_a_template_or_says_how_to_write_one(text: str) -> None:
    try:
        template = template_of(text)
    except BadTemplate:
        return
    if not template.variables:
        assert text_of(template, {}) == text.replace("$${", "${")


@pytest.mark.parametrize("value", ["-rf", "--output=/etc/passwd", "-"])
def test_a_value_is_no_option_unless_the_command_says_so(value: str) -> None:
    with pytest.raises(WordError) as caught:
        argv("grep", "${a}", a=value)
    assert (caught.value.name, caught.value.why) == ("a", WordProblem.OPTION)
    assert argv("grep", "--", "${a}", end=2, a=value) == ("grep", "--", value)
    assert argv("grep", "--for=${a}", a=value) == ("grep", f"--for={value}")
    assert argv("grep", "${a}", end=0, a=value) == ("grep", value)
    with pytest.raises(WordError):
        argv("grep", "${a}", "--", "x", end=3, a=value)


def test_what_a_value_leaves_in_front_of_a_dash_is_an_option_too() -> None:
    with pytest.raises(WordError):
        argv("grep", "${a}-v", a="")
    with pytest.raises(WordError):
        argv("grep", "${a...}", a=["x", "-v"])
    with pytest.raises(WordError):
        argv("head", "${n}", n=-5)


def test_a_value_that_is_two_dashes_ends_no_options() -> None:
    with pytest.raises(WordError):
        argv("grep", "x${a}", "${b}", a="--", b="-v")
    with pytest.raises(WordError):
        argv("grep", "${a}", "${b}", a="--", b="-v")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, WordProblem.ABSENT),
        (["x"], WordProblem.LIST),
        ({"x": 1}, WordProblem.STRUCTURED),
        ("a\0b", WordProblem.UNFIT),
        ("\ud800", WordProblem.UNFIT),
        ("x" * 100_001, WordProblem.TOO_LONG),
    ],
)
def test_what_no_word_can_hold_is_refused(value: Any, why: WordProblem) -> None:
    with pytest.raises(WordError) as caught:
        argv("echo", "${a}", a=value)
    assert caught.value.why is why


@pytest.mark.requirement("C12")
def test_a_variable_that_there_is_not_is_never_left_as_it_is_written() -> None:
    with pytest.raises(WordError):
        argv("echo", "${nobody}")


def test_values_of_other_kinds_are_written_as_json_writes_them() -> None:
    assert argv("e", "${i}", "${f}", "${t}", i=5, f=1.5, t=True) == ("e", "5", "1.5", "true")
    assert argv("e", "${a.b.c}", a={"b": {"c": "deep"}}) == ("e", "deep")
    assert argv("e", "${a...}") == ("e",)
    assert argv("e", "${a...}", a="one") == ("e", "one")


@pytest.mark.parametrize("text", ["${", "${}", "${1a}", "${a b}", "${a...}${b...}"])
def test_a_template_that_leads_nowhere_is_none(text: str) -> None:
    with pytest.raises(BadTemplate):
        template_of(text)


def test_texts_for_people_take_anything() -> None:
    assert display_text(template_of("<${a}${b}${c}>"), {"a": [1], "b": {"x": None}}) == '<[1]{"x":null}>'


def test_parts_of_objects_are_variables_too() -> None:
    schema = {"inputs": {"type": "object", "properties": {"lang": {"type": "string"}}}, "n": {"type": "integer"}}
    assert list(known_variables(schema)) == ["inputs", "inputs.lang", "n"]
