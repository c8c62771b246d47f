"""Runs all sources of functions and keeps the registry as they say: what is good serves, what is not is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from config.diagnostics import Diagnostic
from function_calls.definition_faults import fault
from function_calls.registry import FunctionRegistry
from function_calls.source import FunctionSource, Snapshot
from function_calls.spec import FunctionSpec

_FIRST_SECONDS = 10.0
"""So long a start waits for the first word of a source; what comes later serves from then on."""
_log = structlog.get_logger("functions")


class FunctionSources:
    """All sources, each in a task of its own. Their order decides who has a name that two want."""

    def __init__(
        self,
        sources: Sequence[FunctionSource],
        registry: FunctionRegistry,
        problems_of: Callable[[FunctionSpec], Sequence[str]],
    ) -> None:
        """`problems_of` says why a well-defined function cannot run in this daemon; empty when it can."""
        self._sources = tuple(sources)
        self._registry = registry
        self._problems_of = problems_of
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._faults: dict[str, tuple[Diagnostic, ...]] = {}
        self._left_out: tuple[Diagnostic, ...] = ()
        self._on_change: list[Callable[[], None]] = []
        for source in self._sources:
            registry.publish(source.name)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """What cannot be used at this moment, source after source."""
        return (*(one for source in self._sources for one in self._faults.get(source.name, ())), *self._left_out)

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told` after the registry or the faults have changed."""
        self._on_change.append(told)

    async def start(self) -> None:
        """Return when every source has said what it has, or has not for ten seconds. Raises DefinitionError for
        functions that are given in code and cannot be used."""
        spoken = {source.name: asyncio.Event() for source in self._sources}
        for source in self._sources:
            task = asyncio.create_task(self._run(source, spoken[source.name]), name=source.name)
            task.add_done_callback(self._ended)
            self._tasks[source.name] = task
        waits = [asyncio.create_task(self._first(source.name, spoken[source.name])) for source in self._sources]
        try:
            _, late = await asyncio.wait(waits, timeout=_FIRST_SECONDS) if waits else (set(), set())
        finally:
            for wait in waits:
                wait.cancel()
        for wait in waits:
            if wait.done() and not wait.cancelled():
                wait.result()
        if late:
            silent = [name for name, event in spoken.items() if not event.is_set()]
            _log.warning("sources_slow", sources=silent, waited_seconds=_FIRST_SECONDS)

    async def close(self) -> None:
        """End all of them."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _run(self, source: FunctionSource, spoken: asyncio.Event) -> None:
        def publish(snapshot: Snapshot) -> None:
            self._publish(source.name, snapshot)
            spoken.set()

        await source.run(publish)

    async def _first(self, name: str, spoken: asyncio.Event) -> None:
        """Return when the source has spoken; raise what ended it before."""
        heard = asyncio.create_task(spoken.wait())
        try:
            await asyncio.wait([heard, self._tasks[name]], return_when=asyncio.FIRST_COMPLETED)
        finally:
            heard.cancel()
        task = self._tasks[name]
        if not spoken.is_set() and task.done():
            task.result()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A source that broke down stays as it was last; whoever waits for its first word is told by `start`."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            name = task.get_name()
            _log.critical("source_ended", source=name, exc_info=error)
            text = f"source {name!r} broke down and is not read again before the next start: {type(error).__name__}"
            self._faults[name] = (*self._faults.get(name, ()), fault("", text))
            self._tell()

    def _publish(self, name: str, snapshot: Snapshot) -> None:
        usable: list[FunctionSpec] = []
        faults = list(snapshot.faults)
        for spec in snapshot.specs:
            problems = self._problems_of(spec)
            faults += [fault(spec.source, f"function {spec.name!r}: {problem}") for problem in problems]
            if not problems:
                usable.append(spec)
        before = set(self.faults)
        self._left_out = tuple(self._registry.publish(name, usable, snapshot.groups))
        self._faults[name] = tuple(faults)
        now = self.faults
        for one in now:
            if one not in before:
                _log.error("function_unusable", problem=str(one))
        for one in before.difference(now):
            _log.info("function_mended", was=str(one))
        self._tell()

    def _tell(self) -> None:
        for told in self._on_change:
            told()
