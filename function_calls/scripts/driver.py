"""The driver of a run: lets the machine reckon in short stretches, and carries out what it wants in between."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from function_calls.basic.code_statements import UNWORDED_ASSERTION
from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.events import Ended, Failed, Paused, Wants
from function_calls.basic.keywords import Asks, ScriptRun, Value
from function_calls.basic.machine import Machine
from function_calls.failed_runs import own_words
from function_calls.scripts.calling import STOPPED_WITHIN
from function_calls.scripts.ending import EndOfRun, HeldUpWithin
from function_calls.scripts.faults import count_up
from function_calls.scripts.keyword_table import BoundKeyword, KeywordTable, changes_what_is_kept
from function_calls.scripts.line import Line, Pause
from function_calls.scripts.metered import Metered
from function_calls.scripts.session import without_given
from function_calls.spec import Question, ToolError
from services.json_values import JsonObject
from services.refs import Effect

_STRETCH_SECONDS = 0.002
"""How long a script may keep others of this process waiting."""
_FIRST_STEPS = 256
_FEWEST_STEPS, _MOST_STEPS = 16, 65_536
_MANY = 1000
"""Items of a value that is worth a thread."""
_LARGE_BYTES = 512 * 1024
"""Of all values of a run. Beyond this a single step, such as the comparison of two lists, can take longer than a
stretch, and no step can be interrupted; so the run reckons in a thread."""
_STRETCH_BESIDE_SECONDS = 0.005
"""The same stretch there, where the interpreter lets others work in between."""
MOST_CHANGES = 500
"""Statements of one run that change what is kept: each is written to the disk by itself, and nobody reviews more. Lists
are saved with one."""
_CHANGES = "run.changes"
_WANT_SECONDS = 20e-6
"""What a keyword costs beside its own work."""

_WORDED = frozenset(
    {RunCode.BAD_VALUE, RunCode.NO_SUCH_THING, RunCode.NOT_ALLOWED, RunCode.UNAVAILABLE, RunCode.FAILED}
)
"""The faults of keywords whose words are for people."""


class Asked(NamedTuple):
    """The run goes on with the member's answer."""

    asks: Asks


class HeldUp(NamedTuple):
    """The run goes on with the answer to a question of what it has called."""

    question: Question


class Over(NamedTuple):
    """A keyword has ended the run."""


Stop = Ended | Failed | Asked | HeldUp | Over


@dataclass(slots=True)
class Spent:
    """What a run has used so far, questions included."""

    cpu_seconds: float = 0.0
    is_begun: bool = False
    """What acts only once has been done, and stays done."""


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
        given: Mapping[str, Value] | None = None,
        line: Line | None = None,
    ) -> None:
        """`pause` lets others of this process work, and `line` is that of all runs which reckon beside this one. A
        machine that was held up wants once more what it had wanted. `given`: the variables that the settings gave it,
        which are not stored."""
        self._machine = machine
        self._script = script
        self._table = table
        self._most_cpu_seconds = cpu_seconds
        self._pause = pause
        self._line = line or Line()
        self.spent = spent or Spent()
        self._settings_gave = given or {}
        self._steps = _FIRST_STEPS
        self._fault: RunFault | None = None
        self._unpaused_seconds = 0.0

    async def run(self) -> Stop:
        """Go on until the run ends or asks. Raises what a keyword raises that it should not."""
        while True:
            if self.spent.cpu_seconds > self._most_cpu_seconds:
                self._machine.fail(RunFault(RunCode.TIME, f"it reckoned for more than {self._most_cpu_seconds:g} s"))
            if self._unpaused_seconds >= _STRETCH_SECONDS:
                self._unpaused_seconds = 0.0
                await self._line.turn(self.spent.cpu_seconds, self._pause)
            event = await self._go()
            if isinstance(event, Wants):
                stop = await self._carried_out(event)
                if stop is not None:
                    return stop
            elif not isinstance(event, Paused):
                return event

    def is_worded(self, failed: Failed) -> bool:
        """Whether what `failed` tells is for people: a keyword's words or the script's own. What the language says of a
        script is for its author, and stands in the log."""
        if failed.code in (RunCode.THROWN, RunCode.ASSERTION):
            return failed.detail not in ("", UNWORDED_ASSERTION)
        fault = self._fault
        if failed.code not in _WORDED:
            return False
        return fault is not None and bool(fault.detail) and (fault.code, fault.detail) == (failed.code, failed.detail)

    @property
    def stopped_within(self) -> str:
        """Why a script stopped that this one called last."""
        return str(self._script.kept.get(STOPPED_WITHIN, ""))

    def state(self) -> JsonObject:
        """What a run needs to go on from where it has asked or is held up."""
        script = self._script
        return {
            "machine": without_given(self._machine.state(), self._settings_gave),
            "asked": script.asked,
            "kept": script.kept,
            "outside": script.outside,
            "cpu_seconds": self.spent.cpu_seconds,
            "is_begun": self.spent.is_begun,
        }

    async def _go(self) -> Ended | Failed | Wants | Paused:
        """Let the machine reckon for a stretch."""
        most_seconds = _STRETCH_SECONDS
        if self._machine.held_bytes < _LARGE_BYTES:
            event, took = self._stretch()
        else:
            most_seconds = _STRETCH_BESIDE_SECONDS
            async with self._line.beside:
                event, took = await self._script.call.threads.run(self._stretch)
        self._take(took)
        if isinstance(event, Paused):
            fitting = self._steps * most_seconds / max(took, 1e-6)
            self._steps = int(min(max(fitting, _FEWEST_STEPS), _MOST_STEPS, self._steps * 4))
        return event

    def _stretch(self) -> tuple[Ended | Failed | Wants | Paused, float]:
        """What the machine came to, and what that took of this thread."""
        began = time.thread_time()
        event = self._machine.go(self._steps)
        return event, time.thread_time() - began

    def _take(self, seconds: float) -> None:
        self.spent.cpu_seconds += seconds
        self._unpaused_seconds += seconds

    async def _carried_out(self, wants: Wants) -> Stop | None:
        """Carry out a keyword, and hand the machine what it gives. None: the run goes on."""
        self._take(_WANT_SECONDS)
        self._script.at = wants.at
        try:
            given = await self._given(self._keyword(wants), wants)
        except RunFault as fault:
            self._settled()
            self._fault = fault
            self._machine.fail(fault)
            return None
        except HeldUpWithin as held_up:
            self._script.asked += 1
            return HeldUp(held_up.question)
        except EndOfRun:
            return Over()
        if isinstance(given, Asks):
            self._script.asked += 1
            return Asked(given)
        self._settled()
        await self._give(given)
        return None

    async def _give(self, given: Value) -> None:
        """Hand the machine a value. It copies and measures it, for large ones beside the event loop."""
        if not _is_large(given):
            self._machine.give(given)
            return
        await self._script.call.threads.run(self._machine.give, given)

    def _keyword(self, wants: Wants) -> BoundKeyword:
        """What is wanted. Raises RunFault where the operator has taken it away since the script was compiled."""
        keyword = self._table.find(wants.keyword)
        if keyword is None:
            text = self._script.call.say("basic.no_keyword", keyword=wants.keyword)
            raise RunFault(RunCode.UNAVAILABLE, text)
        return keyword

    async def _given(self, keyword: BoundKeyword, wants: Wants) -> Value | Asks:
        script = self._script
        is_change = keyword.effect is Effect.ONCE or changes_what_is_kept(keyword)
        if is_change and not script.asked:
            count_up(script, _CHANGES, MOST_CHANGES, "too_many_changes")
        was_outside = script.outside
        work = Metered(keyword.handler(script, wants.arguments))
        try:
            given = await work
        except ToolError as error:
            raise RunFault(RunCode.FAILED, own_words(error, script.call.profile.texts)) from None
        finally:
            self._take(work.seconds + script.thread_seconds)
            if work.has_waited:
                self._unpaused_seconds = work.last_seconds
            script.thread_seconds = 0.0
            if script.outside and not was_outside:
                script.call.has_read_outside()
        self.spent.is_begun = self.spent.is_begun or keyword.effect is Effect.ONCE
        return given

    def _settled(self) -> None:
        self._script.asked = 0
        self._script.answer = None


def _is_large(value: Value) -> bool:
    """Whether copying the value takes long: many items, its own and those of what stands in it. Looks at few."""
    count, open_values = 0, [value]
    while open_values and count < _MANY:
        inner = open_values.pop()
        if isinstance(inner, list | dict):
            count += 1 + len(inner)
            if count < _MANY:
                open_values.extend(inner.values() if isinstance(inner, dict) else inner)
    return count >= _MANY
