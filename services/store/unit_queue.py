"""Queue of write units: the event loop hands whole groups to the single writer thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import structlog

from services.clock import Clock
from services.retry import RetryPolicy
from services.store.port import BadUnit, Statement, StoreBroken, StoreClosed, StoreError, Values, Write
from services.store.statements import Committer, CompiledStatement, DialectName, Step, Unit, compile_statement


class WriterThread:
    """Runs a Committer in a daemon thread, so that an unclosed store does not keep the process alive; the thread may be
    killed at any point. Calls `release` at its very end. `on_done` (with the units that could not be executed) and
    `on_end` are called in the loop."""

    def __init__(
        self,
        committer: Committer,
        release: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Sequence[Unit]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._committer = committer
        self._release = release
        self._loop = loop
        self._on_done = on_done
        self._on_end = on_end
        self._inbox: SimpleQueue[Sequence[Unit] | None] = SimpleQueue()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._work, name="store-writer", daemon=True).start()

    def run(self, units: Sequence[Unit]) -> None:
        """Hand over a group; `on_done` is called in the loop when all its outcomes are set."""
        self._inbox.put(units)

    def end(self) -> None:
        """Close the connection after the groups handed over so far; then `on_end` is called."""
        self._inbox.put(None)

    def _work(self) -> None:
        try:
            while (units := self._inbox.get()) is not None:
                left = self._committer.run(units)
                if not self._call_in_loop(self._on_done, left):
                    break
            self._committer.finish()
        finally:
            self._committer.close()
            self._release()
            self._call_in_loop(self._on_end)

    def _call_in_loop(self, callback: Callable[..., None], *args: object) -> bool:
        """Call `callback` in the loop; False if the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            return False
        return True


_SWITCH_SECONDS = 50e-6
_PATIENCE_SECONDS = 0.002
_PACE_SECONDS = 0.001
_PAUSE_SECONDS = 0.0002


def switch_threads_often() -> None:
    """Let a waiting thread request the interpreter after 50 µs instead of 5 ms. The setting is process-wide, so the
    owner of the process calls this before opening a store."""
    sys.setswitchinterval(_SWITCH_SECONDS)


class LoopYielder:
    """Lets the writer thread run: while a group has been out for longer than 2 ms, pauses the loop for 0.2 ms in each
    millisecond. Not more often, because the group may also wait for a lock or the disk."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def group_started(self) -> None:
        """Call when a group is handed over."""
        self._timer = self._loop.call_later(_PATIENCE_SECONDS, self._pause)

    def group_done(self) -> None:
        """Call when the group is done."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pause(self) -> None:
        time.sleep(_PAUSE_SECONDS)
        self._timer = self._loop.call_later(_PACE_SECONDS, self._pause)


_POST_SECONDS = 0.05
_WAITS = RetryPolicy(first_wait_seconds=0.1, longest_wait_seconds=2.0)


class UnitQueue:
    """Queue of one store's units, written in groups by one thread; bound to the loop that is running when it is
    created."""

    def __init__(
        self,
        committer: Committer,
        dialect: DialectName,
        clock: Clock,
        *,
        refusal: Callable[[str, Exception], StoreError],
        on_broken: Callable[[StoreBroken], None] | None,
        release: Callable[[], None] = lambda: None,
        most_in_group: int = 512,
        patience_seconds: float = 0.0,
    ) -> None:
        """`refusal` converts an error of the driver to a StoreError. `release` is called in the thread at its very end.
        If the database cannot be reached for longer than `patience_seconds`, the store breaks."""
        self._loop = asyncio.get_running_loop()
        self._committer = committer
        self._dialect: DialectName = dialect
        self._clock = clock
        self._refuse = refusal
        self._on_broken = on_broken
        self._most_in_group = most_in_group
        self._patience_seconds = patience_seconds
        self._thread = WriterThread(committer, release, self._loop, self._group_done, self._thread_ended)
        self._yielder = LoopYielder(self._loop)
        self._known_writes: dict[Statement, CompiledStatement] = {}
        self._log = structlog.get_logger("store")
        self._waiting: list[Unit] = []
        self._in_flight: Sequence[Unit] = ()
        self._urgent = False
        self._flush_due = False
        self._post_timer: asyncio.Task[None] | None = None
        self._refusal: StoreError | None = None
        self._broken: StoreBroken | None = None
        self._ended = asyncio.Event()
        self.post_errors = 0
        """Number of posted units that failed so far."""
        self._unreachable_since: float | None = None
        self._retry_task: asyncio.Task[None] | None = None
        self._attempts = 0
        self._thread.start()

    @property
    def groups(self) -> int:
        """Number of transactions committed so far; fewer for the same units means larger groups."""
        return self._committer.commits

    @property
    def broken(self) -> StoreBroken | None:
        """Why the process has to end; None if all is well."""
        return self._broken

    @property
    def problem(self) -> str | None:
        """Why nothing can be written now, as far as the queue knows; None if writing works."""
        if self._broken is not None:
            return str(self._broken)
        if self._unreachable_since is None:
            return None
        return f"the database cannot be reached since {self._clock.monotonic() - self._unreachable_since:.0f} s"

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """Queue all of `writes` as a unit; the future has the row counts. See Store."""
        waiter = self._loop.create_future()
        try:
            unit = Unit(self._steps(writes), waiter)
        except StoreError as error:
            waiter.set_exception(error)
            return waiter
        self._waiting.append(unit)
        self._flush_soon()
        return waiter

    def post(self, writes: Sequence[Write]) -> None:
        """Queue a unit without a waiter, to be flushed later. See Store."""
        try:
            unit = Unit(self._steps(writes), None)
        except StoreError as error:
            self._post_failed([write.statement.name for write in writes], error)
            return
        self._waiting.append(unit)
        if self._post_timer is None:
            self._post_timer = self._loop.create_task(self._flush_posts(), name="store-posts")

    def read(self, statement: Statement) -> CompiledStatement:
        """The compiled statement of a read. Raises BadUnit if it writes, and StoreClosed after `close`."""
        if isinstance(self._refusal, StoreClosed):
            raise _retried(self._refusal)
        compiled = compile_statement(statement, self._dialect)
        if not compiled.is_select:
            raise BadUnit(f"{statement.name}: a read cannot write; commit it")
        return compiled

    @property
    def is_closed(self) -> bool:
        """Whether new units are rejected because of `close`."""
        return isinstance(self._refusal, StoreClosed)

    def close(self) -> None:
        """Reject new units and finish the queued ones; await `ended` afterwards."""
        if self.is_closed:
            return
        self._refusal = StoreClosed("the store was closed")
        self._stop_post_timer()
        self._urgent = True
        self._flush()

    async def ended(self) -> None:
        """Return when the writer has ended and released everything."""
        await self._ended.wait()

    def _steps(self, writes: Sequence[Write]) -> list[Step]:
        if self._refusal is not None:
            raise _retried(self._refusal)
        known = self._known_writes
        steps: list[Step] = []
        for statement, values, expect in writes:
            compiled = known.get(statement) or self._write(statement)
            # The same as `bind`, inlined: a turn has ten writes.
            if type(values) is tuple and len(values) == compiled.row_length:
                bound = compiled.pick_row(values)
            else:
                bound = self._bound(compiled, values)
            steps.append((compiled, bound, expect))
        return steps

    def _bound(self, compiled: CompiledStatement, values: Values) -> tuple[Any, ...]:
        try:
            return compiled.bind(values)
        except ValueError as error:
            raise self._refuse(compiled.name, error) from error

    def _write(self, statement: Statement) -> CompiledStatement:
        """`statement` compiled and cached as a write. Raises BadUnit if it is a read."""
        compiled = compile_statement(statement, self._dialect)
        if compiled.is_select:
            raise BadUnit(f"{statement.name}: a unit cannot read; make the condition part of a write")
        self._known_writes[statement] = compiled
        return compiled

    def _flush_soon(self) -> None:
        """Flush at the end of the loop's next tick, so that units of all tasks that are ready now, or are made ready by
        these, share one commit."""
        self._urgent = True
        if not self._flush_due and not self._in_flight:
            self._flush_due = True
            self._loop.call_soon(self._loop.call_soon, self._flush)

    async def _flush_posts(self) -> None:
        await self._clock.sleep(_POST_SECONDS)
        self._post_timer = None
        if self._waiting:
            self._flush_soon()

    def _flush(self) -> None:
        self._flush_due = False
        if self._in_flight:
            return
        if not self._waiting:
            self._urgent = False
            if isinstance(self._refusal, StoreClosed):
                self._thread.end()
            return
        group = self._waiting[: self._most_in_group]
        del self._waiting[: self._most_in_group]
        self._urgent = bool(self._waiting)
        self._hand_over(group)

    def _hand_over(self, group: Sequence[Unit]) -> None:
        self._in_flight = group
        self._thread.run(group)
        self._yielder.group_started()

    def _group_done(self, left: Sequence[Unit]) -> None:
        self._yielder.group_done()
        units, self._in_flight = self._in_flight, left
        for unit in units:
            waiter, outcome = unit.waiter, unit.outcome
            if isinstance(outcome, StoreError):
                self._failed(unit, outcome)
            elif waiter is not None and outcome is not None and not waiter.done():
                # A waiter that is done was cancelled; its unit was written nevertheless.
                waiter.set_result(outcome)
        if self._committer.broken is not None:
            self.break_down(self._committer.broken)
        elif left:
            if self._is_patient():
                self._retry_task = self._loop.create_task(self._retry(left), name="store-again")
                return
            self._give_up(left)
        self._unreachable_since = None
        if self._urgent or isinstance(self._refusal, StoreClosed):
            self._flush_soon()

    def _is_patient(self) -> bool:
        """Whether units that failed because the database cannot be reached are retried, before all others."""
        now = self._clock.monotonic()
        if self._unreachable_since is None:
            self._unreachable_since, self._attempts = now, 0
        return now - self._unreachable_since < self._patience_seconds

    async def _retry(self, left: Sequence[Unit]) -> None:
        self._attempts += 1
        await self._clock.sleep(_WAITS.wait_after(self._attempts))
        self._hand_over(left)

    def _give_up(self, left: Sequence[Unit]) -> None:
        self._in_flight = ()
        self._waiting[:0] = left
        self.break_down(StoreBroken(f"the database could not be reached for {self._patience_seconds:.0f} seconds"))

    def _failed(self, unit: Unit, error: StoreError) -> None:
        if unit.waiter is None:
            self._post_failed([statement.name for statement, _, _ in unit.steps], error)
        elif not unit.waiter.done():
            unit.waiter.set_exception(_retried(error))

    def break_down(self, error: StoreBroken) -> None:
        """Reject new units and fail the queued ones with `error`; the process has to end. Only the first call has an
        effect."""
        if self._broken is not None:
            return
        self._broken = self._committer.broken = error
        self._refusal = self._refusal or error
        units, self._waiting = self._waiting, []
        for unit in units:
            self._failed(unit, error)
        self._log.error("store_broken", error=str(error))
        if self._on_broken is not None:
            self._loop.call_soon(self._on_broken, error)

    def _thread_ended(self) -> None:
        """Called after `close` or after an unexpected error; then the outcome of the units in flight is unknown."""
        self._yielder.group_done()
        if not isinstance(self._refusal, StoreClosed) or self._in_flight or self._waiting:
            self._waiting[:0], self._in_flight = self._in_flight, ()
            self.break_down(StoreBroken("the writer ended; what is durable is known after a restart"))
        self._ended.set()

    def _post_failed(self, statements: Sequence[str], error: StoreError) -> None:
        self.post_errors += 1
        self._log.error("store_post_failed", statements=list(statements), kind=type(error).__name__, error=str(error))

    def _stop_post_timer(self) -> None:
        if self._post_timer is not None:
            self._post_timer.cancel()
            self._post_timer = None


def _retried(error: StoreError) -> StoreError:
    """A copy of the error for another waiter: one object that is raised twice would collect both tracebacks."""
    return type(error)(*error.args)
