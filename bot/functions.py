"""The functions of the daemon: its own handlers and those of the settings' sources, with services bound by type."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import function_calls.handlers
from bot.basic_scripts import made_of_scripts, scripts_of
from bot.function_sources import WantedSource
from bot.plugins import built_in_plugins, modules_of, plugins_of
from config.settings import Settings
from function_calls.command_tools.machine import Machine
from function_calls.module_functions import ModuleReader
from function_calls.source import Changes, FunctionSource, Publish, Snapshot
from function_calls.sources.python_files import PythonFiles
from function_calls.sources.python_functions import PythonFunctions, Services
from function_calls.sources.python_modules import PythonModules, announced_functions
from function_calls.sources.yaml_commands import YamlCommands
from function_calls.spec import FunctionSpec, OfferedTo
from services.clock import Clock
from services.deadlines import Deadlines
from services.sandbox import Sandbox
from services.workspace import Workspaces


def built_in_modules() -> list[ModuleType]:
    """Every module of function_calls.handlers, in the order of their names."""
    package = function_calls.handlers
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


SECTIONS = ("sources", "plugins", "basic", "mcp.servers")
"""The settings of where functions come from."""


def made_of(settings: Settings) -> object:
    """All that `sources_of` makes sources of and that may change while the daemon runs."""
    own = {name: bot.plugins for name, bot in settings.bots.items()}
    return settings.sources, settings.plugins, settings.mcp.servers, own, made_of_scripts(settings)


def sources_of(settings: Settings, services: Services, changes: Changes) -> Sequence[FunctionSource | WantedSource]:
    """Where functions come from, as the settings say. One that comes with what it was made of starts anew only when
    that has changed; any other, when anything of `made_of` has. `changes` tells of edits."""
    built_in = PythonFunctions("built in", built_in_modules(), services)
    # A model would call it for every fact that it does not know, each time in vain. Its command says what to set.
    withheld = {"search"} if settings.search.kind == "none" else set()
    commands = settings.sources.commands
    return [
        WantedSource(Withholding(built_in, withheld), withheld),
        *_python_sources(settings, services, changes),
        WantedSource(YamlCommands("sources.commands", commands, _machine(services), changes), commands),
        *scripts_of(settings, services, changes),
    ]


def _python_sources(settings: Settings, services: Services, changes: Changes) -> Sequence[WantedSource]:
    """Plugins, files and installed modules."""
    reader, clock = ModuleReader(services), cast(Clock, services[Clock])
    plugins = plugins_of(settings, built_in_plugins())
    paths = [Path(one) for one in settings.sources.python]
    modules = modules_of(settings, plugins)
    announced = announced_functions if settings.sources.entry_points else tuple
    return [
        WantedSource(PythonModules("plugins", plugins, reader, clock), plugins),
        WantedSource(PythonFiles("sources.python", paths, reader.modules, changes, clock), paths),
        WantedSource(PythonModules("sources.modules", modules, reader, clock, announced), (modules, announced)),
    ]


def _machine(services: Services) -> Machine:
    """What the commands of tools run with."""
    clock = cast(Clock, services[Clock])
    workspaces = cast(Workspaces, services[Workspaces])
    return Machine(cast(Sandbox, services[Sandbox]), clock, workspaces, Deadlines(clock))


class Withholding:
    """A source some of whose functions no model is offered."""

    def __init__(self, source: FunctionSource, withheld: Collection[str]) -> None:
        self.name = source.name
        self._source = source
        self._withheld = withheld

    async def run(self, publish: Publish) -> None:
        """Publish what the source does, with those functions kept from models. Raises DefinitionError."""

        def publish_kept(snapshot: Snapshot) -> None:
            publish(replace(snapshot, specs=tuple(map(self._kept, snapshot.specs))))

        await self._source.run(publish_kept)

    def _kept(self, spec: FunctionSpec) -> FunctionSpec:
        if spec.name not in self._withheld:
            return spec
        return replace(spec, offered_to=spec.offered_to - {OfferedTo.MODEL})
