"""Blocking work outside the event loop, in one thread per call."""

from __future__ import annotations

import asyncio
import contextvars
import threading
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


_MOST_LOST = 60
"""Maximum number of hanging threads that `Threads.relieve` replaces."""


class Threads:
    """Runs at most `most_at_once` functions at a time; others wait. Bound to one event loop."""

    def __init__(self, most_at_once: int = 64) -> None:
        self._places = asyncio.Semaphore(most_at_once)
        self._running: set[asyncio.Future[Any]] = set()
        self._lost: set[asyncio.Future[Any]] = set()
        """Threads whose slots were given to others."""

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
        self._running.add(ended)
        try:
            outcome = await asyncio.shield(ended)
        except asyncio.CancelledError:
            raise asyncio.CancelledError from StillRunning(ended)
        return outcome()

    def relieve(self) -> None:
        """Let waiting functions start as if all running threads had ended, because these may hang. Does nothing if more
        than 60 threads would be lost."""
        if len(self._lost) + len(self._running) <= _MOST_LOST:
            for _ in self._running:
                self._places.release()
            self._lost |= self._running
            self._running.clear()

    def _end(self, ended: asyncio.Future[Callable[[], Result]], outcome: Callable[[], Result]) -> None:
        if ended in self._running:
            self._places.release()
        self._running.discard(ended)
        self._lost.discard(ended)
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
