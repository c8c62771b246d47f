"""Functions of Python files, packages and installed modules named in the settings."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from config.diagnostics import Diagnostic
from function_calls.declaration import error_text, last_place, shortened
from function_calls.loading.module_functions import ModuleReader
from function_calls.loading.module_loading import Edition, Unit, is_private, units_at, version_of
from function_calls.loading.source import Changes, Publish, Reading, Readings, Snapshot
from function_calls.schema.definition import problem_at
from services.clock import Clock
from services.storage import StorageError

GROUP = "rollcall.functions"
"""Entry point group for installed packages that provide functions."""
_OWN = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Named:
    """A module named in the settings."""

    setting: str
    """Its settings key, such as `sources.modules[0]`."""
    module: str
    """Its dotted name."""
    bot: str | None = None
    """The only bot that gets its functions; None: all bots."""
    fault: str = ""
    """Reason why there is no such module, if known."""


class PythonModules:
    """Source for installed modules and entry points. Imported once per process and never reloaded, because other code
    may hold references to parts of an installed package."""

    def __init__(
        self,
        name: str,
        named: Sequence[Named],
        reader: ModuleReader,
        clock: Clock,
        announced: Callable[[], Iterable[EntryPoint]] = tuple,
    ) -> None:
        self.name = name
        self._named = named
        self._reader = reader
        self._clock = clock
        self._announced = announced

    async def run(self, publish: Publish) -> None:
        """Publish the functions of all modules, and again when a slow import finishes."""
        works: list[_Named | _Announced] = [_Named(one, self._reader) for one in self._named]
        works += [_Announced(point, self._reader) for point in self._announced()]
        readings = Readings(self._clock, lambda: publish(readings.snapshot(range(len(works)))))
        try:
            await readings.read(dict(enumerate(works)))
            publish(readings.snapshot(range(len(works))))
            await readings.finish()
        finally:
            readings.close()


def announced_functions() -> Iterable[EntryPoint]:
    """Entry points of all installed packages in the group, by name."""
    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


class _Named:
    """A module, or a package with all its modules except private ones."""

    def __init__(self, named: Named, reader: ModuleReader) -> None:
        self._named = named
        self._reader = reader
        self.place = named.setting

    def read(self) -> Reading:
        if self._named.fault:
            return Reading(faults=(self._fault(self._named.fault),), is_whole=False)
        loaded: list[ModuleType] = []
        failed: list[Diagnostic] = []
        self._load(self._named.module, loaded, failed)
        if not loaded:
            return Reading(faults=tuple(failed), is_whole=False)
        reading = self._reader.modules(loaded, _file_of(loaded[0]), unread=failed)
        specs = reading.specs
        if self._named.bot is not None:
            specs = tuple(replace(spec, access=replace(spec.access, bot=self._named.bot)) for spec in specs)
        return replace(reading, specs=specs).of_version(_version_of(loaded))

    def free(self) -> None:
        """No-op: installed modules stay imported."""

    def _load(self, name: str, loaded: list[ModuleType], failed: list[Diagnostic]) -> None:
        """Import the module `name`, and its submodules if it is a package."""
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of third-party code becomes a diagnostic
            failed.append(self._fault(_not_imported(name, error)))
            return
        loaded.append(module)
        for one in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if not is_private(one.name):
                self._load(f"{name}.{one.name}", loaded, failed)

    def _fault(self, text: str) -> Diagnostic:
        return problem_at("", f"{self._named.setting}: {text}")


class _Announced:
    """An entry point."""

    def __init__(self, point: EntryPoint, reader: ModuleReader) -> None:
        self._point = point
        self._reader = reader
        package = point.dist.name if point.dist is not None else "an installed package"
        self.place = f"entry point {point.name!r} of {package}"

    def read(self) -> Reading:
        try:
            loaded = self._point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of third-party code becomes a diagnostic
            text = f"{self.place}: {_not_imported(self._point.value, error)}"
            return Reading(faults=(problem_at("", text),), is_whole=False)
        module = loaded if isinstance(loaded, ModuleType) else importlib.import_module(self._point.module)
        return self._reader.one(loaded, _file_of(module)).of_version(_version_of([module]))

    def free(self) -> None:
        """No-op: installed modules stay imported."""


def _version_of(modules: Iterable[ModuleType]) -> str:
    """Digest of the modules' code; empty for Rollcall's own modules, which change only with a release."""
    others = [module for module in modules if module.__name__.partition(".")[0] != _OWN]
    return version_of(Path(module.__file__) for module in others if module.__file__) if others else ""


def _file_of(module: ModuleType) -> str:
    return shortened(module.__file__) if module.__file__ else module.__name__


def _not_imported(name: str, error: BaseException) -> str:
    at = last_place(error, importlib.__file__, __file__)
    return f"{name!r} cannot be imported: {error_text(error)}" + (f" ({at})" if at else "")


class PythonFiles:
    """Source for Python files; each path is a file, a package, or a folder of both."""

    def __init__(self, name: str, paths: Sequence[Path], reader: ModuleReader, changes: Changes, clock: Clock) -> None:
        self.name = name
        self._paths = tuple(dict.fromkeys(paths))
        self._reader = reader
        self._changes = changes
        self._clock = clock
        self._units: dict[Path, list[Unit]] = {}
        """Units at each path when it was last readable."""
        self._order: tuple[Path, ...] = ()
        self._files: dict[Path, _File] = {}
        """Last read state of each unit, by its file."""
        self._faults: list[Diagnostic] = []
        self._has_published = False

    async def run(self, publish: Publish) -> None:
        """Publish the functions of all importable files, and again after each change."""
        readings = Readings(self._clock, lambda: publish(self._snapshot(readings)))
        is_watching = True
        try:
            while is_watching:
                watched = self._helpers().union(self._paths)
                async with aclosing(self._changes.of(*sorted(watched))) as changes:
                    async for _ in changes:
                        await self._look(readings, publish)
                        if not self._helpers() <= watched:
                            break
                    else:
                        is_watching = False
            await readings.finish()
        except asyncio.CancelledError:
            readings.close()
            raise

    async def _look(self, readings: Readings, publish: Publish) -> None:
        """Read changed units again; publish if anything changed."""
        faults_before, order_before = self._faults, self._order
        self._faults = await asyncio.to_thread(self._list)
        units = {unit.file: unit for path in self._paths for unit in self._units.get(path, ())}
        self._order = tuple(units)
        changed = await asyncio.to_thread(self._changed, units)
        self._files = {file: changed.get(file) or self._files[file] for file in units}
        readings.keep_only(units)
        await readings.read(changed)
        if changed or (faults_before, order_before) != (self._faults, self._order) or not self._has_published:
            self._has_published = True
            publish(self._snapshot(readings))

    def _changed(self, units: Mapping[Path, Unit]) -> Mapping[Hashable, _File]:
        """Units that are new or changed, or import a changed file next to them."""
        return {
            file: _File(Edition(unit), self._reader)
            for file, unit in units.items()
            if file not in self._files or not self._files[file].is_of(unit)
        }

    def _list(self) -> list[Diagnostic]:
        """Update the units at all paths. Returns diagnostics of paths that cannot be read or do not exist; an
        unreadable path keeps its units."""
        faults: list[Diagnostic] = []
        for path in self._paths:
            try:
                self._units[path] = units_at(path)
            except (StorageError, OSError) as error:
                faults.append(problem_at(str(path), f"{path} cannot be read: {error}"))
                continue
            if not self._units[path] and not path.exists():
                faults.append(problem_at(str(path), f"{path}: there is no such file or folder"))
        return faults

    def _helpers(self) -> frozenset[Path]:
        """Files next to units that the units import."""
        return frozenset().union(*(one.helpers for one in self._files.values()))

    def _snapshot(self, readings: Readings) -> Snapshot:
        helpers = self._helpers()
        return readings.snapshot(
            self._order, self._faults, [file for file in self._order if file.absolute() in helpers]
        )


class _File:
    """A file or package in its current state."""

    def __init__(self, edition: Edition, reader: ModuleReader) -> None:
        self._edition = edition
        self._reader = reader
        self.place = shortened(str(edition.unit.file))

    @property
    def helpers(self) -> frozenset[Path]:
        """Files next to the unit that it imports."""
        return self._edition.helpers

    def is_of(self, unit: Unit) -> bool:
        """Whether it is `unit`, and no imported file next to it has changed."""
        return self._edition.unit.etag == unit.etag and not self._edition.is_outdated()

    def read(self) -> Reading:
        modules, failed = self._edition.load()
        if not modules:
            return Reading(faults=tuple(failed), is_whole=False)
        reading = self._reader.modules(modules, self.place, self._edition.find, failed)
        # A file changed during the read triggers another one soon.
        return reading.of_version(self._edition.version())

    def free(self) -> None:
        self._edition.free()
