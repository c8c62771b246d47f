"""PARAM and DESCRIPTION, as authors write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.basic.codes import Code, ScriptError, ScriptProblem
from function_calls.basic.language.header import read_description, read_param
from function_calls.basic.language.tokens import Cursor, Kind
from function_calls.basic.nodes import At, Param
from tests.function_calls.basic.small_reader import SmallExpressions, small_tokens


def param(source: str) -> Param:
    cursor = Cursor(small_tokens(source))
    read = read_param(cursor, SmallExpressions())
    assert cursor.now.kind is Kind.END
    return read


def fault(source: str) -> ScriptProblem:
    with pytest.raises(ScriptError) as raised:
        param(source)
    return raised.value.fault


@pytest.mark.requirement("A3", "A14", "A15", "A16", "A18")
def test_a_param_has_a_name_a_type_an_example_and_a_description() -> None:
    read = param('PARAM name AS string LIKE "John Smith" DESCRIPTION "User\'s full name"')
    assert (read.at, read.name, read.type, read.type_at) == (At(1, 1), "name", "string", At(1, 15))
    assert (read.like, read.has_like, read.description) == ("John Smith", True, "User's full name")
    assert (read.default, read.has_default, read.optional, read.choices) == (None, False, False, ())


@pytest.mark.requirement("A14")
def test_the_words_may_be_in_any_case_and_the_clauses_in_any_order() -> None:
    usual = param('PARAM age AS NUMBER LIKE 25 DESCRIPTION "Age" OPTIONAL')
    other = param('param age optional description "Age" like 25 as Number')
    assert (usual.name, usual.type, usual.like, usual.description, usual.optional) == ("age", "number", 25, "Age", True)
    assert (other.name, other.type, other.like, other.description, other.optional) == ("age", "number", 25, "Age", True)


@pytest.mark.requirement("A15", "B3")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"John"', "John"),
        ("25", 25),
        ("99.99", 99.99),
        ("-5", -5),
        ("+5", 5),
        ("true", True),
        ("FALSE", False),
        ("John Smith", "John Smith"),
        ("2025-01-15", "2025-01-15"),
        ("10%", "10%"),
        ('"a" + "b"', "ab"),
        ('"Dear ${name}"', "Dear ${name}"),
        ("[1, -2]", [1, -2]),
        ('{"a": [true]}', {"a": [True]}),
    ],
)
def test_an_example_keeps_its_type_and_words_need_no_quotes(written: str, value: object) -> None:
    read = param(f'PARAM x LIKE {written} DESCRIPTION "d"')
    assert (read.like, type(read.like)) == (value, type(value))
    assert read.description == "d"


def test_a_number_where_a_text_is_wanted_is_what_was_typed() -> None:
    assert param("PARAM code AS zipcode LIKE 01234").like == "01234"
    assert param("PARAM code LIKE 01234 AS string").like == "01234"
    assert param("PARAM code AS number LIKE 1.50").like == 1.5


@pytest.mark.requirement("A18")
@pytest.mark.parametrize(
    ("written", "value"), [("5", 5), ('"a"', "a"), ("= 5", 5), ("easy going", "easy going"), ("null", None)]
)
def test_a_default_is_read_like_an_example(written: str, value: object) -> None:
    read = param(f"PARAM x AS any DEFAULT {written}")
    assert (read.default, read.has_default) == (value, True)


@pytest.mark.parametrize(
    "written",
    ['AS "easy", "hard"', 'AS ["easy", "hard"]', 'ENUM "easy", "hard"', 'ENUM ["easy", "hard"]', 'ENUM ("easy","hard")',
     "ENUM easy, hard", 'AS ENUM ["easy", "hard"]'],
)  # fmt: skip
def test_choices_stand_behind_as_or_enum(written: str) -> None:
    read = param(f'PARAM level {written} DESCRIPTION "d"')
    assert (read.choices, read.type, read.description) == (("easy", "hard"), "", "d")


def test_choices_keep_the_type_of_the_parameter() -> None:
    assert param("PARAM n AS integer ENUM 1, 2, 3").choices == (1, 2, 3)
    assert param("PARAM n AS string ENUM 1, 02").choices == ("1", "02")


def test_one_text_alone_behind_as_is_the_description() -> None:
    read = param('PARAM location AS "The city and state, e.g. San Francisco, CA"')
    assert (read.choices, read.type) == ((), "")
    assert read.description == "The city and state, e.g. San Francisco, CA"
    assert read.type_at == At(1, 19)


def test_a_clause_may_be_the_name() -> None:
    assert param('PARAM description AS string LIKE "x"').name == "description"
    assert param("PARAM default AS string").name == "default"


def test_a_description_is_one_line_of_text() -> None:
    assert param('PARAM x DESCRIPTION "  two   words "').description == "two words"
    assert param("PARAM x DESCRIPTION Without any quotes").description == "Without any quotes"


@pytest.mark.requirement("A36", "A37", "A40", "B28")
@pytest.mark.parametrize(
    ("source", "column", "told"),
    [
        ("PARAM", 6, "expected a name after PARAM, found the end of the script"),
        ("PARAM\nTALK 1", 6, "expected a name after PARAM, found the end of the line"),
        ("PARAM AS string", 7, "expected a name after PARAM, found AS"),
        ('PARAM DESCRIPTION "x"', 7, "expected a name after PARAM, found DESCRIPTION"),
        ("PARAM 2x AS string", 7, "`2x` is not a valid name"),
        ("PARAM a-b AS string", 7, "`a-b` is not a valid name"),
        ("PARAM a.b AS string", 7, "`a.b` is not a valid name"),
        ('PARAM "x" AS string', 7, '`"x"` is not a valid name'),
        ("PARAM x AS", 11, "PARAM x: expected a type after AS"),
        ('PARAM x AS LIKE "a"', 12, "PARAM x: expected a type after AS, found `LIKE`"),
        ("PARAM x AS 5", 12, "PARAM x: expected a type after AS, found `5`"),
        ("PARAM x AS string(50)", 18, "PARAM x: expected a clause such as DESCRIPTION, found `(`"),
        ("PARAM x AS string please", 19, "PARAM x: expected a clause such as DESCRIPTION, found `please`"),
        ('PARAM x LIKE "a" "b"', 18, 'PARAM x: expected a clause such as DESCRIPTION, found `"b"`'),
        ("PARAM x AS string AS number", 19, "PARAM x: duplicate AS"),
        ('PARAM x AS "a", "b" ENUM "c"', 26, "PARAM x: the choices are listed twice"),
        ("PARAM x OPTIONAL REQUIRED", 26, "PARAM x cannot be both OPTIONAL and REQUIRED"),
        ("PARAM x LIKE", 13, "PARAM x: expected a value after LIKE"),
        ('PARAM x LIKE DESCRIPTION "d"', 14, "PARAM x: expected a value after LIKE, found `DESCRIPTION`"),
        ("PARAM x DESCRIPTION", 20, "PARAM x: expected a text after DESCRIPTION"),
        ("PARAM x ENUM []", 15, "PARAM x: expected a choice"),
        ('PARAM x ENUM ["a", ]', 20, "PARAM x: expected a choice"),
        ('PARAM x ENUM ["a" OPTIONAL', 19, "PARAM x: expected `]` after the choices"),
        ("PARAM x DEFAULT [y]", 18, "PARAM x accepts only literal values"),
        ("PARAM x DEFAULT [1,", 20, "expected a value"),
    ],
)
def test_a_wrong_param_is_told_its_place_and_the_right_form(source: str, column: int, told: str) -> None:
    cursor = Cursor(small_tokens(source))
    with pytest.raises(ScriptError) as raised:
        read_param(cursor, SmallExpressions())
    found = raised.value.fault
    assert (found.code, found.at) == (Code.BAD_PARAM, At(1, column))
    assert found.message.startswith(told)
    assert 'AS string LIKE "an example" DESCRIPTION "what it is"' in found.message


def test_the_right_form_has_the_name_that_was_meant() -> None:
    assert "write PARAM city AS" in fault("PARAM 2x AS string").message
    assert "write PARAM town AS" in fault("PARAM town AS").message


@pytest.mark.requirement("A17")
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('DESCRIPTION "Process a new customer order"', "Process a new customer order"),
        ('description "a" + "b"', "ab"),
        ("DESCRIPTION It is a service of ours.", "It is a service of ours."),
        ('DESCRIPTION ""', ""),
        ("DESCRIPTION", ""),
    ],
)
def test_a_description_of_its_own_is_read_with_its_place(source: str, text: str) -> None:
    cursor = Cursor(small_tokens(f"\n{source}"))
    cursor.take()
    assert read_description(cursor) == (text, At(2, 1))
    assert cursor.now.kind is Kind.END


def test_what_stands_behind_a_description_is_a_fault() -> None:
    with pytest.raises(ScriptError) as raised:
        read_description(Cursor(small_tokens('DESCRIPTION "a" LIKE 5')))
    assert (raised.value.fault.at, raised.value.fault.code) == (At(1, 17), Code.BAD_PARAM)


CLAUSES = ("AS", "LIKE", "DESCRIPTION", "OPTIONAL", "REQUIRED", "DEFAULT", "ENUM", "PARAM", "string", "number", "name")
SIGNS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "-",
    "+",
    "=",
    ":",
    "1",
    "0.5",
    '"text"',
    '"${"',
    "TRUE",
    "NULL",
    "\n",
    "«»",
)
TOKENS = st.lists(st.sampled_from([*CLAUSES, *SIGNS]), max_size=12)


@given(TOKENS, st.sampled_from(["PARAM", "DESCRIPTION"]), st.sampled_from(["", " "]))
@settings(max_examples=700)
def test_whatever_a_header_holds_only_a_script_fault_is_raised(tokens: list[str], first: str, space: str) -> None:
    cursor = Cursor(small_tokens(first + " " + space.join(tokens)))
    try:
        if first == "PARAM":
            assert read_param(cursor, SmallExpressions()).name
        else:
            read_description(cursor)
    except ScriptError as error:
        assert error.fault.message  # noqa: PT017 - both outcomes are valid
        return
    assert cursor.is_line_end


@given(
    name=st.from_regex(r"p_[a-z0-9_]{1,8}", fullmatch=True),
    clauses=st.permutations(
        ["AS integer", "LIKE 7", 'DESCRIPTION "how many"', "DEFAULT 3", "ENUM 3, 7", "OPTIONAL"],
    ),
)
def test_the_order_of_the_clauses_does_not_matter(name: str, clauses: list[str]) -> None:
    read = param(" ".join(["PARAM", name, *clauses]))
    assert (read.name, read.type, read.like, read.description) == (name, "integer", 7, "how many")
    assert (read.default, read.choices, read.optional) == (3, (3, 7), True)
