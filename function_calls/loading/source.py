"""Protocol of function sources, and the cached results of reading their units."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from config.diagnostics import Diagnostic
from function_calls.declaration import error_text
from function_calls.schema.definition import problem_at
from function_calls.spec import FunctionSpec, ToolGroup
from services.clock import Clock
from services.threads import Threads


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The current content of a source."""

    specs: tuple[FunctionSpec, ...] = ()
    """In the order on offer."""
    groups: tuple[ToolGroup, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    """Diagnostics of unusable definitions. After a broken edit, `specs` still has the last working version."""


Publish = Callable[[Snapshot], None]


class FunctionSource(Protocol):
    """A source of functions."""

    name: str
    """Unique among the sources."""

    async def run(self, publish: Publish) -> None:
        """Publish the functions, and again after each change. Returns when cancelled, or when no more changes are
        possible. Invalid definitions become diagnostics of the snapshot and affect no others; DefinitionError is raised
        for functions registered in code, which cannot be corrected while the daemon runs."""


class Changes(Protocol):
    """Notifications about changed files."""

    def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        """Yields once immediately, then whenever something at or below `paths` may have changed. Ends if nothing can be
        watched."""


class Unwatched:
    """Reports no changes; for commands that read sources once."""

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        yield


_PATIENT_SECONDS = 5.0
"""Maximum wait for a unit before the next one is read."""
_LESS_PATIENT_SECONDS = 0.5
"""Maximum wait after a unit that exceeded the first limit."""
_SECONDS_WITHOUT_A_WORD = 7.0
"""Interval for publishing partial results while units are read."""
_MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """Definitions of a unit."""

    specs: tuple[FunctionSpec, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    has_errors: frozenset[str] = frozenset()
    """Names of functions that are defined there but cannot be used."""
    is_whole: bool = True
    """False: further definitions may exist, but could not be read."""
    is_empty: bool = False
    """The unit defines no functions, which is reported as a problem."""

    def of_version(self, version: str) -> Reading:
        """The same reading with `version` set on all specs."""
        return replace(
            self, specs=tuple(replace(spec, origin=replace(spec.origin, version=version)) for spec in self.specs)
        )

    def after(self, earlier: Reading) -> Reading:
        """This reading, completed with the working specs of `earlier` for definitions that are broken now, which its
        problems mention."""
        mine = {spec.name for spec in self.specs}
        earlier_specs = tuple(
            spec
            for spec in earlier.specs
            if spec.name not in mine and (spec.name in self.has_errors or not self.is_whole)
        )
        if not earlier_specs:
            return self
        names = ", ".join(spec.name for spec in earlier_specs)
        faults = [replace(one, message=f"{one.message} (until it is fixed, as before: {names})") for one in self.faults]
        return replace(self, specs=(*self.specs, *earlier_specs), faults=tuple(faults))


class Work(Protocol):
    """A unit in its current state, to be read."""

    place: str
    """Location, for operators."""

    def read(self) -> Reading:
        """Definitions of the unit. Called in a thread."""

    def free(self) -> None:
        """Release the modules."""


class _Unit:
    """Latest definitions of one file or module, and the read of it that is in progress."""

    __slots__ = ("is_late", "reading", "running", "used", "work")

    def __init__(self) -> None:
        self.reading = Reading()
        self.used: Work | None = None
        """The work that produced the functions in use."""
        self.work: Work | None = None
        """The work that `running` is reading."""
        self.running: asyncio.Task[Reading] | None = None
        self.is_late = False


class Readings:
    """Reads units and caches their definitions. Bound to one event loop."""

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        """`on_change` is called when new results should be published: after a slow unit was read, and regularly while
        many units are being read."""
        self._clock = clock
        self._on_change = on_change
        self._threads = Threads(_MOST_THREADS)
        self._units: dict[Hashable, _Unit] = {}

    async def read(self, work: Mapping[Hashable, Work]) -> None:
        """Read the units sequentially. Returns when each has been read or has exceeded its time; slow units continue in
        the background. A unit's earlier read is abandoned."""
        patience, reported_at = _PATIENT_SECONDS, self._clock.monotonic()
        for key, one in work.items():
            if not await self._read(key, one, patience):
                patience = _LESS_PATIENT_SECONDS
            if self._clock.monotonic() - reported_at > _SECONDS_WITHOUT_A_WORD:
                self._on_change()
                reported_at = self._clock.monotonic()

    async def _read(self, key: Hashable, work: Work, patience: float) -> bool:
        """Start reading a unit, and cancel its previous read. Returns whether it finished within `patience` seconds; if
        not, it continues in the background."""
        unit = self._units.setdefault(key, _Unit())
        _abandon(unit)
        task = asyncio.create_task(self._threads.run(work.read))
        unit.work, unit.running, unit.is_late = work, task, False
        task.add_done_callback(lambda ended: self._ended(unit, ended))
        timer = asyncio.create_task(self._clock.sleep(patience))
        try:
            await asyncio.wait([task, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        unit.is_late = unit.running is task and not task.done()
        return not unit.is_late

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Drop all units except `keys`: their reads are cancelled and their modules released."""
        for key in self._units.keys() - set(keys):
            _abandon(self._units[key])
            _free(self._units.pop(key))

    def snapshot(
        self, order: Iterable[Hashable], faults: Iterable[Diagnostic] = (), helpers: Collection[Hashable] = ()
    ) -> Snapshot:
        """Definitions of all units in `order`, after `faults` of the source itself. Units in `helpers` may be empty."""
        specs: list[FunctionSpec] = []
        found = list(faults)
        for key in order:
            unit = self._units.get(key)
            if unit is None or (unit.reading.is_empty and key in helpers):
                continue
            specs += unit.reading.specs
            found += unit.reading.faults
            if unit.work is not None and unit.is_late:
                found.append(problem_at(unit.work.place, _HANGS))
        return Snapshot(tuple(specs), faults=tuple(dict.fromkeys(found)))

    async def finish(self) -> None:
        """Wait until all reads have finished."""
        running = [unit.running for unit in self._units.values() if unit.running is not None]
        if running:
            await asyncio.wait(running)

    def close(self) -> None:
        """Abandon all reads and release all modules."""
        self.keep_only(())

    def _ended(self, unit: _Unit, task: asyncio.Task[Reading]) -> None:
        if unit.running is not task or unit.work is None or task.cancelled():
            return
        work, unit.work, unit.running = unit.work, None, None
        reading = _outcome(task, work)
        if reading.specs or not reading.faults:
            _free(unit)
            unit.used = work
        else:
            work.free()
        unit.reading = reading.after(unit.reading)
        if unit.is_late:
            unit.is_late = False
            self._on_change()


_HANGS = (
    "its import has not finished after some seconds; its functions are available when it ends. If it hangs, fix it: "
    "a thread cannot be stopped, so its resources are released only when the daemon restarts"
)


def _outcome(task: asyncio.Task[Reading], work: Work) -> Reading:
    error = task.exception()
    if error is None:
        return task.result()
    return Reading(faults=(problem_at(work.place, f"it cannot be read: {error_text(error)}"),), is_whole=False)


def _abandon(unit: _Unit) -> None:
    """Cancel the running read and free its thread; does nothing if none is running."""
    if unit.running is not None and unit.work is not None:
        task, work = unit.running, unit.work
        unit.running = unit.work = None
        task.cancel()
        work.free()


def _free(unit: _Unit) -> None:
    if unit.used is not None:
        unit.used.free()
        unit.used = None
