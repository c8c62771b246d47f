"""Runs of programs, and a host that answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import Limits
from function_calls.basic.machine.machine import Ended, Event, Failed, KeywordRequest, Machine, Paused
from function_calls.basic.machine.program import Program
from tests.fakes.basic_world import FixedWorld

Answers = Callable[[KeywordRequest], Any]
SMALL = Limits(steps=3000, memory_bytes=200_000, depth=8)


@dataclass
class Ran:
    """Result of a run."""

    event: Ended | Failed
    wants: list[tuple[str, dict[str, Any]]]
    steps: int
    state: Any


def by_order(number: int, wants: KeywordRequest) -> Any:
    """The host's answer to the n-th keyword; depends only on the arguments."""
    if wants.keyword == "FAIL":
        raise RunError(RunCode.UNAVAILABLE, "it is not there")
    return Random(number).choice((None, True, number, 1.5, "text", [1, "two", {"x": 3}], {"x": [1, 2], "Y": "z"}))


def stored(data: Any) -> Any:
    """The data after a round trip through the store."""
    return json.loads(json.dumps(data))


def run_through(
    program: Program,
    arguments: Mapping[str, Any],
    limits: Limits = SMALL,
    *,
    answer: Callable[[int, KeywordRequest], Any] = by_order,
    steps: int = 1_000_000_000,
    stop: bool = False,
) -> Ran:
    """Run the program to its end, with a number of steps at a time; with `stop`, it is stored and restored at each
    stop."""
    world = FixedWorld()
    machine = Machine(program, arguments, world, limits)
    wanted: list[tuple[str, dict[str, Any]]] = []
    while True:
        event: Event = machine.execute(steps)
        if isinstance(event, Ended | Failed):
            return Ran(event, wanted, machine.steps, machine.state())
        if stop:
            program = Program.of_json(stored(program.to_json()))
            machine = Machine.resumed(program, stored(machine.state()), world, limits)
        if isinstance(event, Paused):
            continue
        if stop:
            assert machine.execute(steps) == event, "it says once more what it wants"
        wanted.append((event.keyword, event.arguments))
        try:
            machine.resume_with(answer(len(wanted), event))
        except RunError as fault:
            machine.fail(fault)
