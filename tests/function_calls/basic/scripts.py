"""Scripts as written by their authors, and a minimal host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.environment import Limits
from function_calls.basic.functions import ARITIES
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.language.parser import parse
from function_calls.basic.machine.code_statements import program_of
from function_calls.basic.machine.machine import Ended, Failed, KeywordRequest, Machine
from function_calls.basic.machine.program import Program
from tests.fakes.basic_world import FixedWorld

FORMS = Forms(
    form_of(form)
    for form in (
        "TALK {text}",
        "GET {url}",
        "HEAR {into:variable}",
        "FAIL {what}",
        "SAVE {table}, {row}",
        "PRINT {text}",
    )
)
"""Keywords of the host. TALK and PRINT are recorded, FAIL fails, all others get the given answers in order."""


def program(text: str) -> Program:
    """Program of a valid script."""
    parsed = parse(text, FORMS, ARITIES)
    assert not parsed.faults, parsed.faults
    return program_of(parsed.script.units[0], parsed.script.definitions)


@dataclass
class Heard:
    """Output and end of a script."""

    event: Ended | Failed
    texts: list[Any]
    steps: int
    machine: Machine

    @property
    def value(self) -> Any:
        """Its result."""
        assert isinstance(self.event, Ended), self.event
        return self.event.value

    @property
    def code(self) -> RunCode:
        """Its error code."""
        assert isinstance(self.event, Failed), self.event
        return self.event.code


def run(text: str, *answers: Any, limits: Limits | None = None, **arguments: Any) -> Heard:
    """Run a script. Keywords other than TALK and PRINT get `answers` in order; an answer that is a RunError is
    raised."""
    machine = Machine(program(text), arguments, FixedWorld(), limits or Limits())
    waiting = iter(answers)
    texts: list[Any] = []
    while True:
        event = machine.execute(1_000_000_000)
        if isinstance(event, KeywordRequest):
            answer = None if event.keyword in ("TALK", "PRINT") else next(waiting)
            if event.keyword in ("TALK", "PRINT"):
                texts.append(event.arguments["text"])
            if isinstance(answer, RunError):
                machine.fail(answer)
            else:
                machine.resume_with(answer)
        else:
            assert isinstance(event, Ended | Failed)
            return Heard(event, texts, machine.steps, machine)


def value_of(text: str, *answers: Any, **arguments: Any) -> Any:
    """Result of the script."""
    return run(text, *answers, **arguments).value
