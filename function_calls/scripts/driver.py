"""The driver of a run: lets the machine reckon in short stretches, and carries out what it wants in between."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.keywords import Asks, ScriptRun, Value
from function_calls.basic.machine import Ended, Failed, Machine, Paused, Wants
from function_calls.basic.nodes import At
from function_calls.failed_runs import own_words
from function_calls.scripts.ending import EndOfRun, NeedsYes
from function_calls.scripts.keyword_table import BoundKeyword, KeywordTable
from function_calls.spec import Question, ToolError
from services.json_values import JsonObject
from services.refs import Effect

_STRETCH_SECONDS = 0.002
"""How long a script may keep others of this process waiting."""
_FIRST_STEPS = 256
_FEWEST_STEPS, _MOST_STEPS = 16, 65_536
_WANT_SECONDS = 20e-6
"""What a keyword costs beside its own work."""

Pause = Callable[[], Awaitable[None]]


class Asked(NamedTuple):
    """The run goes on with the member's answer."""

    asks: Asks


class HeldUp(NamedTuple):
    """The run goes on with a person's yes."""

    question: Question


class Over(NamedTuple):
    """A keyword has ended the run."""


Stop = Ended | Failed | Asked | HeldUp | Over


@dataclass(slots=True)
class Spent:
    """What a run has used so far, questions included."""

    cpu_seconds: float = 0.0
    is_begun: bool = False
    """A keyword that acts only once has been carried out: what it did stays done."""


class Driver:
    """One run, from a stop to the next."""

    def __init__(
        self,
        machine: Machine,
        script: ScriptRun,
        table: KeywordTable,
        *,
        cpu_seconds: float,
        pause: Pause,
        spent: Spent | None = None,
        wants: Wants | None = None,
    ) -> None:
        """`wants`: what the run was held up with, which is carried out first. `pause` lets others of this process
        work."""
        self._machine = machine
        self._script = script
        self._table = table
        self._most_cpu_seconds = cpu_seconds
        self._pause = pause
        self.spent = spent or Spent()
        self._wants = wants
        self._steps = _FIRST_STEPS
        self._unpaused_seconds = 0.0

    async def run(self) -> Stop:
        """Go on until the run ends or asks. Raises what a keyword raises that it should not."""
        while True:
            if self.spent.cpu_seconds > self._most_cpu_seconds:
                return Failed(RunCode.TIME, "", self._script.at)
            if self._unpaused_seconds >= _STRETCH_SECONDS:
                self._unpaused_seconds = 0.0
                await self._pause()
            event = self._wants or self._go()
            if isinstance(event, Wants):
                stop = await self._carried_out(event)
                if stop is not None:
                    return stop
            elif not isinstance(event, Paused):
                return event

    def state(self) -> JsonObject:
        """What a run needs to go on from where it has asked or is held up."""
        wants, script = self._wants, self._script
        return {
            "machine": self._machine.state(),
            "wants": None if wants is None else [wants.keyword, wants.arguments, list(wants.at)],
            "asked": script.asked,
            "kept": script.kept,
            "outside": script.outside,
            "cpu_seconds": self.spent.cpu_seconds,
            "is_begun": self.spent.is_begun,
        }

    def _go(self) -> Ended | Failed | Wants | Paused:
        """Let the machine reckon for a stretch."""
        began = time.thread_time()
        event = self._machine.go(self._steps)
        took = time.thread_time() - began
        self._take(took)
        if isinstance(event, Paused):
            fitting = self._steps * _STRETCH_SECONDS / max(took, 1e-6)
            self._steps = int(min(max(fitting, _FEWEST_STEPS), _MOST_STEPS, self._steps * 4))
        return event

    def _take(self, seconds: float) -> None:
        self.spent.cpu_seconds += seconds
        self._unpaused_seconds += seconds

    async def _carried_out(self, wants: Wants) -> Stop | None:
        """Carry out a keyword, and hand the machine what it gives. None: the run goes on."""
        script, keyword = self._script, self._table.find(wants.keyword)
        self._take(_WANT_SECONDS)
        script.at = wants.at
        try:
            if keyword is None:
                raise RunFault(RunCode.UNAVAILABLE, script.call.say("basic.no_keyword", keyword=wants.keyword))
            given = await self._given(keyword, wants)
        except RunFault as fault:
            self._settled()
            self._machine.fail(fault)
            return None
        except NeedsYes as held_up:
            self._waits(wants)
            return HeldUp(held_up.question)
        except EndOfRun:
            return Over()
        if isinstance(given, Asks):
            self._waits(wants)
            return Asked(given)
        self._settled()
        self._machine.give(given)
        return None

    async def _given(self, keyword: BoundKeyword, wants: Wants) -> Value | Asks:
        script = self._script
        was_outside = script.outside
        if keyword.effect is Effect.ONCE:
            self.spent.is_begun = True
        try:
            given = await keyword.handler(script, wants.arguments)
        except ToolError as error:
            raise RunFault(RunCode.FAILED, own_words(error, script.call.profile.texts)) from None
        finally:
            if script.outside and not was_outside:
                script.call.has_read_outside()
        return given

    def _waits(self, wants: Wants) -> None:
        self._wants = wants
        self._script.asked += 1

    def _settled(self) -> None:
        self._wants = None
        self._script.asked = 0
        self._script.answer = None


def wants_from_json(data: list[object] | None) -> Wants | None:
    """What a run was held up with, as `Driver.state` wrote it."""
    if data is None:
        return None
    keyword, arguments, at = data
    assert isinstance(keyword, str) and isinstance(arguments, dict) and isinstance(at, list)
    return Wants(keyword, arguments, At(*at))
