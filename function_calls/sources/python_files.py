"""The functions of Python files and packages in folders that an operator named, for as long as they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

from config.diagnostics import Diagnostic
from function_calls.definition_faults import fault
from function_calls.module_loading import Edition
from function_calls.python_units import Unit, units_at
from function_calls.readings import Reading, Readings
from function_calls.source import Changes, Publish, Snapshot
from function_calls.source_places import shortened
from services.clock import Clock
from services.storage import StorageError


class ReadModules(Protocol):
    """Who knows what modules give."""

    def __call__(
        self,
        modules: Sequence[ModuleType],
        place: str,
        find: Callable[[str], ModuleType],
        unread: Sequence[Diagnostic],
        /,
    ) -> Reading:
        """What `modules` give that belong together, the first one standing for all; `place` is theirs, `find` gives the
        modules that handlers are named by, `unread` says why others of them could not be imported."""


class PythonFiles:
    """Each path is a file, a package, or a folder of both."""

    def __init__(self, name: str, paths: Sequence[Path], read: ReadModules, changes: Changes, clock: Clock) -> None:
        self.name = name
        self._paths = tuple(dict.fromkeys(paths))
        self._read = read
        self._changes = changes
        self._clock = clock
        self._units: dict[Path, list[Unit]] = {}
        """What was at each path when that could last be told."""
        self._order: tuple[Path, ...] = ()
        self._etags: dict[Path, object] = {}
        self._faults: list[Diagnostic] = []
        self._has_spoken = False

    async def run(self, publish: Publish) -> None:
        """Publish the functions of all files that can be imported, and again when one has changed."""
        readings = Readings(self._clock, lambda: publish(self._snapshot(readings)))
        try:
            async for _ in self._changes.of(*self._paths):
                await self._look(readings, publish)
            await readings.finish()
        except asyncio.CancelledError:
            readings.close()
            raise

    async def _look(self, readings: Readings, publish: Publish) -> None:
        """Read again what has changed; publish when anything did."""
        faults_before, order_before = self._faults, self._order
        self._faults = await asyncio.to_thread(self._list)
        units = {unit.file: unit for path in self._paths for unit in self._units.get(path, ())}
        self._order = tuple(units)
        changed = [unit for file, unit in units.items() if self._etags.get(file) != unit.etag]
        self._etags = {file: unit.etag for file, unit in units.items()}
        readings.keep_only(units)
        await readings.read({unit.file: _File(Edition(unit), self._read) for unit in changed})
        if changed or (faults_before, order_before) != (self._faults, self._order) or not self._has_spoken:
            self._has_spoken = True
            publish(self._snapshot(readings))

    def _list(self) -> list[Diagnostic]:
        """Find the units at all paths; what is wrong with the paths."""
        faults: list[Diagnostic] = []
        for path in self._paths:
            try:
                self._units[path] = units_at(path)
            except (StorageError, OSError) as error:
                faults.append(fault(str(path), f"{path} cannot be read: {error}"))
                continue
            if not self._units[path] and not path.exists():
                faults.append(fault(str(path), f"{path}: there is no such file or folder"))
        return faults

    def _snapshot(self, readings: Readings) -> Snapshot:
        return readings.snapshot(self._order, self._faults)


class _File:
    """A file or package as it is now."""

    def __init__(self, edition: Edition, read: ReadModules) -> None:
        self._edition = edition
        self._read = read
        self.place = shortened(str(edition.unit.file))

    def read(self) -> Reading:
        # Before it is imported: of what is written meanwhile, there is word soon, and then it is read again.
        version = self._edition.unit.version()
        modules, failed = self._edition.load()
        if not modules:
            return Reading(faults=tuple(failed), is_whole=False)
        return self._read(modules, self.place, self._edition.find, failed).of_version(version)

    def free(self) -> None:
        self._edition.free()
