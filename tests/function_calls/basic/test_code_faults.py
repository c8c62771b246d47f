"""Errors found when a tree is compiled, and the keywords and functions that a program uses."""

from __future__ import annotations

import pytest

from function_calls.basic.codes import Code, ScriptError
from function_calls.basic.machine.code_statements import program_of
from function_calls.basic.nodes import (
    Apply,
    Assign,
    At,
    Binary,
    Continue,
    Define,
    Evaluate,
    Expression,
    ForEach,
    Goto,
    If,
    KeywordCall,
    Label,
    Leave,
    ListOf,
    Literal,
    Name,
    OnError,
    Return,
    Statement,
    Unit,
)
from tests.function_calls.basic.runs import run_through

HERE = At(2, 3)


def a_unit(*body: Statement) -> Unit:
    return Unit(At(1, 1), (), "", None, "", body)


def of(value: object) -> Literal:
    assert isinstance(value, int | float | str | None)
    return Literal(HERE, value)


def named(name: str) -> Name:
    return Name(HERE, name)


def want(keyword: str, *first: Expression) -> KeywordCall:
    return KeywordCall(HERE, keyword, tuple((f"slot{number}", value) for number, value in enumerate(first)))


IN_A_LOOP = ForEach(HERE, "x", of("ab"), (Label(HERE, "inside"),))


@pytest.mark.parametrize(
    ("statements", "code", "words"),
    [
        ((Goto(HERE, "inside"), IN_A_LOOP), Code.MISPLACED, "jump into a block"),
        ((Goto(HERE, "inside", comes_back=True), IN_A_LOOP), Code.MISPLACED, "jump to inside"),
        ((OnError(HERE, resume=False, label="inside"), IN_A_LOOP), Code.MISPLACED, "jump to inside"),
        ((Goto(HERE, "insid"), Label(HERE, "inside")), Code.UNKNOWN_LABEL, "insid"),
        ((Leave(HERE, "for"),), Code.MISPLACED, "not inside a for"),
        ((Leave(HERE, "loop"),), Code.MISPLACED, "not inside a loop"),
        ((Leave(HERE, "select"),), Code.MISPLACED, "not inside a select"),
        ((Leave(HERE, "sub"),), Code.MISPLACED, "EXIT SUB is not inside a SUB"),
        ((Continue(HERE, "while"),), Code.MISPLACED, "not inside a while"),
        ((Evaluate(HERE, Apply(HERE, "work", ())),), Code.WRONG_COUNT, "WORK takes 1 argument, got 0"),
        ((Evaluate(HERE, Apply(HERE, "left", (of("a"),))),), Code.WRONG_COUNT, "LEFT takes"),
        ((Evaluate(HERE, Apply(HERE, "wurk", (of(1),))),), Code.UNKNOWN_FUNCTION, "unknown function WURK"),
        ((Assign(HERE, named("a"), of(float("inf"))),), Code.SYNTAX, "too large"),
        ((Goto(HERE, "of_sub"),), Code.UNKNOWN_LABEL, "of_sub"),
    ],
)
def test_what_cannot_run_is_refused_with_its_place(statements: tuple[Statement, ...], code: Code, words: str) -> None:
    work = Define(At(9, 1), "work", ("n",), (Label(At(10, 1), "of_sub"),))
    with pytest.raises(ScriptError, match=words) as refused:
        program_of(a_unit(*statements), [work])
    assert (refused.value.fault.code, refused.value.fault.at) == (code, HERE)


def test_a_goto_out_of_a_block_and_within_one_is_fine() -> None:
    body = (
        Label(HERE, "top"),
        If(
            HERE,
            ((of(1), (Label(HERE, "here"), If(HERE, ((of(0), (Goto(HERE, "here"), Goto(HERE, "top"))),), ()))),),
            (),
        ),
        Return(HERE, of(5)),
    )
    assert program_of(a_unit(*body), []).keywords == ()


def test_code_is_made_of_a_sum_of_ten_thousand_parts_and_of_blocks_too_deep_none() -> None:
    long: Expression = of(0)
    for _ in range(10_000):
        long = Binary(HERE, "+", long, of(1))
    deep: Statement = Return(HERE, of(1))
    for _ in range(3000):
        deep = If(HERE, ((of(1), (deep,)),), ())
    program = program_of(a_unit(Return(HERE, long)), [])
    assert len(program.procedures[""].code) > 20_000
    with pytest.raises(ScriptError) as refused:
        program_of(a_unit(deep), [])
    assert refused.value.fault.code is Code.TOO_DEEP


def test_a_program_knows_what_it_may_want_and_call_and_nothing_of_subs_it_never_reaches() -> None:
    reached = Define(HERE, "reached", (), (Evaluate(HERE, want("GET", of("url"))),))
    far = Define(HERE, "far", (), (Evaluate(HERE, Apply(HERE, "reached", ())),))
    never = Define(
        HERE, "never", (), (Evaluate(HERE, want("SHELL", of("rm"))), Evaluate(HERE, want("CALL", of("bad"))))
    )
    body = (
        Evaluate(HERE, Apply(HERE, "far", ())),
        Assign(HERE, named("a"), ListOf(HERE, (want("CALL", of("weather")), want("CALL", named("a"))))),
        Evaluate(HERE, want("TALK", want("HEAR"))),
    )
    program = program_of(a_unit(*body), [reached, far, never])
    assert program.keywords == ("CALL", "GET", "HEAR", "TALK")
    assert program.calls == ("weather",)
    assert set(program.procedures) == {"", "far", "reached"}


def test_a_name_alone_calls_what_needs_no_value() -> None:
    count = Define(HERE, "count_up", (), (Return(HERE, of(7)),))
    program = program_of(a_unit(Return(HERE, ListOf(HERE, (named("count_up"), named("pi"))))), [count])
    ran = run_through(program, {})
    assert "7" in repr(ran.event)
    assert "3.14" in repr(ran.event)
