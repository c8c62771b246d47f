"""Blocking work beside the event loop: each piece in a daemon thread of its own, so that one that hangs neither keeps
others waiting nor the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class StillRunning(Exception):
    """The cause of a CancelledError: the thread of the work that was waited for goes on."""

    def __init__(self, ended: asyncio.Future[Callable[[], Any]]) -> None:
        super().__init__()
        self.ended = ended
        """Done when the thread has ended: a callable that returns or raises what the work did."""


def still_running(error: BaseException) -> StillRunning | None:
    """The work whose thread goes on, where a cancellation or a timeout was caused by giving it up."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, StillRunning):
        cause = cause.__cause__
    return cause


class Threads:
    """Runs at most `most_at_once` pieces of work; more wait for a place. Belongs to one event loop."""

    def __init__(self, most_at_once: int = 64) -> None:
        self._places = asyncio.Semaphore(most_at_once)

    async def run(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What `function` returns or raises, run with the caller's context variables. Who is cancelled stops waiting;
        the thread keeps its place until it ends by itself. Once it has begun, StillRunning is the cause of the
        CancelledError, which is no class of its own because `asyncio.timeout` knows only the one."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Callable[[], Result]] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            outcome = _outcome_of(lambda: context.run(function, *args, **named))
            try:
                loop.call_soon_threadsafe(self._end, ended, outcome)
            except RuntimeError:
                return  # the loop is closed, and nobody waits any more

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
    """A callable that returns what `work` returned, or raises what it raised."""
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - handed over to who waits, not swallowed
        failure = error
    except BaseException as error:  # noqa: BLE001 - the end of a thread is not the end of the daemon
        failure = RuntimeError(f"the function ended its thread with {type(error).__name__}")
    else:
        return lambda: result

    def fail() -> Result:
        raise failure

    return fail


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
