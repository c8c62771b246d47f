"""Properties of all scripts, including meaningless ones: they end within their limits, and storing their state changes
nothing."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from function_calls.basic.codes import RunCode, ScriptError, ScriptProblem
from function_calls.basic.environment import Limits
from function_calls.basic.machine.code_statements import program_of
from function_calls.basic.machine.machine import Ended, Failed
from function_calls.basic.machine.program import Program
from tests.function_calls.basic.runs import SMALL, run_through, stored
from tests.function_calls.basic.trees import Trees

SEEDS = st.integers(0, 2**32)
FEW = Limits(steps=400, memory_bytes=20_000, depth=4)
ARGUMENTS = {"p": [1, {"x": "y"}], "Username": "Mia"}


def a_program(seed: int) -> Program | ScriptProblem:
    """A random program, or its problem."""
    try:
        return program_of(*Trees(Random(seed)).script())
    except ScriptError as error:
        return error.fault


@settings(max_examples=150)
@given(SEEDS)
def test_any_script_ends_within_its_limits_and_never_by_a_fault_of_ours(seed: int) -> None:
    program = a_program(seed)
    if isinstance(program, ScriptProblem):
        assert program.at.line >= 1
        assert program.message
        return
    with capture_logs() as logs:
        ran = run_through(program, ARGUMENTS)
    assert not logs
    assert isinstance(ran.event, Ended | Failed)
    assert not isinstance(ran.event, Failed) or ran.event.code is not RunCode.FAILED
    assert ran.steps <= SMALL.steps


@settings(max_examples=150)
@given(SEEDS, st.sampled_from((1, 2, 7, 100_000)))
def test_a_run_that_is_stored_and_read_at_every_stop_is_the_same_as_one_that_never_was(seed: int, steps: int) -> None:
    program = a_program(seed)
    if isinstance(program, ScriptProblem):
        return
    straight = run_through(program, ARGUMENTS, FEW)
    stopped = run_through(program, ARGUMENTS, FEW, steps=steps, stop=True)
    assert repr(stopped.event) == repr(straight.event)
    assert stopped.wants == straight.wants
    assert stopped.steps == straight.steps
    assert stored(stopped.state) == stored(straight.state)


def test_scripts_by_chance_are_worth_trying() -> None:
    ends: Counter[str] = Counter()
    for seed in range(150):
        program = a_program(seed)
        if isinstance(program, Program):
            ran = run_through(program, ARGUMENTS)
            ends[ran.event.code if isinstance(ran.event, Failed) else "ended"] += 1
            ends["wanted"] += bool(ran.wants)
        else:
            ends[f"fault {program.code}"] += 1
    assert ends["ended"] > 20
    assert ends["wanted"] > 20
    assert len(ends) > 10, ends
