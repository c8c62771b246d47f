"""ON ERROR, THROW, ASSERT, and error information in scripts."""

from __future__ import annotations

import pytest

from function_calls.basic.codes import CATCHABLE, RunCode, RunError
from function_calls.basic.environment import Limits
from function_calls.basic.machine.machine import Failed
from tests.function_calls.basic.scripts import run, value_of

GONE = RunError(RunCode.UNAVAILABLE, "the page does not answer")


def test_an_error_ends_the_run_and_says_where_and_why() -> None:
    heard = run('a = 1\n\n  b = 1 / (a - 1)\nTALK "never"')
    assert isinstance(heard.event, Failed)
    assert heard.event.code is RunCode.DIVISION
    assert heard.event.at.line == 3
    assert "0" in heard.event.detail
    assert heard.texts == []


def test_resume_next_passes_over_the_statement_that_fails_and_nothing_else() -> None:
    script = """
    ON ERROR RESUME NEXT
    a = "before"
    a = "x" + (1 / 0)
    b = [1, 2][7]
    m.x.y = 1 / 0
    PUSH list, 1 / 0
    RETURN [a, b, m, list, ERROR, ERR]
    """
    assert value_of(script) == ["before", None, None, None, True, 11]


def test_a_block_whose_condition_fails_is_passed_over_as_a_whole() -> None:
    script = """
    ON ERROR RESUME NEXT
    IF 1 / 0 THEN
        TALK "if"
    ELSE
        TALK "else"
    END IF
    WHILE 1 / 0
        TALK "while"
    WEND
    FOR EACH x IN 5
        TALK "each"
    NEXT
    FOR i = 1 TO "many"
        TALK "to"
    NEXT
    SELECT CASE 1 / 0
        CASE 1
            TALK "select"
    END SELECT
    TALK "behind"
    """
    assert run(script).texts == ["behind"]


def test_a_statement_that_fails_in_a_block_goes_on_with_the_next_one_there() -> None:
    script = """
    ON ERROR RESUME NEXT
    FOR EACH x IN [1, 0, 2]
        IF TRUE THEN
            y = 10 / x
            TALK x + ":" + y
        END IF
    NEXT
    """
    assert run(script).texts == ["1:10", "0:10", "2:5"]


def test_resume_next_holds_in_subs_and_functions_that_are_called() -> None:
    script = """
    FUNCTION half(n)
        half = "none"
        half = 1 / n
        TALK "went on with ${n}"
    END FUNCTION
    ON ERROR RESUME NEXT
    RETURN [half(0), half(2)]
    """
    heard = run(script)
    assert heard.texts == ["went on with 0", "went on with 2"]
    assert heard.value == ["none", 0.5]


def test_what_a_sub_says_about_errors_ends_with_it() -> None:
    script = """
    SUB careful()
        ON ERROR RESUME NEXT
        x = 1 / 0
        TALK "held"
    END SUB
    careful
    y = 1 / 0
    TALK "never"
    """
    heard = run(script)
    assert heard.texts == ["held"]
    assert heard.code is RunCode.DIVISION


def test_goto_0_lets_errors_end_the_run_again() -> None:
    heard = run("ON ERROR RESUME NEXT\nx = 1 / 0\nON ERROR GOTO 0\nTALK ERROR\nx = 1 / 0")
    assert heard.texts == [False]
    assert heard.code is RunCode.DIVISION


def test_on_error_goto_leaves_loops_and_calls_for_its_label() -> None:
    script = """
    SUB deep()
        FOR EACH x IN [1, 2]
            y = 1 / 0
        NEXT
    END SUB
    ON ERROR GOTO sorry
    FOR i = 1 TO 3
        deep
    NEXT
    TALK "never"
    END
    sorry:
    TALK ERROR MESSAGE
    FOR EACH z IN ["a"]
        TALK z + i
    NEXT
    """
    heard = run(script)
    assert heard.texts[1:] == ["a1"]
    assert "0" in heard.texts[0]


def test_an_error_while_a_script_deals_with_one_ends_the_run() -> None:
    heard = run("ON ERROR GOTO sorry\nx = 1 / 0\nEND\nsorry:\nTALK 1\nx = [1][5]\nGOTO sorry")
    assert heard.texts == [1]
    assert heard.code is RunCode.NO_SUCH_INDEX


def test_a_keyword_that_fails_can_be_held_like_any_error() -> None:
    script = """
    ON ERROR RESUME NEXT
    page = "none"
    page = GET "https://one"
    IF ERROR THEN TALK "Sorry: " + ERROR MESSAGE
    page = GET "https://two"
    IF ERROR THEN TALK "again"
    RETURN page
    """
    heard = run(script, GONE, "two")
    assert heard.texts == ["Sorry: the page does not answer"]
    assert heard.value == "two"
    assert run('x = GET "a"', GONE).code is RunCode.UNAVAILABLE


def test_a_keyword_may_fail_in_a_function_in_an_expression() -> None:
    script = """
    FUNCTION page(url)
        page = "nothing"
        page = GET url
    END FUNCTION
    ON ERROR RESUME NEXT
    RETURN "got " + page("a") + " and " + page("b")
    """
    assert value_of(script, GONE, "B") == "got nothing and B"


@pytest.mark.parametrize(
    ("statement", "code", "message", "number"),
    [
        ('THROW "no stock"', RunCode.THROWN, "no stock", 1000),
        ('ERROR "no stock"', RunCode.THROWN, "no stock", 1000),
        ('ASSERT 1 = 2, "they differ"', RunCode.ASSERTION, "they differ", 1001),
        ("x = 1 / 0", RunCode.DIVISION, None, 11),
        ("x = -[1]", RunCode.WRONG_TYPE, None, 13),
    ],
)
def test_a_script_fails_by_its_own_word_and_can_know_of_it(
    statement: str, code: RunCode, message: str | None, number: int
) -> None:
    heard = run(statement)
    assert heard.code is code
    assert isinstance(heard.event, Failed)
    assert message is None or heard.event.detail == message
    known = value_of(
        f"ON ERROR RESUME NEXT\n{statement}\nRETURN [ERROR, ERR, ERROR MESSAGE, ERR.number, err.Description]"
    )
    assert known == [True, number, heard.event.detail, number, heard.event.detail]


def test_an_assert_that_holds_does_nothing() -> None:
    assert value_of('ASSERT 1 < 2, "no"\nASSERT TRUE\nRETURN 5') == 5
    assert "ASSERT" in run("ASSERT FALSE").event.detail  # type: ignore[union-attr] # it has failed


@pytest.mark.parametrize("clear", ["ERR.CLEAR", "CLEAR ERROR", "ERR = 0", "ON ERROR RESUME NEXT"])
def test_an_error_that_is_dealt_with_is_forgotten(clear: str) -> None:
    assert value_of(f"ON ERROR RESUME NEXT\nx = 1 / 0\n{clear}\nRETURN [ERROR, ERR, ERROR MESSAGE]") == [False, 0, ""]


def test_a_script_may_have_a_variable_that_is_called_error() -> None:
    assert value_of('error = "none so far"\nON ERROR RESUME NEXT\nx = 1 / 0\nRETURN error') == "none so far"


@pytest.mark.parametrize("code", sorted(set(RunCode) - CATCHABLE))
def test_a_limit_ends_the_run_whatever_the_script_says(code: RunCode) -> None:
    assert run('ON ERROR RESUME NEXT\nx = GET "a"\nRETURN 1', RunError(code, "enough")).code is code


def test_a_script_that_fails_forever_still_ends() -> None:
    assert run("ON ERROR RESUME NEXT\nagain:\nx = 1 / 0\nGOTO again", limits=Limits(steps=500)).code is RunCode.STEPS


@pytest.mark.parametrize("clear", ["ERR.CLEAR", "err.clear()", "CLEAR ERROR"])
def test_an_error_may_be_cleared_in_each_spelling(clear: str) -> None:
    assert value_of(f"ON ERROR RESUME NEXT\nx = 1 / 0\n{clear}\nRETURN [ERROR, ERR]") == [False, 0]


def test_an_error_in_a_procedure_goes_to_a_label_of_its_own() -> None:
    script = """
    SUB risky()
      ON ERROR GOTO bad
      TALK 1 / 0
      RETURN
      bad:
      TALK "caught"
    END SUB
    risky
    """
    assert run(script).texts == ["caught"]
