"""Execution of SUBs and FUNCTIONs."""

from __future__ import annotations

from function_calls.basic.codes import RunCode
from function_calls.basic.environment import Limits
from tests.function_calls.basic.scripts import run, value_of


def test_a_function_returns_by_return_or_by_its_name() -> None:
    script = """
    FUNCTION double(n)
        RETURN n * 2
    END FUNCTION
    FUNCTION greeting(name)
        greeting = "Hello"
        IF ISEMPTY(name) THEN EXIT FUNCTION
        greeting = greeting + ", " + name
    END FUNCTION
    RETURN [double(4), greeting("Mia"), greeting("")]
    """
    assert value_of(script) == [8, "Hello, Mia", "Hello"]


def test_a_sub_gives_nothing_and_may_be_left_early() -> None:
    script = """
    SUB say(text, times)
        FOR i = 1 TO times
            TALK text
            IF text = "once" THEN EXIT SUB
        NEXT
    END SUB
    say "twice", 2
    CALL say("once", 5)
    RETURN say("x", 1)
    """
    heard = run(script)
    assert heard.texts == ["twice", "twice", "once", "x"]
    assert heard.value is None


def test_variables_of_the_top_are_shared_and_all_others_are_a_procedures_own() -> None:
    script = """
    SUB work(n)
        total = total + n
        own = "inner ${own}"
        n = "changed"
        PUSH notes, own
    END SUB
    total = 1
    notes = []
    n = "outer"
    work 5
    work 6
    RETURN [total, n, own, notes]
    """
    assert value_of(script, own_of_top="x") == [12, "outer", None, ["inner ", "inner "]]


def test_a_parameter_of_the_tool_is_a_variable_of_the_top() -> None:
    assert (
        value_of('PARAM x AS string LIKE "a" DESCRIPTION "x"\nSUB s()\nx = x + "!"\nEND SUB\ns\nRETURN x', x="hi")
        == "hi!"
    )


def test_what_a_run_is_given_can_be_read_everywhere() -> None:
    assert value_of("FUNCTION who()\nRETURN username\nEND FUNCTION\nRETURN who()", Username="Mia") == "Mia"


def test_a_list_that_is_handed_over_stays_what_it_was() -> None:
    script = """
    FUNCTION longer(list)
        PUSH list, "new"
        RETURN list
    END FUNCTION
    mine = [1]
    other = longer(mine)
    RETURN [mine, other]
    """
    assert value_of(script) == [[1], [1, "new"]]


def test_functions_call_themselves_and_each_other() -> None:
    script = """
    FUNCTION fib(n)
        IF n < 2 THEN RETURN n
        RETURN fib(n - 1) + fib(n - 2)
    END FUNCTION
    RETURN fib(12)
    """
    assert value_of(script) == 144


def test_calls_within_one_another_have_a_limit_that_on_error_does_not_lift() -> None:
    script = """
    ON ERROR RESUME NEXT
    FUNCTION down(n)
        IF n = 0 THEN RETURN "there"
        RETURN down(n - 1)
    END FUNCTION
    RETURN down(depth)
    """
    assert run(script, limits=Limits(depth=8), depth=7).value == "there"
    assert run(script, limits=Limits(depth=8), depth=8).code is RunCode.DEPTH


def test_gosub_without_return_has_the_same_limit() -> None:
    assert run("again:\nGOSUB again", limits=Limits(depth=8)).code is RunCode.DEPTH


def test_a_keyword_in_a_function_called_in_an_expression_gets_its_value() -> None:
    script = """
    FUNCTION price(name)
        FOR EACH try IN [1, 2]
            found = GET name + try
            IF found THEN RETURN found
        NEXT
    END FUNCTION
    RETURN 1 + price("a") * 10 + price("b")
    """
    assert value_of(script, None, 4, 2) == 43


def test_end_in_a_sub_ends_the_run() -> None:
    assert run('SUB s()\nEND\nEND SUB\ns\nTALK "never"').texts == []
