"""Names in the settings that belong to no function. A misspelt name leaves a function enabled for everybody that was
meant to be disabled, restricted or budgeted. Reported by `rollcall check`, and by the daemon at run time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import structlog

from bot.registration.function_sources import FunctionSources
from config.diagnostics import Diagnostic, Severity, did_you_mean
from config.settings import Settings
from config.wording import dotted
from config.yaml_document import Location, YamlDocument, read_yaml_file
from function_calls.schema.definition import DefinitionError, problem_at
from function_calls.sources.mcp_servers import prefix_of
from function_calls.spec import FunctionSpec

UNKNOWN = "functions.unknown"
_LISTED = "; `rollcall functions` lists them"
_log = structlog.get_logger("settings")


class UnknownName(NamedTuple):
    """A name that belongs to no function."""

    location: Location
    """Its place in the settings."""
    message: str


@dataclass(eq=False, repr=False)
class UnknownNames:
    """Checks the names in the current settings against the functions, again after each change of either."""

    settings: Callable[[], Settings]
    functions: FunctionSources
    specs: Callable[[], Sequence[FunctionSpec]]
    file: Path | None = None
    """The settings file."""

    def __post_init__(self) -> None:
        self._has_started = False
        self._waiting: asyncio.Task[None] | None = None
        self._found: list[UnknownName] = []
        self._on_change: list[Callable[[], None]] = []
        self.faults: tuple[Diagnostic, ...] = ()
        """One warning for each name, with its place in the file if there is a file."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Register a callback for changes of `faults`."""
        self._on_change.append(callback)

    def begin(self) -> None:
        """Start checking, after the sources are started."""
        self._has_started = True
        self.look()

    def look(self) -> None:
        """Check after a change of settings or functions, when all sources have published."""
        if not self._has_started or self._waiting is not None:
            return
        if self.functions.have_published:
            self._check()
        else:
            self._waiting = asyncio.get_running_loop().create_task(self._check_when_all_published())

    async def close(self) -> None:
        """Stop checking, and wait for the end of a check."""
        self._has_started = False
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])

    async def _check_when_all_published(self) -> None:
        try:
            await self.functions.wait_published()
        except DefinitionError:
            # The starter of the sources handles functions given in code that cannot be used.
            pass
        finally:
            self._waiting = None
        self._check()

    def _check(self) -> None:
        found = unknown_names(self.settings(), self.specs())
        if found == self._found:
            return
        self._found = found
        before = {one.message for one in self.faults}
        document = read_yaml_file(self.file) if found and self.file is not None else None
        self.faults = tuple(in_settings(document, *one, severity="warning") for one in found)
        for one in self.faults:
            if one.message not in before:
                _log.warning("unknown_name", problem=str(one))
        for callback in self._on_change:
            callback()


def unknown_names(settings: Settings, specs: Sequence[FunctionSpec]) -> list[UnknownName]:
    """Every name in `settings` that is not among `specs`, the functions of all bots. Names of servers whose tools are
    not known yet are skipped."""
    known = {spec.name for spec in specs}
    tags = {tag for spec in specs for tag in spec.origin.tags}
    unseen = _prefixes_of_unseen_servers(settings, known)
    return [
        UnknownName(location, f"there is no function {name!r}{did_you_mean(name, known) or _LISTED}")
        for name, location in _named(settings, tags)
        if name not in known and not name.startswith(unseen)
    ]


def _named(settings: Settings, tags: Collection[str]) -> list[tuple[str, Location]]:
    """All names of functions in the settings, with their places."""
    named: list[tuple[str, Location]] = [(name, ("functions", name)) for name in settings.functions]
    named += [(name, ("router", "pinned", index)) for index, name in enumerate(settings.router.pinned)]
    named += [(name, ("budgets", "functions", name)) for name in settings.budgets.functions]
    for key, bot in settings.bots.items():
        named += [(name, ("bots", key, "functions", name)) for name in bot.functions]
    for pattern, chat in settings.chats.settings.items():
        named += [(name, ("chats", "settings", pattern, "functions", name)) for name in chat.functions]
    for index, rule in enumerate(settings.approvals.required):
        named += [
            (name, ("approvals", "required", index, "functions", place)) for place, name in enumerate(rule.functions)
        ]
    for index, client in enumerate(settings.mcp.serve.clients):
        # Here a tag selects all functions that have it.
        at: Location = ("mcp", "serve", "clients", index, "functions")
        named += [(name, (*at, place)) for place, name in enumerate(client.functions) if name not in tags]
    return named


def names_in(settings: Settings) -> object:
    """The settings that `unknown_names` reads, to notice changes: function names with their places, and names of MCP
    servers."""
    return [*_named(settings, ()), *(one.name for one in settings.mcp.servers)]


def _prefixes_of_unseen_servers(settings: Settings, known: Collection[str]) -> tuple[str, ...]:
    """Name prefixes of servers whose tools are not known yet."""
    prefixes = [prefix_of(one.name) for one in settings.mcp.servers]
    return tuple(prefix for prefix in prefixes if not any(name.startswith(prefix) for name in known))


def in_settings(
    document: YamlDocument | None,
    location: Location,
    message: str,
    severity: Severity = "error",
    code: str = UNKNOWN,
) -> Diagnostic:
    """A diagnostic, at its place in the file if there is a file."""
    # A name in a list is reported at its list.
    keys = location[:-1] if isinstance(location[-1], int) else location
    where = dotted(keys)
    if document is None:
        return problem_at("settings", f"{where}: {message}", code, severity)
    at = document.key_at(location)
    return Diagnostic(document.file, at.line, at.column, code, f"{where}: {message}", severity)
