"""Work of keywords by the time that it takes of the processor, without what it waits for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

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
