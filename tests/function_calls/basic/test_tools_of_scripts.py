"""Parsing of a whole file: header, tools, several errors, and the time it takes."""

from __future__ import annotations

import time

import pytest

from function_calls.basic.language.parser import parse
from tests.function_calls.basic.reading import FUNCTIONS, SomeForms, faults, read, shown

ENROLLMENT = """\
REM Enrolls a student.

PARAM name AS string LIKE "Abreu Silva" DESCRIPTION "Full name"
PARAM age AS number LIKE 25 DESCRIPTION "Age in years"
PARAM email AS email LIKE ann@example.org

DESCRIPTION "Enrolls a student"

' the number of the enrollment
id = "ENR-" + FORMAT(NOW(), "YYYYMMDD") + "-" + FORMAT(RANDOM(1000, 9999), "0000")

IF email = "" OR NOT CONTAINS(email, "@") THEN
    TALK "That is no address: ${email}"
    RETURN NULL
END IF

WITH enrollment
    id = id
    student = name
    status = "pending"
END WITH

SAVE "enrollments", enrollment
total = 0
FOR EACH item IN enrollment.items
    total = total + item.price * 2
NEXT item
TALK "Enrolled for " + total
RETURN id
"""


@pytest.mark.requirement("A14", "A16", "A17", "B4")
def test_a_script_has_its_parameters_its_description_and_its_statements() -> None:
    parsed = read(ENROLLMENT)
    assert parsed.faults == ()
    (unit,) = parsed.script.units
    assert [(param.name, param.type, param.like, param.at.line) for param in unit.params] == [
        ("name", "string", "Abreu Silva", 3),
        ("age", "number", 25, 4),
        ("email", "email", "ann@example.org", 5),
    ]
    assert (unit.description, unit.description_at, unit.at, unit.comment) == (
        "Enrolls a student",
        (7, 1),
        (3, 1),
        "Enrolls a student.",
    )
    assert [type(one).__name__ for one in unit.body] == (
        ["Assign", "If", "With", "Evaluate", "Assign", "ForEach", "Evaluate", "Return"]
    )


@pytest.mark.requirement("A58")
def test_a_late_parameter_keeps_its_place_behind_the_code() -> None:
    parsed = read('TALK 1\nPARAM a AS string\nDESCRIPTION "x"\nTALK a')
    (unit,) = parsed.script.units
    assert parsed.faults == ()
    assert unit.params[0].at > unit.body[0].at
    assert (unit.at, unit.description) == ((1, 1), "x")


@pytest.mark.parametrize(
    "end",
    [
        "RETURN 1",
        "END",
        "THROW 'x'",
        "IF a THEN\nRETURN 1\nELSE\nRETURN 2\nEND IF",
        "SELECT CASE a\nCASE 1\nRETURN 1\nCASE ELSE\nRETURN 2\nEND SELECT",
    ],
)
def test_a_header_behind_code_that_has_ended_begins_another_tool(end: str) -> None:
    first = f'\' First.\nDESCRIPTION "one"\n{end}\n\n'
    text = first + 'REM ====\nREM Second tool\nREM ====\nPARAM a AS string\nDESCRIPTION "two"\nTALK a\nRETURN a'
    parsed = read(text)
    assert parsed.faults == ()
    assert [(unit.description, len(unit.params), unit.comment) for unit in parsed.script.units] == [
        ("one", 0, "First."),
        ("two", 1, "Second tool"),
    ]


@pytest.mark.parametrize(
    "end", ["TALK 1", "IF a THEN RETURN 1", "IF a THEN\nRETURN\nELSE\nTALK 1\nEND IF", "GOSUB 10\n10 TALK 1"]
)
def test_a_header_behind_code_that_goes_on_belongs_to_the_same_tool(end: str) -> None:
    assert len(read(f'DESCRIPTION "one"\n{end}\nPARAM a AS string').script.units) == 1


def test_a_comment_may_name_a_tool() -> None:
    text = '\' TOOL: cat_fact\nDESCRIPTION "one"\nRETURN\n\n# name: dog_fact\n# About dogs\nDESCRIPTION "two"\nRETURN'
    assert [(unit.name, unit.comment) for unit in read(text).script.units] == [
        ("cat_fact", ""),
        ("dog_fact", "About dogs"),
    ]


def test_labels_belong_to_their_tool() -> None:
    assert faults('DESCRIPTION "a"\n10 RETURN\nDESCRIPTION "b"\nGOTO 10') == [(4, 6, "UNKNOWN_LABEL")]


def test_subs_belong_to_all_tools_of_a_file() -> None:
    parsed = read('DESCRIPTION "a"\nf\nRETURN\nSUB f\nEND SUB\nDESCRIPTION "b"\nf\nRETURN')
    assert parsed.faults == ()
    assert (len(parsed.script.units), len(parsed.script.definitions)) == (2, 1)


@pytest.mark.parametrize("text", ["", "\n\n", "' nothing", "SUB f\nEND SUB"])
def test_a_file_without_statements_is_one_empty_tool(text: str) -> None:
    parsed = read(text)
    assert parsed.faults == ()
    assert [unit.body for unit in parsed.script.units] == [()]


def test_the_comments_of_a_file_without_header_describe_it() -> None:
    (unit,) = read("REM Says hello\n'  to everybody\n\n' ----\nTALK 1\n' later").script.units
    assert unit.comment == "Says hello to everybody"


@pytest.mark.requirement("A36")
def test_all_faults_of_a_file_are_told_in_their_order_and_once() -> None:
    text = """\
PARAM a AS string
PARAM 2x AS string
DESCRIPTION "x"
TLAK "a"
IF a = “b” THEN
    x = nope(1)
    FOR EACH i IN
        y = 1 +
    NEXT
END IF
END IF
TALK "never closed
WHILE a
"""
    assert faults(text) == [
        (2, 7, "BAD_PARAM"),
        (4, 1, "UNKNOWN_STATEMENT"),
        (5, 8, "BAD_CHARACTER"),
        (6, 9, "UNKNOWN_FUNCTION"),
        (7, 18, "SYNTAX"),
        (8, 16, "SYNTAX"),
        (11, 1, "STRAY_END"),
        (12, 6, "OPEN_TEXT"),
        (13, 1, "NOT_CLOSED"),
    ]


def test_a_fault_in_the_first_line_of_a_block_leaves_the_block_whole() -> None:
    for first, last in [
        ("IF a = = 1 THEN", "ELSE\nEND IF"),
        ("FOR EACH IN y", "NEXT"),
        ("FOR i = TO 3", "NEXT i"),
        ("WHILE (a", "WEND"),
        ("DO WHILE )", "LOOP"),
        ("SELECT CASE a +", "CASE 1\nEND SELECT"),
        ("WITH 3", "END WITH"),
        ("SUB 3()", "END SUB"),
    ]:
        body = "a = 1\n" if not first.startswith("SELECT") else ""
        assert [line for line, _, _ in faults(f"{first}\n{body}{last}\nTALK 1")] == [1]


def test_a_fault_in_an_if_on_one_line_takes_no_further_lines() -> None:
    assert faults("IF a = = 1 THEN TALK 1\nTALK 2") == [(1, 8, "SYNTAX")]


def test_blocks_that_stand_too_deep_are_one_fault() -> None:
    for depth in (150, 5000):
        for first, last in [
            ("IF a THEN", "END IF"),
            ("WITH a", "END WITH"),
            ("DO", "LOOP"),
            ("SELECT CASE a\nCASE 1", "END SELECT"),
        ]:
            found = faults(f"{first}\n" * depth + f"{last}\n" * depth)
            assert [code for _, _, code in found] == ["TOO_DEEP"]


def test_ifs_on_one_line_that_stand_too_deep_are_a_fault() -> None:
    assert [code for _, _, code in faults("IF a THEN " * 3000 + "x = 1")] == ["TOO_DEEP"]


def test_blocks_and_brackets_are_counted_together() -> None:
    text = "IF a THEN\n" * 60 + "x = " + "(" * 60 + "1" + ")" * 60 + "\n" + "END IF\n" * 60
    assert [code for _, _, code in faults(text)] == ["TOO_DEEP"]


def test_no_more_than_a_hundred_faults_are_told_one_by_one() -> None:
    found = read("TLAK 1\n" * 300).faults
    assert len(found) == 101
    assert found[-1].message.startswith("200 more errors")


def test_a_script_of_some_thirty_lines_is_read_in_less_than_two_milliseconds() -> None:
    forms = SomeForms()
    best = 1.0
    for _ in range(20):
        begin = time.process_time()
        parse(ENROLLMENT, forms, FUNCTIONS)
        best = min(best, time.process_time() - begin)
    assert best < 0.002  # it takes a quarter of that on an idle machine


def test_what_is_read_does_not_depend_on_how_words_are_written() -> None:
    lower = (
        ENROLLMENT.replace("PARAM", "param").replace("IF", "if").replace("FOR EACH", "for each").replace("WITH", "With")
    )
    assert shown(read(lower).script) == shown(read(ENROLLMENT).script)


@pytest.mark.parametrize(
    "line",
    [
        "PARAM who AS string LIKE 'Ann' DESCRIPTION 'who it is'",
        "PARAM who AS string LIKE \"Ann\" DESCRIPTION 'who it is'",
        "PARAM who AS string DESCRIPTION \"who it is\" LIKE 'Ann'",
        "param who as string like 'Ann' description 'who it is' ' it's a comment",
        'PARAM who AS string LIKE "Ann" DESCRIPTION "who it is" \'a comment\'',
    ],
)
def test_a_clause_of_a_param_may_have_its_text_in_single_quotes_where_the_line_ends(line: str) -> None:
    parsed = parse(f"{line}\nDESCRIPTION 'Greets'\nTALK who", SomeForms(), FUNCTIONS)
    (unit,) = parsed.script.units
    (param,) = unit.params
    assert parsed.faults == ()
    assert (param.like, param.description, unit.description) == ("Ann", "who it is", "Greets")
