"""The functions of the daemon: its own handlers and those of the settings' sources, with services bound by type."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import function_calls.handlers
from config.settings import Settings
from function_calls.registry import FunctionRegistry
from function_calls.sources.base import FunctionSource
from function_calls.sources.python_functions import PythonFiles, PythonFunctions, Services
from function_calls.spec import FunctionSpec, OfferedTo


def built_in_modules() -> list[ModuleType]:
    """Every module of function_calls.handlers, in the order of their names."""
    package = function_calls.handlers
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def sources_of(settings: Settings, services: Services) -> Sequence[FunctionSource]:
    """Where functions come from, as the settings say."""
    paths = [Path(one) for one in settings.sources.python]
    built_in = PythonFunctions("built in", built_in_modules(), services)
    # A model would call it for every fact that it does not know, each time in vain. Its command says what to set.
    withheld = {"search"} if settings.search.kind == "none" else set()
    return [Withholding(built_in, withheld), PythonFiles("sources.python", paths, services)]


class Withholding:
    """A source some of whose functions no model is offered."""

    def __init__(self, source: FunctionSource, withheld: Collection[str]) -> None:
        self.name = source.name
        self._source = source
        self._withheld = withheld

    def load(self) -> Sequence[FunctionSpec]:
        """The specs of the source. Raises DefinitionError."""
        return [
            replace(spec, offered_to=spec.offered_to - {OfferedTo.MODEL}) if spec.name in self._withheld else spec
            for spec in self._source.load()
        ]


def registry_of(sources: Sequence[FunctionSource]) -> FunctionRegistry:
    """A registry with what all of `sources` publish. Raises DefinitionError."""
    registry = FunctionRegistry()
    for source in sources:
        registry.replace_source(source.name, source.load())
    return registry
