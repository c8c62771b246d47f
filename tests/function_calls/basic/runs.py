"""Runs of scripts in tests: a world that does not move, and a host that answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from function_calls.basic.code import program_of
from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.events import Ended, Event, Failed, Paused, Wants
from function_calls.basic.forms import Forms, form_of
from function_calls.basic.functions import ARITIES
from function_calls.basic.limits import Limits
from function_calls.basic.machine import Machine
from function_calls.basic.parser import parse
from function_calls.basic.program import Program

Answers = Callable[[Wants], Any]
SMALL = Limits(steps=3000, memory_bytes=200_000, depth=8)


@dataclass
class StillWorld:
    """Always the same moment; ids and chance in the same order."""

    random: Random = field(default_factory=lambda: Random(7))
    language: str = "en"
    ids: int = 0

    def now(self) -> datetime:
        return datetime(2026, 3, 29, 12, 30, tzinfo=UTC)

    def unique(self) -> str:
        self.ids += 1
        return f"00000000-0000-4000-8000-{self.ids:012}"


@dataclass
class Ran:
    """What came of a run."""

    event: Ended | Failed
    wants: list[tuple[str, dict[str, Any]]]
    steps: int
    state: Any


def by_order(number: int, wants: Wants) -> Any:
    """What the host has for the keyword that is wanted as the n-th one, the same each time."""
    if wants.keyword == "FAIL":
        raise RunFault(RunCode.UNAVAILABLE, "it is not there")
    return Random(number).choice((None, True, number, 1.5, "text", [1, "two", {"x": 3}], {"x": [1, 2], "Y": "z"}))


def stored(data: Any) -> Any:
    """As it is read from a store."""
    return json.loads(json.dumps(data))


def run_through(
    program: Program,
    arguments: Mapping[str, Any],
    limits: Limits = SMALL,
    *,
    answer: Callable[[int, Wants], Any] = by_order,
    steps: int = 1_000_000_000,
    stop: bool = False,
) -> Ran:
    """Run it to its end, so many steps at a time, with `stop` through a store whenever it stops."""
    world = StillWorld()
    machine = Machine(program, arguments, world, limits)
    wanted: list[tuple[str, dict[str, Any]]] = []
    while True:
        event: Event = machine.go(steps)
        if isinstance(event, Ended | Failed):
            return Ran(event, wanted, machine.steps, machine.state())
        if stop:
            program = Program.of_json(stored(program.to_json()))
            machine = Machine.resumed(program, stored(machine.state()), world, limits)
        if isinstance(event, Paused):
            continue
        if stop:
            assert machine.go(steps) == event, "it says once more what it wants"
        wanted.append((event.keyword, event.arguments))
        try:
            machine.give(answer(len(wanted), event))
        except RunFault as fault:
            machine.fail(fault)


FORMS = Forms(
    form_of(form)
    for form in ("TALK {text}", "GET {url}", "HEAR {into:variable}", "FAIL {what}", "SAVE {table}, {row}", "PRINT {text}")
)
"""What the host of these scripts can do. TALK and PRINT are heard, FAIL fails, all else is answered in order."""


def program(text: str) -> Program:
    """The program of a script that has no fault."""
    parsed = parse(text, FORMS, ARITIES)
    assert not parsed.faults, parsed.faults
    return program_of(parsed.script.units[0], parsed.script.definitions)


@dataclass
class Heard:
    """What a script did."""

    event: Ended | Failed
    texts: list[Any]
    steps: int
    machine: Machine

    @property
    def value(self) -> Any:
        """What it returned."""
        assert isinstance(self.event, Ended), self.event
        return self.event.value

    @property
    def code(self) -> RunCode:
        """Why it failed."""
        assert isinstance(self.event, Failed), self.event
        return self.event.code


def run(text: str, *answers: Any, limits: Limits | None = None, **arguments: Any) -> Heard:
    """Run a script; its keywords other than TALK and PRINT are given `answers` in order, a RunFault by failing."""
    machine = Machine(program(text), arguments, StillWorld(), limits or Limits())
    waiting = iter(answers)
    texts: list[Any] = []
    while True:
        event = machine.go(1_000_000_000)
        if isinstance(event, Wants):
            answer = None if event.keyword in ("TALK", "PRINT") else next(waiting)
            if event.keyword in ("TALK", "PRINT"):
                texts.append(event.arguments["text"])
            if isinstance(answer, RunFault):
                machine.fail(answer)
            else:
                machine.give(answer)
        else:
            assert isinstance(event, Ended | Failed)
            return Heard(event, texts, machine.steps, machine)


def value_of(text: str, *answers: Any, **arguments: Any) -> Any:
    """What the script returns."""
    return run(text, *answers, **arguments).value
