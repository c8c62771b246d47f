"""The modules that the settings name as plugins, and where those names stand."""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import function_calls.tool_modules
from config.diagnostics import Diagnostic
from config.settings import Settings
from config.yaml_document import Location, YamlDocument
from function_calls.definition_faults import SERVERS
from function_calls.sources.python_modules import Named

ALWAYS_ON = frozenset({"todo"})
"""What is a built-in function of every bot; naming it as a plugin changes nothing."""
_SETTING = re.compile(r"(?P<section>sources|bots\.(?P<bot>[a-z0-9_-]+)|)\.?(?P<key>plugins|modules)\[(?P<index>\d+)\]")


def built_in_plugins() -> Mapping[str, str]:
    """The modules that come with the program, by the names that settings have for them."""
    package = function_calls.tool_modules
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return {name: f"{package.__name__}.{name}" for name in names}


def plugins_of(settings: Settings, built_in: Mapping[str, str]) -> Sequence[Named]:
    """The modules to load, each once; for a bot only what not all bots have."""
    found = [_named(name, f"plugins[{place}]", None, built_in) for place, name in enumerate(settings.plugins)]
    of_all = {one.module for one in found}
    for key, bot in settings.bots.items():
        theirs = [_named(name, f"bots.{key}.plugins[{place}]", key, built_in) for place, name in enumerate(bot.plugins)]
        found += [one for one in theirs if one.fault or one.module not in of_all]
    wanted = [one for one in found if one.module not in ALWAYS_ON]
    return _each_once(wanted)


def modules_of(settings: Settings, plugins: Iterable[Named]) -> Sequence[Named]:
    """The installed modules to load that are not plugins of all bots already, each once."""
    known = {one.module for one in plugins if one.bot is None}
    named = [Named(f"sources.modules[{place}]", name) for place, name in enumerate(settings.sources.modules)]
    return _each_once([one for one in named if one.module not in known])


def at_their_places(faults: Iterable[Diagnostic], document: YamlDocument) -> list[Diagnostic]:
    """The same, those of modules and servers that the settings name at the name in the file of the settings."""
    placed: list[Diagnostic] = []
    for one in faults:
        found = _SETTING.match(one.message) or _SETTING.fullmatch(one.file)
        server = _server_of(one, document)
        if server is not None:
            at = document.key_at(("mcp", "servers", server))
            one = replace(one, file=document.file, line=at.line, column=at.column)
        elif found is not None and one.file in ("functions", found[0]):
            at = document.value_at(_location(found))
            one = replace(one, file=document.file, line=at.line, column=at.column)
        placed.append(one)
    return placed


def _server_of(one: Diagnostic, document: YamlDocument) -> int | None:
    """The place in the list of servers of the one that the fault is of; None where it is of none."""
    settings = document.value
    mcp = settings.get("mcp") if one.file.startswith(SERVERS) and isinstance(settings, dict) else None
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    listed = servers if isinstance(servers, list) else []
    names = [each.get("name") if isinstance(each, dict) else None for each in listed]
    name = one.file.removeprefix(SERVERS)
    return names.index(name) if name in names else None


def _location(found: re.Match[str]) -> Location:
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
    text = f"there is no plugin {name!r}; {hint} A module of your own has a dot in its name here; one without belongs"
    return Named(setting, name, bot, f"{text} into sources.modules")
