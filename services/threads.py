"""Blocking work outside the event loop: one thread per call, or a small pool for many short jobs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class StillRunning(Exception):
    """Cause of a CancelledError: the thread of the awaited work is still running."""

    def __init__(self, ended: asyncio.Future[Callable[[], Any]]) -> None:
        super().__init__()
        self.ended = ended
        """Done when the thread has ended; the result is a callable that returns or raises the work's outcome."""


def still_running(error: BaseException) -> StillRunning | None:
    """The still running work behind a cancellation or timeout, found among its causes, or None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, StillRunning):
        cause = cause.__cause__
    return cause


class Threads:
    """Runs at most `most_at_once` functions at a time; others wait. Bound to one event loop."""

    def __init__(self, most_at_once: int = 64) -> None:
        self._places = asyncio.Semaphore(most_at_once)

    async def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Run `function` in a new thread, with the caller's context variables, and return its result or raise its
        error; waits for a free slot first. A cancelled caller stops waiting; a thread that has started occupies its
        slot until it ends, and StillRunning is the cause of the CancelledError. (No subclass, because `asyncio.timeout`
        recognises only CancelledError itself.)"""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Callable[[], Result]] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            outcome = _outcome_of(lambda: context.run(function, *args, **named))
            try:
                loop.call_soon_threadsafe(self._end, ended, outcome)
            except RuntimeError:
                return  # the loop is closed, so nobody waits

        try:
            threading.Thread(target=work, name=f"rollcall-{_name(function)}", daemon=True).start()
        except RuntimeError:
            self._places.release()
            raise
        try:
            outcome = await asyncio.shield(ended)
        except asyncio.CancelledError:
            raise asyncio.CancelledError from StillRunning(ended)
        return outcome()

    def _end(self, ended: asyncio.Future[Callable[[], Result]], outcome: Callable[[], Result]) -> None:
        self._places.release()
        ended.set_result(outcome)


def _outcome_of(work: Callable[[], Result]) -> Callable[[], Result]:
    """Run `work`; returns a callable that returns its result or raises its error. A BaseException that is no Exception,
    such as SystemExit, becomes RuntimeError."""
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - passed to the awaiting task
        failure = error
    except BaseException as error:  # noqa: BLE001 - the end of a thread must not end the daemon
        failure = RuntimeError(f"the function ended its thread with {type(error).__name__}")
    else:
        return lambda: result

    def fail() -> Result:
        raise failure

    return fail


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class ThreadPool:
    """At most `most_at_once` threads, which end when the queue is empty. Bound to one event loop."""

    def __init__(self, most_at_once: int, most_lost: int = 60) -> None:
        """`most_lost`: maximum number of hanging threads that are replaced."""
        self._most = most_at_once
        self._most_lost = most_lost
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._workers: set[object] = set()
        """Workers that take further jobs."""
        self._lost: set[object] = set()

    def begin(self, function: Callable[[], Result]) -> asyncio.Future[Result]:
        """Queue `function` and return a future for its outcome. A cancelled future is skipped if no thread has started
        it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        with self._lock:
            self._waiting.append((function, future))
        self._call_workers(loop)
        return future

    def relieve(self) -> None:
        """Stop waiting for the current workers, which end after their job, and start new ones for the queue. Does
        nothing if more than `most_lost` workers would be replaced."""
        with self._lock:
            if len(self._lost) + len(self._workers) > self._most_lost:
                return
            self._lost |= self._workers
            self._workers = set()
            count = len(self._waiting)
        for _ in range(min(count, self._most)):
            self._call_workers(asyncio.get_running_loop())

    def _call_workers(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if not self._waiting or len(self._workers) >= self._most:
                return
            worker = object()
            self._workers.add(worker)
        threading.Thread(target=self._work, args=(worker, loop), name="rollcall-crew", daemon=True).start()

    def _work(self, worker: object, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                if worker in self._lost or not self._waiting:
                    self._workers.discard(worker)
                    self._lost.discard(worker)
                    return
                function, future = self._waiting.popleft()
            if future.cancelled():
                continue
            try:
                loop.call_soon_threadsafe(_end, future, _outcome_of(function))
            except RuntimeError:
                return  # the loop is closed, so nobody waits


def _end(future: asyncio.Future[Result], outcome: Callable[[], Result]) -> None:
    if future.done():
        return
    try:
        future.set_result(outcome())
    except Exception as error:  # noqa: BLE001 - passed to the awaiting task
        future.set_exception(error)
