"""Execution of loops."""

from __future__ import annotations

import pytest

from function_calls.basic.codes import RunCode
from tests.function_calls.basic.scripts import run, value_of


def counted(head: str) -> list[object]:
    """Values of `i` in this FOR, followed by its value after the loop."""
    found: list[object] = value_of(f"{head}\nPUSH seen, i\nNEXT\nRETURN PUSH(seen, i)")
    return found


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("FOR i = 1 TO 3", [1, 2, 3, 4]),
        ("FOR i = 3 TO 1 STEP -1", [3, 2, 1, 0]),
        ("FOR i = 1 TO 6 STEP 2", [1, 3, 5, 7]),
        ("FOR i = 0 TO 0.3 STEP 0.1", [0, 0.1, 0.2, 0.3, 0.4]),
        ("FOR i = 1 TO 0.7 STEP -0.1", [1, 0.9, 0.8, 0.7, 0.6]),
        ("FOR i = 1 TO 1", [1, 2]),
        ("FOR i = 2 TO 1", [2]),
        ('FOR i = "2" TO "3"', [2, 3, 4]),
    ],
)
def test_for_counts_with_any_step_and_stops_behind_the_last_value(head: str, values: list[object]) -> None:
    assert counted(head) == values


def test_fractions_do_not_add_up_what_they_lack() -> None:
    assert counted("FOR i = 1 TO 2 STEP 0.1")[-2] == 2


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("FOR i = 1 TO 2 STEP 0", RunCode.BAD_VALUE),
        ('FOR i = 1 TO "many"', RunCode.WRONG_TYPE),
        ("FOR i = [1] TO 2", RunCode.WRONG_TYPE),
    ],
)
def test_for_refuses_what_cannot_be_counted(head: str, code: RunCode) -> None:
    assert run(f"{head}\nNEXT").code is code


def test_a_script_may_change_the_variable_that_counts() -> None:
    assert value_of("FOR i = 1 TO 10\nPUSH seen, i\ni = i + 2\nNEXT\nRETURN seen") == [1, 4, 7, 10]
    assert run('FOR i = 1 TO 3\ni = "x"\nNEXT').code is RunCode.WRONG_TYPE


@pytest.mark.parametrize(
    ("of", "items"),
    [
        ('["a", 2, NULL]', ["a", 2, None]),
        ('{"k": 1, "j": 2}', ["k", "j"]),
        ('"añ"', ["a", "ñ"]),
        ("NULL", []),
        ("[]", []),
    ],
)
def test_for_each_goes_over_lists_keys_and_characters(of: str, items: list[object]) -> None:
    assert value_of(f"seen = []\nFOR EACH x IN {of}\nPUSH seen, x\nNEXT x\nRETURN seen") == items


def test_for_each_goes_over_the_list_as_it_was_and_its_variable_keeps_the_last_value() -> None:
    script = """
    list = [1, 2, 3]
    FOR EACH x IN list
        PUSH list, x * 10
        x = x + 0.5
    NEXT
    RETURN [list, x]
    """
    assert value_of(script) == [[1, 2, 3, 10, 20, 30], 3.5]


def test_for_each_over_a_number_is_refused() -> None:
    assert run("FOR EACH x IN 5\nNEXT").code is RunCode.WRONG_TYPE


@pytest.mark.parametrize(
    ("head", "foot", "count"),
    [
        ("WHILE n < 3", "WEND", 3),
        ("DO WHILE n < 3", "LOOP", 3),
        ("DO UNTIL n >= 3", "LOOP", 3),
        ("DO", "LOOP WHILE n < 3", 3),
        ("DO", "LOOP UNTIL n >= 3", 3),
        ("DO", "LOOP UNTIL TRUE", 1),
        ("WHILE FALSE", "WEND", 0),
    ],
)
def test_while_and_do_look_where_they_say(head: str, foot: str, count: int) -> None:
    assert value_of(f"n = 0\n{head}\nn = n + 1\n{foot}\nRETURN n") == count


def test_exit_leaves_the_loop_it_names_and_all_within_it() -> None:
    script = """
    FOR i = 1 TO 3
        FOR EACH x IN ["a", "b"]
            WHILE TRUE
                k = k + 1
                IF k = 2 THEN EXIT FOR
                EXIT WHILE
            WEND
            TALK x + i
        NEXT
    NEXT
    RETURN k
    """
    heard = run(script)
    assert heard.texts == ["a1", "a2", "b2", "a3", "b3"]
    assert heard.value == 6


def test_exit_do_leaves_the_fors_within_the_do() -> None:
    script = """
    DO
        FOR i = 1 TO 3
            FOR EACH x IN [1, 2]
                EXIT DO
            NEXT
        NEXT
    LOOP
    FOR EACH y IN [7]
        PUSH seen, y
    NEXT
    RETURN seen
    """
    assert value_of(script) == [7]


def test_continue_goes_on_with_the_next_round_of_the_loop_it_names() -> None:
    script = """
    FOR i = 1 TO 3
        n = 0
        DO WHILE n < 3
            n = n + 1
            IF n = 2 THEN CONTINUE DO
            IF i = 2 THEN CONTINUE FOR
            PUSH seen, i * 10 + n
        LOOP
    NEXT
    RETURN seen
    """
    assert value_of(script) == [11, 13, 31, 33]


def test_continue_in_a_loop_that_looks_at_its_end_looks_there() -> None:
    assert value_of("DO\nn = n + 1\nIF n < 9 THEN CONTINUE DO\nLOOP UNTIL n >= 3\nRETURN n") == 3


def test_break_leaves_the_innermost_loop_and_exit_select_only_the_select() -> None:
    script = """
    FOR i = 1 TO 3
        WHILE TRUE
            BREAK
        WEND
        SELECT CASE i
            CASE 2
                FOR EACH x IN [1, 2]
                    EXIT SELECT
                NEXT
                TALK "never"
            CASE ELSE
                TALK i
        END SELECT
    NEXT
    """
    assert run(script).texts == [1, 3]
