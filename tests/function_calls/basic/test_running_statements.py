"""Execution of statements."""

from __future__ import annotations

import pytest

from function_calls.basic.codes import RunCode
from tests.function_calls.basic.scripts import run, value_of


def lines(*parts: str) -> str:
    return "\n".join(parts)


# Variables


def test_names_differ_in_no_letter_case() -> None:
    assert value_of('Total = 1\nTOTAL = total + 1\nRETURN "${tOtAl}"') == "2"


def test_what_was_never_given_a_value_is_nothing() -> None:
    assert value_of('a$ = a$ + "x"\nn = n + 1\nRETURN [a$, n, missing]') == ["x", 1, None]


@pytest.mark.requirement("B14")
def test_arguments_are_variables_whatever_their_letter_case() -> None:
    assert value_of("RETURN ORDER_ID + 1", Order_Id=4) == 5


def test_a_script_without_return_ends_with_nothing() -> None:
    assert value_of("a = 1") is None
    assert value_of("") is None


def test_end_and_return_end_the_run() -> None:
    assert run('TALK "a"\nEND\nTALK "b"').texts == ["a"]
    assert value_of("RETURN 1\nRETURN 2") == 1


def test_members_and_items_are_changed_in_their_variable() -> None:
    script = """
    order.items[1].price = 5
    order.items[0] = "none"
    order.customer.name = "Mia"
    ORDER.Customer.NAME = order.customer.name + "!"
    RETURN order
    """
    assert value_of(script) == {"items": ["none", {"price": 5}], "customer": {"name": "Mia!"}}


def test_an_index_may_be_anything_and_is_found_once() -> None:
    script = """
    m["a b"] = 1
    m["list"][UBOUND(m.list)] = "first"
    k = "list"
    m[k][UBOUND(m.list)] = "second"
    RETURN m
    """
    assert value_of(script) == {"a b": 1, "list": ["first", "second"]}


def test_dim_makes_a_list_of_nothings_and_old_parentheses_reach_its_items() -> None:
    assert value_of("DIM a(3)\na(1) = 5\nRETURN a(1) + UBOUND(a)") == 8
    assert value_of("DIM a(2)\nRETURN a") == [None, None]
    assert run("DIM a(-1)").code is RunCode.BAD_VALUE


def test_push_as_a_statement_changes_the_variable_and_as_a_function_none() -> None:
    assert value_of("PUSH list, 1\nPUSH list, 2\nother = PUSH(list, 3)\nRETURN [list, other]") == [[1, 2], [1, 2, 3]]
    assert value_of("m.rows = [1]\nPUSH m.rows, 2\nRETURN m.rows") == [1, 2]


def test_a_list_that_is_given_to_another_variable_is_a_list_of_its_own() -> None:
    script = """
    a = [1, [2]]
    b = a
    b[1][0] = "changed"
    PUSH b, 3
    c = [a, a]
    c[0][0] = "other"
    RETURN [a, b, c]
    """
    assert value_of(script) == [[1, [2]], [1, ["changed"], 3], [["other", [2]], [1, [2]]]]


# IF and SELECT


@pytest.mark.parametrize(("n", "said"), [(-1, "low"), (0, "zero"), (3, "some"), (9, "many")])
def test_if_takes_the_first_branch_that_holds(n: int, said: str) -> None:
    script = """
    IF n < 0 THEN
        RETURN "low"
    ELSE IF n = 0 THEN
        RETURN "zero"
    ELSEIF n < 5 THEN
        RETURN "some"
    ELSE
        RETURN "many"
    END IF
    """
    assert value_of(script, n=n) == said


@pytest.mark.parametrize(
    ("n", "said"),
    [(1, "one or two"), (2, "one or two"), (5, "three to nine"), (9, "three to nine"), (90, "more"), (-1, "else")],
)
def test_select_knows_values_ranges_and_comparisons(n: int, said: str) -> None:
    script = """
    SELECT CASE n
        CASE 1, 2
            RETURN "one or two"
        CASE 3 TO 9
            RETURN "three to nine"
        CASE IS > 9
            RETURN "more"
        CASE ELSE
            RETURN "else"
    END SELECT
    """
    assert value_of(script, n=n) == said


def test_the_subject_of_select_is_found_once_and_one_case_is_taken() -> None:
    script = """
    FUNCTION next_one()
        calls = calls + 1
        RETURN calls
    END FUNCTION
    calls = 0
    SELECT CASE next_one()
        CASE 7
            TALK "seven"
        CASE 1
            TALK "one"
        CASE 1
            TALK "again"
    END SELECT
    RETURN calls
    """
    heard = run(script)
    assert heard.texts == ["one"]
    assert heard.value == 1


# AND, OR


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0 AND boom()", False),
        ("1 OR boom()", True),
        ('"x" AND 5', True),
        ('"" OR 0', False),
        ("NULL OR 3", True),
        ("NOT 0", True),
        ('NOT "x"', False),
    ],
)
def test_and_and_or_look_no_further_than_they_must_and_give_true_or_false(expression: str, value: bool) -> None:
    assert value_of(f'FUNCTION boom()\nTHROW "looked"\nEND FUNCTION\nRETURN {expression}') is value


# WITH


def test_with_makes_a_map_and_takes_its_values_from_outside() -> None:
    script = """
    name = "Mia"
    WITH order
        name = name
        .total = 2 * 21
        items = [1, 2]
    END WITH
    WITH order
        total = order.total + 1
    END WITH
    RETURN order
    """
    assert value_of(script) == {"name": "Mia", "total": 43, "items": [1, 2]}


def test_with_inside_with_makes_a_map_within_a_map() -> None:
    script = """
    WITH order
        id = 7
        WITH customer
            name = "Mia"
        END WITH
    END WITH
    RETURN order
    """
    assert value_of(script) == {"id": 7, "customer": {"name": "Mia"}}


# Labels


def test_goto_goes_to_line_numbers_and_names_and_leaves_loops_behind() -> None:
    script = """
    10 n = n + 1
    FOR EACH x IN [1, 2, 3]
        FOR i = 1 TO 3
            IF n < 3 THEN GOTO 10
            GOTO done
        NEXT
    NEXT
    done:
    FOR EACH y IN ["a"]
        TALK y + n
    NEXT
    """
    heard = run(script)
    assert heard.texts == ["a3"]
    assert heard.machine.state()["frames"][0]["loops"] == []


def test_gosub_comes_back_into_the_loop_it_came_from() -> None:
    script = """
    FOR i = 1 TO 2
        FOR EACH x IN ["a", "b"]
            GOSUB say
        NEXT
    NEXT
    END
    say:
    FOR EACH mark IN ["!", "?"]
        TALK x + i + mark
        IF i = 1 THEN RETURN
    NEXT
    RETURN
    """
    assert run(script).texts == ["a1!", "b1!", "a2!", "a2?", "b2!", "b2?"]


def test_a_keyword_may_stand_anywhere_in_an_expression() -> None:
    assert value_of('x = 1 + (GET "a") * 2\nRETURN "${x} ${GET "b"}"', 4, "B") == "9 B"
    assert value_of("HEAR m.name\nRETURN m", "Mia") == {"name": "Mia"}
