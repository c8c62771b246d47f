"""The daemon's functions: its own handlers, plugins, and those of the configured sources."""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

import function_calls.handlers
import function_calls.tool_modules
from bot.registration.basic_scripts import made_of_scripts, scripts_of
from bot.registration.function_sources import ConfiguredSource
from config.diagnostics import Diagnostic
from config.loader import usable_part
from config.sections.mcp import McpServerSettings
from config.settings import Settings
from config.yaml_document import Location, YamlDocument, read_yaml_file
from function_calls.command_tools.machine import Machine
from function_calls.loading.module_functions import ModuleReader
from function_calls.loading.module_loading import Services
from function_calls.loading.python_functions import PythonFunctions
from function_calls.loading.source import Changes, FunctionSource, Publish, Snapshot
from function_calls.schema.definition import SERVERS
from function_calls.sources.mcp_servers import McpFunctions
from function_calls.sources.python_modules import Named, PythonFiles, PythonModules, announced_functions
from function_calls.sources.yaml_commands import YamlCommands
from function_calls.spec import FunctionSpec, OfferedTo
from services.clock import Clock, Deadlines
from services.mcp.opening import Opening, Start
from services.mcp.server import McpServer
from services.mcp.tools import Pins
from services.sandbox.sandbox import Sandbox
from services.sandbox.workspace import Workspaces

ALWAYS_ON = frozenset({"todo"})
"""Built-in functions of every bot; naming them as plugins has no effect."""
_SETTING = re.compile(
    r"(?P<section>sources|filters|bots\.(?P<bot>[a-z0-9_-]+)|)\.?"
    r"(?P<key>plugins|modules|turn|round|call)\[(?P<index>\d+)\]|filters\.named\.(?P<filter>[^:\s]+)"
)


def built_in_plugins() -> Mapping[str, str]:
    """Full module names of the included plugins by their names in the settings."""
    package = function_calls.tool_modules
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return {name: f"{package.__name__}.{name}" for name in names}


def plugins_of(settings: Settings, built_in: Mapping[str, str]) -> Sequence[Named]:
    """The plugin modules to load, each once; for a bot only those that are not for all bots."""
    found = [_named(name, f"plugins[{place}]", None, built_in) for place, name in enumerate(settings.plugins)]
    of_all = {one.module for one in found}
    for key, bot in settings.bots.items():
        theirs = [_named(name, f"bots.{key}.plugins[{place}]", key, built_in) for place, name in enumerate(bot.plugins)]
        found += [one for one in theirs if one.fault or one.module not in of_all]
    optional = [one for one in found if one.module not in ALWAYS_ON]
    return _each_once(optional)


def modules_of(settings: Settings, plugins: Iterable[Named]) -> Sequence[Named]:
    """The installed modules to load, each once, without those that are plugins of all bots."""
    known = {one.module for one in plugins if one.bot is None}
    named = [Named(f"sources.modules[{place}]", name) for place, name in enumerate(settings.sources.modules)]
    return _each_once([one for one in named if one.module not in known])


def at_their_places(
    faults: Iterable[Diagnostic], document: YamlDocument, settings: Settings | None = None
) -> list[Diagnostic]:
    """`faults`, with those about configured modules, filters and servers, and paths of `settings` that do not exist,
    moved to their places in the settings file."""
    placed: list[Diagnostic] = []
    paths = _paths_of(settings) if settings else {}
    for one in faults:
        found = _SETTING.match(one.message) or _SETTING.fullmatch(one.file)
        server, at = _server_of(one, document), None
        if server is not None:
            at = document.key_at(("mcp", "servers", server))
        elif found is not None and one.file in ("functions", found[0]):
            at = document.value_at(_location(found))
        elif one.file in paths and not os.path.exists(one.file):
            at = document.value_at(paths[one.file])
        placed.append(one if at is None else replace(one, file=document.file, line=at.line, column=at.column))
    return placed


def _paths_of(settings: Settings) -> dict[str, Location]:
    """Places in the settings of the paths of `sources`, by path; the first place if a path occurs twice."""
    sources = settings.sources
    named = {"python": sources.python, "commands": sources.commands, "basic": [one.where for one in sources.basic]}
    return {
        str(path): ("sources", key, index)
        for key, paths in reversed(named.items())
        for index, path in reversed(list(enumerate(paths)))
    }


def in_settings_file(file: Path | None) -> Callable[[Sequence[Diagnostic]], Sequence[Diagnostic]]:
    """A callback that moves diagnostics to their places in the settings file, except those of tool servers, which are
    known by their settings key."""

    def placed(faults: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
        moving = [one for one in faults if not one.file.startswith(SERVERS) and not os.path.exists(one.file)]
        if file is None or not moving:
            return faults
        moved = at_their_places(moving, read_yaml_file(file), usable_part(file, os.environ))
        return [*moved, *(one for one in faults if one not in moving)]

    return placed


def _server_of(one: Diagnostic, document: YamlDocument) -> int | None:
    """Index of the configured server that the problem belongs to; None if it belongs to none."""
    settings = document.value
    mcp = settings.get("mcp") if one.file.startswith(SERVERS) and isinstance(settings, dict) else None
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    listed = servers if isinstance(servers, list) else []
    names = [each.get("name") if isinstance(each, dict) else None for each in listed]
    name = one.file.removeprefix(SERVERS)
    return names.index(name) if name in names else None


def _location(found: re.Match[str]) -> Location:
    if found["filter"]:
        return "filters", "named", found["filter"]
    section: Location = ("bots", found["bot"]) if found["bot"] else tuple(filter(None, [found["section"]]))
    return (*section, found["key"], int(found["index"]))


def _each_once(named: Iterable[Named]) -> Sequence[Named]:
    first: dict[tuple[str, str | None], Named] = {}
    for one in named:
        first.setdefault((one.module, one.bot), one)
    return tuple(first.values())


def _named(name: str, setting: str, bot: str | None, built_in: Mapping[str, str]) -> Named:
    if name in built_in:
        return Named(setting, built_in[name], bot)
    if "." in name or name in ALWAYS_ON:
        return Named(setting, name, bot)
    known = sorted([*built_in, *ALWAYS_ON])
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}."
    text = f"there is no plugin {name!r}; {hint} A custom module has a dot in its name here; one without belongs"
    return Named(setting, name, bot, f"{text} into sources.modules")


def built_in_modules() -> list[ModuleType]:
    """Every module of the packages of function_calls.handlers, sorted by its own name."""
    package = function_calls.handlers
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    names = sorted((each.name for each in found if not each.ispkg), key=lambda name: name.rpartition(".")[2])
    return [importlib.import_module(name) for name in names]


SECTIONS = ("sources", "plugins", "basic", "mcp.servers")
"""The settings of function sources."""


def made_of(settings: Settings) -> object:
    """The settings that `sources_of` depends on and that may change at run time."""
    own = {name: bot.plugins for name, bot in settings.bots.items()}
    return settings.sources, settings.plugins, settings.mcp.servers, own, made_of_scripts(settings)


def sources_of(settings: Settings, services: Services, changes: Changes) -> Sequence[FunctionSource | ConfiguredSource]:
    """The function sources of the settings. A ConfiguredSource restarts only when its inputs change, any other source
    when any value of `made_of` does. `changes` reports edited files. Raises DefinitionError for keywords that cannot be
    used."""
    built_in = PythonFunctions("built in", built_in_modules(), services)
    # A model would call it for every unknown fact, always in vain. The command explains which setting is missing.
    withheld = {"search"} if settings.search.kind == "none" else set()
    commands = settings.sources.commands
    return [
        ConfiguredSource(Withholding(built_in, withheld), withheld),
        *_python_sources(settings, services, changes),
        ConfiguredSource(YamlCommands("sources.commands", commands, _machine(services), changes), commands),
        *scripts_of(settings, services, changes),
    ]


def _python_sources(settings: Settings, services: Services, changes: Changes) -> Sequence[ConfiguredSource]:
    """The configured sources of plugins, files and installed modules."""
    reader, clock = ModuleReader(services), cast(Clock, services[Clock])
    plugins = plugins_of(settings, built_in_plugins())
    paths = [Path(one) for one in settings.sources.python]
    modules = modules_of(settings, plugins)
    announced = announced_functions if settings.sources.entry_points else tuple
    return [
        ConfiguredSource(PythonModules("plugins", plugins, reader, clock), plugins),
        ConfiguredSource(PythonFiles("sources.python", paths, reader, changes, clock), paths),
        ConfiguredSource(PythonModules("sources.modules", modules, reader, clock, announced), (modules, announced)),
    ]


def _machine(services: Services) -> Machine:
    """The services of YAML commands that start programs: sandbox, clock, workspaces and deadlines."""
    clock = cast(Clock, services[Clock])
    workspaces = cast(Workspaces, services[Workspaces])
    return Machine(cast(Sandbox, services[Sandbox]), clock, workspaces, Deadlines(clock))


class Withholding:
    """A source with some functions not offered to models."""

    def __init__(self, source: FunctionSource, withheld: Collection[str]) -> None:
        self.name = source.name
        self._source = source
        self._withheld = withheld

    async def run(self, publish: Publish) -> None:
        """Publish the snapshots of the source with the withheld functions changed. Raises DefinitionError."""

        def publish_adapted(snapshot: Snapshot) -> None:
            publish(replace(snapshot, specs=tuple(map(self._adapted, snapshot.specs))))

        await self._source.run(publish_adapted)

    def _adapted(self, spec: FunctionSpec) -> FunctionSpec:
        if spec.name not in self._withheld:
            return spec
        return replace(spec, access=replace(spec.access, offered_to=spec.access.offered_to - {OfferedTo.MODEL}))


def mcp_sources(
    servers: Sequence[McpServerSettings], pins: Pins, clock: Clock, start: Start, home: Path, *, asks_first: bool
) -> Sequence[ConfiguredSource]:
    """One source per server. `start` starts their programs, `home` has their logins. `asks_first`: query a server whose
    tools are not known yet."""

    def functions_of(one: McpServerSettings) -> McpFunctions:
        server = McpServer(one, pins, clock, Opening(one, clock, start, home), asks_first=asks_first)
        return McpFunctions(one, server, pins, clock)

    return [ConfiguredSource(functions_of(one), one) for one in servers]
