"""The functions of modules that are installed: those that an operator names, and those that packages announce."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Protocol

from config.diagnostics import Diagnostic
from function_calls.definition_faults import fault
from function_calls.python_units import is_private, version_of
from function_calls.readings import Reading, Readings
from function_calls.source import Publish
from function_calls.source_places import last_place, shortened, told
from services.clock import Clock

GROUP = "rollcall.functions"
"""The group of the entry points by which an installed package announces its functions."""
_OWN = __name__.partition(".")[0]


class ReadsModules(Protocol):
    """Who knows what modules give."""

    def modules(self, modules: Sequence[ModuleType], place: str, *, unread: Sequence[Diagnostic]) -> Reading:
        """What `modules` give that belong together, the first one standing for all; `place` is theirs, `unread` says
        why others of them could not be imported."""

    def one(self, given: object, place: str) -> Reading:
        """What a module, or a function of one, gives."""


@dataclass(frozen=True, slots=True)
class Named:
    """A module that an operator named."""

    setting: str
    """Where: `sources.modules[0]`."""
    module: str
    """Its dotted name."""
    bot: str | None = None
    """The only bot that gets its functions; None: all."""
    fault: str = ""
    """Why there is no such module."""


class PythonModules:
    """Modules by their dotted names, and what entry points name. They are imported once, and anew only by the next
    start of the daemon: what else in the process holds parts of an installed package cannot be known."""

    def __init__(
        self,
        name: str,
        named: Sequence[Named],
        reader: ReadsModules,
        clock: Clock,
        announced: Callable[[], Iterable[EntryPoint]] = tuple,
    ) -> None:
        self.name = name
        self._named = named
        self._reader = reader
        self._clock = clock
        self._announced = announced

    async def run(self, publish: Publish) -> None:
        """Publish what all of them give; again only for one whose import took long."""
        wanted: list[_Named | _Announced] = [_Named(one, self._reader) for one in self._named]
        wanted += [_Announced(point, self._reader) for point in self._announced()]
        readings = Readings(self._clock, lambda: publish(readings.snapshot(range(len(wanted)))))
        try:
            await readings.read(dict(enumerate(wanted)))
            publish(readings.snapshot(range(len(wanted))))
            await readings.finish()
        finally:
            readings.close()


def announced_functions() -> Iterable[EntryPoint]:
    """The entry points of all installed packages in the group of functions, in the order of their names."""
    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


class _Named:
    """A module, or a package with all of its modules."""

    def __init__(self, named: Named, reader: ReadsModules) -> None:
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
            specs = tuple(replace(spec, bot=self._named.bot) for spec in specs)
        return replace(reading, specs=specs).of_version(_version_of(loaded))

    def free(self) -> None:
        """Nothing: Python keeps installed modules."""

    def _load(self, name: str, loaded: list[ModuleType], failed: list[Diagnostic]) -> None:
        """Import the module `name`, and those in it where it is a package."""
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - others' code may raise anything; it becomes a value
            failed.append(self._fault(_not_imported(name, error)))
            return
        loaded.append(module)
        for one in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if not is_private(one.name):
                self._load(f"{name}.{one.name}", loaded, failed)

    def _fault(self, text: str) -> Diagnostic:
        return fault("", f"{self._named.setting}: {text}")


class _Announced:
    """What an entry point names."""

    def __init__(self, point: EntryPoint, reader: ReadsModules) -> None:
        self._point = point
        self._reader = reader
        package = point.dist.name if point.dist is not None else "an installed package"
        self.place = f"entry point {point.name!r} of {package}"

    def read(self) -> Reading:
        try:
            given = self._point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - others' code may raise anything; it becomes a value
            text = f"{self.place}: {_not_imported(self._point.value, error)}"
            return Reading(faults=(fault("", text),), is_whole=False)
        module = given if isinstance(given, ModuleType) else importlib.import_module(self._point.module)
        return self._reader.one(given, _file_of(module)).of_version(_version_of([module]))

    def free(self) -> None:
        """Nothing: Python keeps installed modules."""


def _version_of(modules: Iterable[ModuleType]) -> str:
    """Of the code of these modules; empty where it is our own, which changes with a release alone."""
    others = [module for module in modules if module.__name__.partition(".")[0] != _OWN]
    return version_of(Path(module.__file__) for module in others if module.__file__) if others else ""


def _file_of(module: ModuleType) -> str:
    return shortened(module.__file__) if module.__file__ else module.__name__


def _not_imported(name: str, error: BaseException) -> str:
    at = last_place(error, importlib.__file__, __file__)
    return f"{name!r} cannot be imported: {told(error)}" + (f" ({at})" if at else "")
