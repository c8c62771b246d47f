"""Protocol of a function source, and what its units gave when they were last read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from config.diagnostics import Diagnostic
from function_calls.declaration import told
from function_calls.schema.definition import problem_at
from function_calls.spec import FunctionSpec, ToolGroup
from services.clock import Clock
from services.threads import Threads


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a source has at one moment."""

    specs: tuple[FunctionSpec, ...] = ()
    """In the order in which they are offered."""
    groups: tuple[ToolGroup, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    """What of it cannot be used, and why. Where an edit broke something, `specs` still has the last that could be."""


Publish = Callable[[Snapshot], None]


class FunctionSource(Protocol):
    """The registry cannot tell sources apart."""

    name: str
    """Unique among the sources."""

    async def run(self, publish: Publish) -> None:
        """Publish what there is, and again whenever it has changed. Ends when it is cancelled, or when nothing can
        change any more. One bad definition is a fault of the snapshot and hides no good one; DefinitionError is raised
        for functions that are given in code, where nobody could mend them while the daemon runs."""


class Changes(Protocol):
    """Who is told when files change."""

    def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        """An item at once, and another one whenever something at or below `paths` may have changed. Ends when nothing
        is watched."""


class Unwatched:
    """Tells of no change: for commands that look once and end."""

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        yield


_PATIENT_SECONDS = 5.0
"""So long a unit is waited for before those behind it are read."""
_LESS_PATIENT_SECONDS = 0.5
"""The same, behind one that took longer."""
_SECONDS_WITHOUT_A_WORD = 7.0
"""After so long what there is by then is told, and the rest when it is there."""
_MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class Reading:
    """What a unit gave."""

    specs: tuple[FunctionSpec, ...] = ()
    faults: tuple[Diagnostic, ...] = ()
    broken: frozenset[str] = frozenset()
    """The names of functions that are defined there and cannot be used."""
    is_whole: bool = True
    """False: it may define more, of which nothing could be learned."""
    is_empty: bool = False
    """It defines nothing at all, which is its fault."""

    def of_version(self, version: str) -> Reading:
        """The same, of functions that know which edition of the code they are."""
        return replace(
            self, specs=tuple(replace(spec, origin=replace(spec.origin, version=version)) for spec in self.specs)
        )

    def after(self, earlier: Reading) -> Reading:
        """The same, with what served before in the place of what is broken now."""
        mine = {spec.name for spec in self.specs}
        kept = tuple(
            spec for spec in earlier.specs if spec.name not in mine and (spec.name in self.broken or not self.is_whole)
        )
        if not kept:
            return self
        names = ", ".join(spec.name for spec in kept)
        faults = [
            replace(one, message=f"{one.message} (until it is mended, as before: {names})") for one in self.faults
        ]
        return replace(self, specs=(*self.specs, *kept), faults=tuple(faults))


class Work(Protocol):
    """One unit as it is at one moment."""

    place: str
    """Where it is, as an operator is told."""

    def read(self) -> Reading:
        """What it gives. Runs in a thread."""

    def free(self) -> None:
        """Nobody needs its modules any more."""


class _Unit:
    """What is known of one unit."""

    __slots__ = ("is_late", "reading", "running", "used", "work")

    def __init__(self) -> None:
        self.reading = Reading()
        self.used: Work | None = None
        """What the functions in use were made of."""
        self.work: Work | None = None
        """What is being read, in `running`."""
        self.running: asyncio.Task[Reading] | None = None
        self.is_late = False


class Readings:
    """Reads units and keeps what they gave. Belongs to one event loop."""

    def __init__(self, clock: Clock, tell: Callable[[], None]) -> None:
        """`tell` is called when there is something new that nobody waits for: a unit that took long has been read, or
        reading all of them takes long."""
        self._clock = clock
        self._tell = tell
        self._threads = Threads(_MOST_THREADS)
        self._units: dict[Hashable, _Unit] = {}

    async def read(self, work: Mapping[Hashable, Work]) -> None:
        """Read these units, one after another. Returns when each has been read or has taken five seconds; one that was
        still being read as it was before is left to itself."""
        patience, told_at = _PATIENT_SECONDS, self._clock.monotonic()
        for key, one in work.items():
            if not await self._read(key, one, patience):
                patience = _LESS_PATIENT_SECONDS
            if self._clock.monotonic() - told_at > _SECONDS_WITHOUT_A_WORD:
                self._tell()
                told_at = self._clock.monotonic()

    async def _read(self, key: Hashable, work: Work, patience: float) -> bool:
        """Whether it ended within so many seconds."""
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
        """Forget all units but these."""
        for key in self._units.keys() - set(keys):
            _abandon(self._units[key])
            _free(self._units.pop(key))

    def snapshot(
        self, order: Iterable[Hashable], faults: Iterable[Diagnostic] = (), helpers: Collection[Hashable] = ()
    ) -> Snapshot:
        """What the units give, in this order, behind `faults` of the source itself. Units among `helpers` may define
        nothing."""
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
        """Return when nothing is being read any more."""
        running = [unit.running for unit in self._units.values() if unit.running is not None]
        if running:
            await asyncio.wait(running)

    def close(self) -> None:
        """Wait for nothing any more, and free everything."""
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
            self._tell()


_HANGS = (
    "it is still being imported after some seconds, and its functions serve when it has ended. If it hangs, mend it: "
    "a thread cannot be ended, so what it holds is free again after the next start of the daemon"
)


def _outcome(task: asyncio.Task[Reading], work: Work) -> Reading:
    error = task.exception()
    if error is None:
        return task.result()
    return Reading(faults=(problem_at(work.place, f"it cannot be read: {told(error)}"),), is_whole=False)


def _abandon(unit: _Unit) -> None:
    """Leave to itself what is being read."""
    if unit.running is not None and unit.work is not None:
        task, work = unit.running, unit.work
        unit.running = unit.work = None
        task.cancel()
        work.free()


def _free(unit: _Unit) -> None:
    if unit.used is not None:
        unit.used.free()
        unit.used = None
