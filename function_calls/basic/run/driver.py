"""Driver of a script run: executes the machine in short slices and serves its requests in between."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.keywords import Asks, ScriptRun, Value
from function_calls.basic.machine.code_statements import UNWORDED_ASSERTION
from function_calls.basic.machine.machine import Ended, Failed, Machine, Paused, Wants
from function_calls.basic.run.calling import STOPPED_WITHIN
from function_calls.basic.run.keyword_table import BoundKeyword, KeywordTable, changes_what_is_kept
from function_calls.basic.run.session import EndOfRun, HeldUpWithin, count_up, without_given
from function_calls.failures import own_words
from function_calls.spec import ApprovalQuestion, InputQuestion, ToolError
from services.refs import Effect, JsonObject

Pause = Callable[[], Awaitable[None]]
"""Lets others of this process work."""


class Line:
    """Belongs to one event loop. However many runs reckon, others of the loop wait for one stretch of one run. Whoever
    has reckoned least comes next, so that short runs end soon behind endless ones."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._came = 0
        self.beside = asyncio.Lock()
        """Held by the one run that reckons in a thread: several at once would keep the loop from working."""

    async def turn(self, spent_seconds: float, pause: Pause) -> None:
        """Return when it is this run's turn, after a pause. `spent_seconds`: what it has reckoned in all. It is to
        reckon at once then, without waiting for anything."""
        await self._front(spent_seconds)
        try:
            await pause()
        finally:
            # The next one begins its pause when the loop has its way again: behind the stretch of this one.
            self._let_next()

    async def _front(self, spent_seconds: float) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._waiting, (spent_seconds, self._came, called))
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._let_next()
            raise

    def _let_next(self) -> None:
        while self._waiting:
            _, _, called = heapq.heappop(self._waiting)
            if not called.done():
                called.set_result(None)
                return
        self._is_taken = False


Result = TypeVar("Result")


class Metered(Generic[Result]):
    """Awaits something, step by step, and counts what the steps take of this thread. What others do in between is
    theirs."""

    def __init__(self, work: Awaitable[Result]) -> None:
        self._work = work
        self.seconds = 0.0
        """In all."""
        self.last_seconds = 0.0
        """Since others had their turn last."""
        self.has_waited = False
        """Whether others had their turn."""

    def __await__(self) -> Generator[Any, Any, Result]:
        steps = self._work.__await__()
        given: Any = None
        thrown: BaseException | None = None
        while True:
            began = time.thread_time()
            try:
                waited_for = steps.send(given) if thrown is None else _thrown(steps, thrown)
            except StopIteration as end:
                result: Result = end.value
                return result
            finally:
                self.last_seconds = time.thread_time() - began
                self.seconds += self.last_seconds
            given, thrown, self.has_waited = None, None, True
            try:
                given = yield waited_for
            except BaseException as error:  # noqa: BLE001 - handed on to what is awaited, a cancellation above all
                thrown = error


def _thrown(steps: Any, error: BaseException) -> Any:
    """The next step, which begins with `error`. Not every awaitable takes one."""
    throw = getattr(steps, "throw", None)
    if throw is None:
        raise error
    return throw(error)


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
    """The run continues with the answer to a question of a function that it called."""

    question: InputQuestion | ApprovalQuestion


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
        self._fault: RunError | None = None
        self._unpaused_seconds = 0.0

    async def run(self) -> Stop:
        """Go on until the run ends or asks. Raises what a keyword raises that it should not."""
        while True:
            if self.spent.cpu_seconds > self._most_cpu_seconds:
                self._machine.fail(RunError(RunCode.TIME, f"it reckoned for more than {self._most_cpu_seconds:g} s"))
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
        except RunError as fault:
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
        """What is wanted. Raises RunError where the operator has taken it away since the script was compiled."""
        keyword = self._table.find(wants.keyword)
        if keyword is None:
            text = self._script.call.say("basic.no_keyword", keyword=wants.keyword)
            raise RunError(RunCode.UNAVAILABLE, text)
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
            raise RunError(RunCode.FAILED, own_words(error, script.call.profile.texts)) from None
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
