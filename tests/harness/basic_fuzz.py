"""Fuzz test of the BASIC language:
`python -m tests.harness.basic_fuzz --inputs 1000000 --seconds 3600`.

Each input goes through lexer, parser, compiler and machine. The result must be problems with line numbers, or a run
that ends with an event within its limits: no exception, no slow input, no Python terms in messages. An input depends
only on its number: `--first 4711 --inputs 1` repeats it. Exits with 1 if there are findings.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from structlog.testing import capture_logs

from function_calls.basic.codes import RunCode, RunError, ScriptError, ScriptProblem
from function_calls.basic.environment import Limits
from function_calls.basic.functions import ARITIES
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.language.parser import parse
from function_calls.basic.machine.code_statements import program_of
from function_calls.basic.machine.machine import Ended, Event, Failed, KeywordRequest, Machine, Paused
from function_calls.basic.nodes import Define, Unit
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.trees import Trees
from tests.harness.basic_texts import a_text

LIMITS = Limits(steps=2000, memory_bytes=500_000, depth=8)
SLOW_SECONDS = 3.0
_STRETCH = 700
_PYTHONS_WORDS = re.compile(r"Traceback|\b\w+Error\b|object at 0x|NoneType|'(str|int|list|dict|float)' object")
_ANSWERS: tuple[Any, ...] = (None, True, 3, 1.5, "text", [1, "two", {"x": 3}], {"x": [1], "id": "z"}, "x" * 5000)
_FORMS = (
    *(
        "TALK {text}",
        "TALK TO {whom}, {text}",
        "BEGIN TALK {text:block} END TALK",
        "GET {url}",
        "SAVE {table}, {row...}",
    ),
    *("HEAR {into:variable} [AS {kind:word}]", "FIND {table} [, {filter}]", "PRINT {text}"),
    *(
        "WAIT {seconds}",
        "SET BOT MEMORY {key}, {value}",
        "GET BOT MEMORY {key}",
        "SEND MAIL {to}, {subject}, {body}",
        "CALL {name:word}",
    ),
)


@dataclass
class Found:
    """Results of many inputs."""

    inputs: int = 0
    ran: int = 0
    slowest_seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of inputs by result."""
    wrong: list[str] = field(default_factory=list)
    """Findings, each with its input."""


def fuzz(inputs: int, seconds: float = 3600, first: int = 0) -> Found:
    """Try `inputs` inputs, for at most `seconds` seconds."""
    found, forms = Found(), Forms(form_of(form) for form in _FORMS)
    ends = time.monotonic() + seconds
    for number in range(first, first + inputs):
        if time.monotonic() > ends or len(found.wrong) > 20:
            break
        began = time.perf_counter()
        with capture_logs() as logs:
            try:
                what = _tried(Random(number), forms, found)
            except Exception:  # noqa: BLE001 - finding exceptions is the purpose
                what = traceback.format_exc()
        took = time.perf_counter() - began
        found.slowest_seconds = max(found.slowest_seconds, took)
        if logs:
            what = f"logged: {logs[0]!r}"
        if took > SLOW_SECONDS:
            what = f"took {took:.1f} s"
        if what:
            found.wrong.append(f"input {number}: {what}\n{a_text(Random(number))!r}")
        found.inputs += 1
    return found


def _tried(random: Random, forms: Forms, found: Found) -> str:
    """Finding for this input, or empty."""
    if random.random() < 0.1:
        unit, definitions = Trees(random, depth=3).script()
        return _ran(unit, definitions, found, random)
    parsed = parse(a_text(Random(random.randrange(2**40))), forms, ARITIES)
    if parsed.faults:
        found.kinds[str(parsed.faults[0].code)] += 1
        return _of_faults(parsed.faults)
    return "".join(_ran(unit, list(parsed.script.definitions), found, random) for unit in parsed.script.units[:3])


def _of_faults(faults: tuple[ScriptProblem, ...]) -> str:
    for fault in faults:
        if fault.at.line < 1 or fault.at.column < 1 or not fault.message or _PYTHONS_WORDS.search(fault.message):
            return f"fault {fault!r}"
    return ""


def _ran(unit: Unit, definitions: list[Define], found: Found, random: Random) -> str:
    try:
        program, world = program_of(unit, definitions), FixedWorld()
    except ScriptError as error:
        found.kinds[f"code {error.fault.code}"] += 1
        return _of_faults((error.fault,))
    found.ran += 1
    machine = Machine(program, {"name": "Mia", "q": 1, "p": [1, {"x": 2}]}, world, LIMITS)
    through_store = random.random() < 0.2
    while True:
        event: Event = machine.execute(_STRETCH)
        if isinstance(event, Ended | Failed):
            break
        if through_store:
            machine = Machine.resumed(program, json.loads(json.dumps(machine.state())), world, LIMITS)
        if not isinstance(event, Paused):
            _answer(machine, event, random)
    found.kinds[event.code if isinstance(event, Failed) else "ended"] += 1
    if isinstance(event, Failed) and (event.code is RunCode.FAILED or _PYTHONS_WORDS.search(event.detail)):
        return f"event {event!r}"
    return "" if machine.steps <= LIMITS.steps else f"{machine.steps} steps"


def _answer(machine: Machine, wants: KeywordRequest, random: Random) -> None:
    if random.random() < 0.1:
        machine.fail(RunError(RunCode.UNAVAILABLE, f"{wants.keyword} has nothing"))
    else:
        machine.resume_with(random.choice(_ANSWERS))


def main() -> int:
    """Run with the options of the command line and print the findings."""
    parser = argparse.ArgumentParser(description="Tries the BASIC language with scripts by chance.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    options = parser.parse_args()
    began = time.monotonic()
    found = fuzz(options.inputs, options.seconds, options.first)
    took = time.monotonic() - began
    lines = [
        f"{found.inputs} inputs in {took:.0f} s, {found.ran} runs, the slowest took {found.slowest_seconds:.3f} s, "
        f"{len(found.wrong)} wrong",
        *(f"{count:8} {kind}" for kind, count in found.kinds.most_common()),
        *(f"\n{wrong}" for wrong in found.wrong),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
