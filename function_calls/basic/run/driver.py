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
from function_calls.basic.machine.machine import Ended, Failed, KeywordRequest, Machine, Paused
from function_calls.basic.run.keyword_table import BoundKeyword, KeywordTable, changes_stored_data
from function_calls.basic.run.script_calls import STOPPED_WITHIN
from function_calls.basic.run.session import EndOfRun, SuspendedByCall, count_up, without_session_variables
from function_calls.failures import tool_error_text
from function_calls.spec import ApprovalQuestion, InputQuestion, ToolError
from services.refs import Effect, JsonObject

Pause = Callable[[], Awaitable[None]]
"""Lets other tasks and threads of the process run."""


class RunScheduler:
    """Scheduler of the runs on one event loop: one run executes at a time, for one slice. The run with the least
    processor time is next, so that short runs finish despite endless ones."""

    def __init__(self) -> None:
        self._is_busy = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._came = 0
        self.thread_lock = asyncio.Lock()
        """Held by the run that executes in a thread: several threads at once would starve the event loop."""

    async def wait_for_slice(self, spent_seconds: float, pause: Pause) -> None:
        """Wait for this run's slice, including a pause. `spent_seconds` is its processor time so far. The caller must
        execute the slice without awaiting anything else first."""
        await self._front(spent_seconds)
        try:
            await pause()
        finally:
            # The next run starts its pause after this slice, when the event loop is free again.
            self._let_next()

    async def _front(self, spent_seconds: float) -> None:
        if not self._is_busy:
            self._is_busy = True
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
        self._is_busy = False


Result = TypeVar("Result")


class Metered(Generic[Result]):
    """Awaitable that measures the processor time of its steps in this thread, without other tasks in between."""

    def __init__(self, work: Awaitable[Result]) -> None:
        self._work = work
        self.seconds = 0.0
        """Total."""
        self.last_seconds = 0.0
        """Since it last yielded to other tasks."""
        self.has_waited = False
        """Whether it has yielded to other tasks."""

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
            except BaseException as error:  # noqa: BLE001 - passed on to the awaited object, cancellation above all
                thrown = error


def _thrown(steps: Any, error: BaseException) -> Any:
    """Throw `error` into the awaitable; raise it here if there is no `throw`."""
    throw = getattr(steps, "throw", None)
    if throw is None:
        raise error
    return throw(error)


_STRETCH_SECONDS = 0.002
"""Longest slice that blocks other tasks of the process."""
_FIRST_STEPS = 256
_FEWEST_STEPS, _MOST_STEPS = 16, 65_536
_MANY = 1000
"""Number of items from which a value is copied in a thread."""
_LARGE_BYTES = 512 * 1024
"""Size of a run's values from which it executes in a thread: a single step, such as comparing two lists, may then
exceed a slice and cannot be interrupted."""
_STRETCH_IN_THREAD_SECONDS = 0.005
"""Length of a slice in a thread, where the interpreter lets other threads run."""
MOST_CHANGES = 500
"""Limit per run on statements that change stored data: each is written to disk separately. Lists are saved with one
statement."""
_CHANGES = "run.changes"
_WANT_SECONDS = 20e-6
"""Overhead of a keyword."""

_WORDED = frozenset(
    {RunCode.BAD_VALUE, RunCode.NO_SUCH_THING, RunCode.NOT_ALLOWED, RunCode.UNAVAILABLE, RunCode.FAILED}
)
"""Error codes of keywords whose text is for people."""


class Asked(NamedTuple):
    """The run is suspended until the member answers."""

    asks: Asks


class Suspended(NamedTuple):
    """The run is suspended until a question of a function that it called is answered."""

    question: InputQuestion | ApprovalQuestion


class Cancelled(NamedTuple):
    """A keyword has ended the run."""


Stop = Ended | Failed | Asked | Suspended | Cancelled


@dataclass(slots=True)
class Spent:
    """Resources used by a run so far, including before questions."""

    cpu_seconds: float = 0.0
    is_begun: bool = False
    """A non-repeatable effect has been executed."""


class Driver:
    """Executes a run until it ends or is suspended."""

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
        line: RunScheduler | None = None,
    ) -> None:
        """`pause` lets other tasks run; `line` is shared by all concurrent runs. A machine that was suspended repeats
        its request. `given`: variables from the settings, which are not stored."""
        self._machine = machine
        self._script = script
        self._table = table
        self._most_cpu_seconds = cpu_seconds
        self._pause = pause
        self._line = line or RunScheduler()
        self.spent = spent or Spent()
        self._settings_gave = given or {}
        self._steps = _FIRST_STEPS
        self._fault: RunError | None = None
        self._unpaused_seconds = 0.0

    async def run(self) -> Stop:
        """Continue until the run ends or asks. Unexpected exceptions of keywords propagate."""
        while True:
            if self.spent.cpu_seconds > self._most_cpu_seconds:
                self._machine.fail(
                    RunError(RunCode.TIME, f"used more than {self._most_cpu_seconds:g} s of processor time")
                )
            if self._unpaused_seconds >= _STRETCH_SECONDS:
                self._unpaused_seconds = 0.0
                await self._line.wait_for_slice(self.spent.cpu_seconds, self._pause)
            event = await self._go()
            if isinstance(event, KeywordRequest):
                stop = await self._execute_keyword(event)
                if stop is not None:
                    return stop
            elif not isinstance(event, Paused):
                return event

    def is_worded(self, failed: Failed) -> bool:
        """Whether the text of `failed` is for people: a keyword's or the script's own. Errors of the language are for
        the script's author, in the log."""
        if failed.code in (RunCode.THROWN, RunCode.ASSERTION):
            return failed.detail not in ("", UNWORDED_ASSERTION)
        fault = self._fault
        if failed.code not in _WORDED:
            return False
        return fault is not None and bool(fault.detail) and (fault.code, fault.detail) == (failed.code, failed.detail)

    @property
    def stopped_within(self) -> str:
        """Error text of the last called script that stopped, or empty."""
        return str(self._script.stored_data.get(STOPPED_WITHIN, ""))

    def state(self) -> JsonObject:
        """State for resuming the run after a question or approval: the machine's state without session variables, the
        script's stored data and flags, and the CPU seconds used."""
        script = self._script
        return {
            "machine": without_session_variables(self._machine.state(), self._settings_gave),
            "asked": script.asked,
            "kept": script.stored_data,
            "outside": script.has_outside_text,
            "cpu_seconds": self.spent.cpu_seconds,
            "is_begun": self.spent.is_begun,
        }

    async def _go(self) -> Ended | Failed | KeywordRequest | Paused:
        """Execute a slice, in a thread if the script holds much memory, and return how it ended. Adapts the number of
        steps of the next slice to the time that this one took."""
        most_seconds = _STRETCH_SECONDS
        if self._machine.held_bytes < _LARGE_BYTES:
            event, took = self._stretch()
        else:
            most_seconds = _STRETCH_IN_THREAD_SECONDS
            async with self._line.thread_lock:
                event, took = await self._script.call.threads.run(self._stretch)
        self._take(took)
        if isinstance(event, Paused):
            fitting = self._steps * most_seconds / max(took, 1e-6)
            self._steps = int(min(max(fitting, _FEWEST_STEPS), _MOST_STEPS, self._steps * 4))
        return event

    def _stretch(self) -> tuple[Ended | Failed | KeywordRequest | Paused, float]:
        """The machine's event, and the slice's time in this thread."""
        began = time.thread_time()
        event = self._machine.execute(self._steps)
        return event, time.thread_time() - began

    def _take(self, seconds: float) -> None:
        self.spent.cpu_seconds += seconds
        self._unpaused_seconds += seconds

    async def _execute_keyword(self, wants: KeywordRequest) -> Stop | None:
        """Execute a keyword and pass its value to the machine. None: the run continues."""
        self._take(_WANT_SECONDS)
        self._script.at = wants.at
        try:
            given = await self._given(self._keyword(wants), wants)
        except RunError as fault:
            self._settled()
            self._fault = fault
            self._machine.fail(fault)
            return None
        except SuspendedByCall as suspended:
            self._script.asked += 1
            return Suspended(suspended.question)
        except EndOfRun:
            return Cancelled()
        if isinstance(given, Asks):
            self._script.asked += 1
            return Asked(given)
        self._settled()
        if _is_large(given):  # the machine copies and measures it
            await self._script.call.threads.run(self._machine.resume_with, given)
        else:
            self._machine.resume_with(given)
        return None

    def _keyword(self, wants: KeywordRequest) -> BoundKeyword:
        """The requested keyword. Raises RunError if the operator has removed it since compilation."""
        keyword = self._table.find(wants.keyword)
        if keyword is None:
            text = self._script.call.say("basic.no_keyword", keyword=wants.keyword)
            raise RunError(RunCode.UNAVAILABLE, text)
        return keyword

    async def _given(self, keyword: BoundKeyword, wants: KeywordRequest) -> Value | Asks:
        script = self._script
        is_change = keyword.effect is Effect.ONCE or changes_stored_data(keyword)
        if is_change and not script.asked:
            count_up(script, _CHANGES, MOST_CHANGES, "too_many_changes")
        was_outside = script.has_outside_text
        work = Metered(keyword.handler(script, wants.arguments))
        try:
            given = await work
        except ToolError as error:
            raise RunError(RunCode.FAILED, tool_error_text(error, script.call.profile.texts)) from None
        finally:
            self._take(work.seconds + script.thread_seconds)
            if work.has_waited:
                self._unpaused_seconds = work.last_seconds
            script.thread_seconds = 0.0
            if script.has_outside_text and not was_outside:
                script.call.mark_outside()
        self.spent.is_begun = self.spent.is_begun or keyword.effect is Effect.ONCE
        return given

    def _settled(self) -> None:
        self._script.asked = 0
        self._script.answer = None


def _is_large(value: Value) -> bool:
    """Whether copying the value is slow: it has 1,000 or more items, including nested ones."""
    count, open_values = 0, [value]
    while open_values and count < _MANY:
        inner = open_values.pop()
        if isinstance(inner, list | dict):
            count += 1 + len(inner)
            if count < _MANY:
                open_values.extend(inner.values() if isinstance(inner, dict) else inner)
    return count >= _MANY
