"""The state of a run: plain data at every stop, valid for one program, and independent of other runs."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import Limits
from function_calls.basic.machine.machine import Ended, Failed, KeywordRequest, Machine, Paused, StaleState
from function_calls.basic.machine.program import BadProgram, Program
from function_calls.basic.nodes import At
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.runs import stored
from tests.function_calls.basic.scripts import program, run, value_of

ASKING = program(
    """
    FUNCTION asked(n)
        FOR i = n TO 3
            FOR EACH x IN ["a", "b"]
                asked = asked + (GET x + i)
            NEXT
        NEXT
    END FUNCTION
    ON ERROR RESUME NEXT
    RETURN "got " + asked(2) + asked(3)
    """
)


def a_machine(of: Program = ASKING, **arguments: Any) -> Machine:
    return Machine(of, arguments, FixedWorld(), Limits())


def resumed(machine: Machine, of: Program = ASKING) -> Machine:
    return Machine.resumed(of, orjson.loads(orjson.dumps(machine.state())), FixedWorld(), Limits())


def test_a_run_goes_on_where_it_was_in_another_process() -> None:
    machine = a_machine()
    asked = []
    while isinstance(event := machine.execute(1000), KeywordRequest):
        machine = resumed(machine)
        assert machine.execute(1000) == event
        asked.append(event.arguments["url"])
        if event.arguments["url"] == "b3":
            machine.fail(RunError(RunCode.UNAVAILABLE, "gone"))
        else:
            machine.resume_with(event.arguments["url"].upper())
    assert asked == ["a2", "b2", "a3", "b3", "a3", "b3"]
    assert event == Ended("got A2B2A3A3")


def test_a_keyword_is_wanted_with_its_place_and_arguments() -> None:
    machine = a_machine(program('x = 1\n  SAVE "orders", {"id": x}'))
    assert machine.execute(100) == KeywordRequest("SAVE", {"table": "orders", "row": {"id": 1}}, At(2, 3))


def test_steps_are_counted_over_stops() -> None:
    machine = a_machine()
    machine.execute(1000)
    before = machine.steps
    assert before > 0
    assert resumed(machine).steps == before


def test_running_on_does_not_change_a_state_that_was_taken() -> None:
    machine = a_machine()
    machine.execute(1000)
    state = machine.state()
    kept = stored(state)
    machine.resume_with("x")
    machine.execute(1000)
    assert state == kept
    assert machine.state() != kept


def test_a_state_of_another_program_is_refused() -> None:
    state = a_machine().state()
    with pytest.raises(StaleState):
        Machine.resumed(program("RETURN 2"), state, FixedWorld(), Limits())


@pytest.mark.parametrize(
    "change",
    [
        {"program": None},
        {"frames": []},
        {"frames": [{}]},
        {"frames": None},
        {"top": 5},
        {"error": []},
        {"steps": "many"},
        {"held": None},
    ],
)
def test_what_is_no_state_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(StaleState):
        Machine.resumed(ASKING, {**a_machine().state(), **change}, FixedWorld(), Limits())


@pytest.mark.parametrize("change", [{"procedure": "gone"}, {"position": 10_000}, {"position": -1}, {"variables": 3}])
def test_a_state_that_stands_nowhere_is_refused(change: dict[str, Any]) -> None:
    state = a_machine().state()
    state["frames"][0].update(change)
    with pytest.raises(StaleState):
        Machine.resumed(ASKING, state, FixedWorld(), Limits())


def test_what_a_keyword_does_with_its_arguments_reaches_no_variable() -> None:
    machine = a_machine(program('row = {"id": [1]}\nSAVE "t", row\nRETURN row'))
    event = machine.execute(100)
    assert isinstance(event, KeywordRequest)
    event.arguments["row"]["id"].append("changed")
    machine.resume_with(None)
    assert machine.execute(100) == Ended({"id": [1]})


def test_what_a_keyword_gives_stays_as_it_was_given() -> None:
    machine = a_machine(program('rows = GET "x"\nRETURN rows'))
    machine.execute(100)
    given = [{"a": 1}]
    machine.resume_with(given)
    given[0]["a"] = 2
    given.append({})
    assert machine.execute(100) == Ended([{"a": 1}])


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((1, "a"), [1, "a"]),
        ({1: "a"}, {"1": "a"}),
        (Colour.RED, "red"),
        (math.nan, None),
        (-math.inf, None),
        (2**64, float(2**64)),
        (10**400, None),
        ("half \ud83d", "half \ufffd\ufffd\ufffd"),
        ([True, None, 1.5], [True, None, 1.5]),
    ],
)
def test_what_comes_from_outside_becomes_what_a_script_can_hold(given: Any, taken: Any) -> None:
    value = value_of('RETURN GET "x"', given)
    assert value == taken
    assert orjson.loads(orjson.dumps(value)) == taken


def test_what_is_no_data_ends_the_run_and_is_logged_without_its_content() -> None:
    with capture_logs() as logs:
        heard = run('ON ERROR RESUME NEXT\nx = GET "x"\nRETURN 1', {"when": object()})
    assert heard.code is RunCode.FAILED
    assert isinstance(heard.event, Failed)
    assert heard.event.at.line == 2
    assert [entry["event"] for entry in logs] == ["script_broke_the_interpreter"]


def test_a_run_can_be_failed_between_its_steps_and_stays_failed() -> None:
    machine = a_machine(program("WHILE TRUE\nWEND"))
    assert machine.execute(10) == Paused()
    machine.fail(RunError(RunCode.TIME, "too long"))
    machine = resumed(machine, program("WHILE TRUE\nWEND"))
    event = machine.execute(10)
    assert isinstance(event, Failed)
    assert (event.code, event.detail) == (RunCode.TIME, "too long")
    machine.resume_with(5)
    assert machine.execute(10) == event


def test_a_value_that_nobody_wants_is_ignored() -> None:
    machine = a_machine(program("RETURN 1"))
    machine.resume_with(5)
    assert machine.execute(10) == Ended(1)


def test_a_program_comes_back_as_it_was_stored() -> None:
    again = Program.of_json(orjson.loads(orjson.dumps(ASKING.to_json())))
    assert again == ASKING
    assert again.digest == ASKING.digest


def test_what_is_no_program_is_refused() -> None:
    written = stored(ASKING.to_json())
    for unfit in ({}, {**written, "version": 0}, {**written, "procedures": {"": {}}}, {**written, "procedures": 5}):
        with pytest.raises(BadProgram):
            Program.of_json(unfit)


def test_two_programs_have_one_digest_if_they_do_the_same_at_the_same_places() -> None:
    assert program("RETURN 1").digest == program("RETURN 1 ' one").digest
    assert program("RETURN 1").digest != program("RETURN 2").digest
    assert program("RETURN 1").digest != program("\nRETURN 1").digest
