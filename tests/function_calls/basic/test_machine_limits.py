"""Limits of a run: steps, memory and nesting depth of values."""

from __future__ import annotations

import json
import time

import pytest

from function_calls.basic.codes import RunCode
from function_calls.basic.environment import Limits
from function_calls.basic.machine.machine import Failed, Machine, Paused
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.scripts import Heard, program, run, value_of

MEGABYTE = Limits(memory_bytes=1024 * 1024)


def forever(body: str) -> str:
    return f"{body}\nWHILE TRUE\n{body}\nWEND"


@pytest.mark.parametrize(
    "script",
    [
        "WHILE TRUE\nWEND",
        "DO\nLOOP",
        "here:\nGOTO here",
        "FOR i = 1 TO 9E15\nNEXT",
        "FOR i = 1 TO 2\ni = 1\nNEXT",
        "FOR i = 1 TO 2 STEP 0.000000001\nNEXT",
        "WHILE TRUE\nCONTINUE WHILE\nWEND",
        "SUB s()\nEND SUB\nWHILE TRUE\ns\nWEND",
        "ON ERROR RESUME NEXT\nWHILE 1 / 0 = 0 OR TRUE\nx = 1 / 0\nWEND\nagain:\nGOTO again",
        "FUNCTION f(n)\nON ERROR RESUME NEXT\nx = f(n + 1)\nEND FUNCTION\nWHILE TRUE\nx = f(1)\nWEND",
    ],
)
def test_what_never_ends_is_ended(script: str) -> None:
    heard = run(script, limits=Limits(steps=20_000))
    assert heard.code in (RunCode.STEPS, RunCode.DEPTH)
    assert heard.steps <= 20_000


def test_a_run_takes_so_many_steps_at_a_time() -> None:
    machine = Machine(program("WHILE TRUE\nWEND"), {}, FixedWorld(), Limits(steps=1000))
    assert machine.execute(300) == Paused()
    assert machine.steps == 300
    assert machine.execute(0) == Paused()
    assert machine.steps == 301
    event = machine.execute(10_000)
    assert isinstance(event, Failed)
    assert event.code is RunCode.STEPS
    assert machine.steps == 1000
    assert machine.execute(10) == event


@pytest.mark.parametrize(
    "script",
    [
        'a$ = "x"\nWHILE TRUE\na$ = a$ + a$\nWEND',
        'WHILE TRUE\na$ = a$ & "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx${a$}"\nWEND',
        "a = [1]\nWHILE TRUE\na = a + a\nWEND",
        "a = [1]\nWHILE TRUE\na = [a, a]\nWEND",
        "a = [1]\nWHILE TRUE\nPUSH a, a\nWEND",
        "a = [[1, 2, 3]]\nWHILE TRUE\nPUSH b, a\nPUSH a, b\nWEND",
        'a.x = 1\nWHILE TRUE\na.x = {"l": a, "r": a}\nWEND',
        'a.x = 1\nWHILE TRUE\na["k" & n] = a\nn = n + 1\nWEND',
        "WHILE TRUE\nWITH a\nb = a\nc = a\nEND WITH\nWEND",
        'WHILE TRUE\nPUSH a, STRING(1000, "x")\nWEND',
        "DIM A(1000000000)",
        "DIM a(150000)\nDIM b(150000)\nDIM c(150000)",
        "a[999999999] = 1",
        'a = STRING(900000, "x")\nb = a\nc = GET "x"',
        'a = REPEAT("x", 1000000000)',
        'a = STRING(100000, "x")\nFUNCTION f(n)\nown = n\nRETURN f(n) + own\nEND FUNCTION\nx = f(a) + GET "x"',
        'a = STRING(300000, "x")\nFOR EACH c IN a\nNEXT',
        'a = STRING(900000, "€")',
        'a = SPLIT(STRING(300000, ","), ",")',
    ],
)
def test_growing_without_end_is_ended_before_it_hurts(script: str) -> None:
    began = time.thread_time()
    heard = run(script, "given", limits=MEGABYTE)
    assert heard.code in (RunCode.MEMORY, RunCode.DEPTH), heard.event
    assert time.thread_time() - began < 1.5
    assert len(json.dumps(heard.machine.state())) < 20 * 1024 * 1024


def test_memory_that_is_let_go_can_be_used_again() -> None:
    script = 'FOR i = 1 TO 300\na = STRING(100000, "x") & i\nb = [a, i]\nNEXT\nRETURN LEN(b[0])'
    assert run(script, limits=MEGABYTE).value == 100_003


def test_many_small_things_are_counted_as_well() -> None:
    heard = run('FOR i = 1 TO 100000\nPUSH rows, {"id": i, "name": "a name"}\nNEXT', limits=MEGABYTE)
    assert heard.code is RunCode.MEMORY


def test_a_value_from_outside_counts() -> None:
    assert run('x = GET "a"\nRETURN 1', ["x" * 1000] * 2000, limits=MEGABYTE).code is RunCode.MEMORY
    assert run("RETURN 1", limits=MEGABYTE, big="x" * 2_000_000).code is RunCode.MEMORY


@pytest.mark.parametrize(
    "script",
    [
        "WHILE TRUE\na = [a]\nWEND",
        'a = {}\nWHILE TRUE\na = {"a": a}\nWEND',
        "WHILE TRUE\nWITH a\nb = a\nEND WITH\nWEND",
        "WHILE TRUE\na.b.c[0].d = a\nWEND",
        "a" + ".b" * 150 + " = 1",
        "a = " + "[" * 60 + "1" + "]" * 60 + "\na" + "[0]" * 59 + " = a",
    ],
)
def test_values_stand_only_so_deep_within_one_another(script: str) -> None:
    heard = run(script, limits=Limits(memory_bytes=64 * 1024 * 1024))
    assert heard.code is RunCode.MEMORY
    json.dumps(heard.machine.state())


def test_what_is_given_too_deep_is_refused() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    assert run('x = GET "a"', deep).code is RunCode.MEMORY


def test_work_on_large_values_counts_as_many_steps() -> None:
    small, large = (
        run(f'a = STRING({length}, "x")\nFOR i = 1 TO 100\nb = UCASE(a)\nNEXT').steps for length in (10, 900_000)
    )
    assert large > small + 20_000


def test_a_loop_over_a_list_by_its_index_costs_no_more_for_a_longer_list() -> None:
    def steps(length: int) -> Heard:
        return run(f"DIM a({length})\nFOR i = 1 TO 100\nx = a[i - 1]\nn = UBOUND(a)\nNEXT")

    assert steps(50_000).steps - steps(100).steps < 3000


def test_whole_numbers_beyond_64_bits_become_fractions_and_nothing_becomes_infinite() -> None:
    assert value_of("a = 9223372036854775807\nb = a + 1\nRETURN [a, b]") == [9223372036854775807, float(2**63)]
    assert run("a = 1E308 * 10").code is RunCode.BAD_VALUE
    assert value_of('RETURN GET "a"', 2**70) == float(2**70)


@pytest.mark.parametrize("call", ['SORT(list, "DESC")', "SORT(list)", "UNIQUE(list)", "MAX(list)", "TOYAML(list)"])
def test_putting_a_long_list_in_order_costs_steps_for_all_that_is_compared(call: str) -> None:
    def steps(count: int) -> int:
        return run(f'list = SPLIT(REPEAT("ab,", {count}), ",")\nresult = {call}').steps

    assert steps(8000) > 3 * steps(2000) > 2000
