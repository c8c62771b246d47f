"""Parsing any text raises nothing, ends, and reports problems at positions in the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_calls.basic.language.lexer import as_lines
from function_calls.basic.language.parser import Parsed
from function_calls.basic.nodes import At
from tests.function_calls.basic.reading import read, shown
from tests.function_calls.basic.test_tools_of_scripts import ENROLLMENT

WORDS = """
IF THEN ELSE ELSEIF END ENDIF FOR EACH IN TO STEP NEXT WHILE WEND DO LOOP UNTIL SELECT CASE SWITCH DEFAULT WITH SUB
FUNCTION CALL RETURN GOTO GOSUB ON ERROR RESUME NEXT EXIT BREAK CONTINUE THROW ASSERT DIM REDIM AS LET SET PARAM
DESCRIPTION LIKE BEGIN TALK MAIL SYSTEM PROMPT HEAR GET BOT MEMORY AND OR NOT MOD IS NULL REM TABLE a b list f x
LEN NOW 1 2.5 10 0 ( ) [ ] { } #{ , . : ; = <> < <= > >= + - * / \\ ^ & != == % _ ' " ` ${ } // # "a" 'b' "${a}" “
"""
PIECES = tuple(WORDS.split())
LONG = f"""{ENROLLMENT}
DESCRIPTION Another tool
10 SELECT CASE LEN(name)
CASE 1 TO 3, IS > 5: TALK 'short'
CASE ELSE
    DO WHILE x < 3
        x += 1: IF x = 2 THEN EXIT DO ELSE CONTINUE
    LOOP
END SELECT
BEGIN TALK
Hello ${{name}}, it's ${{FORMAT(NOW(), "HH:mm")}}
END TALK
result = [
    {{"a": 1, b: [2, 3]}},  ' one
    GET "https://a.b", `c
    d`
]
ON ERROR GOTO wrong
CALL twice 2
GOTO 10
wrong: THROW ERROR MESSAGE
SUB twice(n)
    twice = n * 2 _
        + 1
END SUB
"""


def check(text: str) -> Parsed:
    """Parse the text, and check the positions of its problems."""
    parsed = read(text)
    lines = as_lines(text).split("\n")
    seen: set[tuple[At, str]] = set()
    for fault in parsed.faults:
        assert 1 <= fault.at.line <= len(lines)
        assert 1 <= fault.at.column <= len(lines[fault.at.line - 1]) + 1
        assert fault.message
        assert (fault.at, fault.code) not in seen
        seen.add((fault.at, fault.code))
    assert list(parsed.faults) == sorted(parsed.faults, key=lambda fault: fault.at)
    assert parsed.script.units
    return parsed


@given(st.text())
@settings(max_examples=150)
def test_any_text_is_read(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from([*PIECES, "\n", "\n", "\n", " "]), max_size=60), st.sampled_from([" ", ""]))
@settings(max_examples=150)
def test_any_pieces_of_the_language_are_read(pieces: list[str], between: str) -> None:
    check(between.join(pieces))


@given(st.data())
@settings(max_examples=80)
def test_a_script_whose_lines_are_lost_doubled_or_moved_is_read(data: st.DataObject) -> None:
    lines = LONG.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        line = lines[place]
        match data.draw(st.sampled_from(["lose", "double", "move", "cut", "insert"])):
            case "lose":
                del lines[place]
            case "double":
                lines.insert(place, line)
            case "move":
                lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines.pop(place))
            case "cut":
                lines[place] = line[: data.draw(st.integers(0, len(line)))]
            case _:
                where = data.draw(st.integers(0, len(line)))
                lines[place] = line[:where] + data.draw(st.sampled_from(PIECES)) + line[where:]
    check("\n".join(lines))


@pytest.mark.parametrize("place", range(len(ENROLLMENT.split("\n"))))
def test_a_line_that_is_lost_is_at_most_a_few_faults(place: int) -> None:
    lines = ENROLLMENT.split("\n")
    del lines[place]
    assert len(check("\n".join(lines)).faults) <= 2


def test_the_long_script_is_without_faults() -> None:
    parsed = check(LONG)
    assert parsed.faults == ()
    assert len(parsed.script.units) == 2


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b.c", "1", "2.5", '"t"', "NULL", "TRUE", "[]", "NOW()"]),
    lambda inner: st.one_of(
        st.tuples(
            inner,
            st.sampled_from(["+", "-", "*", "/", "\\", "^", "&", "=", "<>", "<", "MOD", "AND", "OR", "IN", "LIKE"]),
            inner,
        ).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        inner.map(lambda one: f"(NOT {one})"),
        inner.map(lambda one: f"LEN({one})"),
        inner.map(lambda one: f"({one})[0]"),
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
@settings(max_examples=100)
def test_an_expression_is_the_same_on_one_line_and_on_several(text: str) -> None:
    over_lines = text.replace("(", "(\n").replace(", ", ",\n  ").replace(" + ", " + _\n ")
    first, second = read(f"x = {text}"), read(f"x = {over_lines}")
    assert first.faults == second.faults == ()
    assert shown(first.script) == shown(second.script)
