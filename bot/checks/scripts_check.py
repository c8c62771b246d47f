"""Static check of BASIC scripts, for `rollcall basic check` and `rollcall check`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import NamedTuple

from bot.checks.scratch import scratch_daemon
from bot.registration.basic_scripts import compiler_of, keyword_modules, spellings_of
from config.diagnostics import Diagnostic, Diagnostics, Severity
from config.sections.basic import BasicSource
from config.settings import Settings
from function_calls.basic import (
    BasicCompiler,
    NameOwner,
    Names,
    Profile,
    ScriptCode,
    ScriptPlace,
    bot_of,
    duplicate_tool,
    no_such_bot,
    place_of,
    storage_of,
    tool_name,
)
from function_calls.schema.definition import Code, problem_at
from function_calls.spec import START_FUNCTION, FunctionSpec
from services.refs import JsonObject
from services.storage import Storage, StorageError


@dataclass(slots=True)
class Checked:
    """Result of the check."""

    findings: list[Diagnostic]
    scripts: int = 0
    broken: int = 0
    """Scripts with errors."""
    unread: int = 0
    """Places without scripts."""
    tools: dict[str, JsonObject] = field(default_factory=dict)
    """JSON Schema of the arguments of each compiled tool, by name."""


def check_scripts(
    settings: Settings,
    sources: Iterable[BasicSource],
    others: Iterable[FunctionSpec] = (),
    bots: Collection[str] = (),
) -> Checked:
    """All diagnostics, file by file, with the keywords of these settings. `others`: functions whose names scripts
    cannot use. `bots`: the existing bots; empty to skip the check of bots. Raises DefinitionError if the keywords
    cannot be used."""
    compiler = compiler_of(settings.basic, spellings_of(keyword_modules(settings)))
    variables = {name: tuple(bot.parameters) for name, bot in settings.bots.items()}
    checking = _Checking(compiler, variables, others, bots)
    for source in sources:
        checking.source(source)
    checking.report_unknown_calls()
    found = checking.checked.findings
    files = {file: number for number, file in enumerate(dict.fromkeys(one.file for one in found))}
    found.sort(key=lambda one: (files[one.file], one.line, one.column))
    return checking.checked


async def functions_without_scripts(settings: Settings) -> tuple[FunctionSpec, ...]:
    """All functions of the settings except scripts. Raises DefinitionError."""
    sources = settings.sources.model_copy(update={"basic": ()})
    async with scratch_daemon(settings.model_copy(update={"sources": sources})) as daemon:
        return daemon.registry.specs


class NameConflict(NamedTuple):
    """A conflict between a script's name and another function."""

    message: str
    severity: Severity
    """Error or warning: a script without its command can still be called by models and other functions."""


def name_conflict(
    name: str, bot: str | None, others: Iterable[FunctionSpec], *, is_command: bool = True
) -> NameConflict | None:
    """The conflict for the name of a script of `bot` (None: of any bot), or None. `is_command`: members type the name
    as a command."""
    word = name.casefold()
    mine = [one for one in others if bot is None or one.access.bot in (None, bot)]
    for one in mine:
        if one.name == name:
            return NameConflict(
                f"{name!r} is taken: it is the function {one.name} ({one.origin.source}); call it otherwise", "error"
            )
    for one in mine:
        if is_command and word in one.command.words:
            message = f"{name!r} is taken: it is a command of the function {one.name} ({one.origin.source})"
            return NameConflict(f"{message}; call it otherwise, or people cannot type it", "warning")
    return None


def doubts_of(settings: Settings) -> list[Diagnostic]:
    """Warnings about the scripts of the settings; their errors are reported with the functions. Raises
    DefinitionError."""
    if not settings.sources.basic:
        return []
    found = check_scripts(settings, settings.sources.basic).findings
    return [one for one in found if one.severity == "warning"]


@dataclass(eq=False, repr=False)
class _Checking:
    """Checks one storage after another; names are unique across all of them."""

    compiler: BasicCompiler
    variables: Mapping[str, Collection[str]]
    """Predefined variables of each bot's scripts."""
    others: InitVar[Iterable[FunctionSpec]]
    bots: Collection[str]

    def __post_init__(self, others: Iterable[FunctionSpec]) -> None:
        self._others = tuple(others)
        self._names = Names()
        self._scripts: set[str] = set()
        self._seen: set[tuple[str, Path]] = set()
        """Scripts that were checked, by bot and file: sources may overlap."""
        self._called: list[tuple[str, Diagnostic]] = []
        """Literal names of functions that scripts call, with a warning for each."""
        self.checked = Checked([])

    def report_unknown_calls(self) -> None:
        """Warn about calls of functions that no script and no other function provides; skipped if the other functions
        are unknown."""
        known = {name.casefold() for one in self._others for name in (one.name, *one.command.words)}
        known |= {name.casefold() for name in self._scripts}
        if self._others:
            self.checked.findings += [warning for name, warning in self._called if name.casefold() not in known]

    def source(self, source: BasicSource) -> None:
        """Check all scripts of a source and add the findings. A storage that cannot be listed, or has no scripts, is a
        finding."""
        storage = storage_of(source)
        try:
            listed = list(storage.list())
        except StorageError as error:
            self._nothing([problem_at(source.where, str(error))])
            return
        places = [place for path in listed if (place := place_of(path, bot_of(source)))]
        if not places:
            text = (
                f"{source.where}: there are no scripts; they are <bot>.gbai/<bot>.gbdialog/*.bas, or *.bas right there"
            )
            self._nothing([problem_at(source.where, text)])
        self.checked.findings += self._strangers(storage, places)
        for place in places:
            script = (place.bot, Path(storage.place(place.path)).resolve())
            if script not in self._seen:
                self._seen.add(script)
                self._script(storage, place, Profile(source.profile))

    def _strangers(self, storage: Storage, places: Sequence[ScriptPlace]) -> list[Diagnostic]:
        """Diagnostics on scripts of unknown bots."""
        files: dict[str, list[str]] = {}
        for place in places:
            if self.bots and place.bot not in self.bots:
                files.setdefault(place.bot, []).append(storage.place(place.path))
        return [no_such_bot(bot, of_bot, self.bots) for bot, of_bot in files.items()]

    def _script(self, storage: Storage, place: ScriptPlace, profile: Profile) -> None:
        file = storage.place(place.path)
        self.checked.scripts += 1
        try:
            content = storage.read(place.path)
        except StorageError as error:
            self._report([problem_at(file, str(error))])
            return
        result = self.compiler.compile_text(
            content,
            file,
            name=place.name,
            bot=place.bot,
            profile=profile,
            variables=self.variables.get(place.bot, ()),
        )
        found = list(result.diagnostics)
        self._scripts.add(place.name)
        self._called += _called(content, file)
        for one in result.tools:
            self._scripts.add(one.definition.name)
            self.checked.tools[one.definition.name] = one.definition.schema()
            key = (place.bot, one.definition.name)
            first = self._names.take(key, NameOwner(storage.place(""), place.path, file))
            if first is not None:
                found.append(duplicate_tool(key, first.file, file, one.definition.line))
                continue
            is_command = not one.definition.metadata.get(START_FUNCTION)
            conflict = name_conflict(one.definition.name, place.bot, self._others, is_command=is_command)
            if conflict is not None:
                found.append(
                    Diagnostic(file, one.definition.line, 1, Code.TAKEN.value, conflict.message, conflict.severity)
                )
        self._report(found)

    def _nothing(self, found: Sequence[Diagnostic]) -> None:
        self.checked.findings += found
        self.checked.unread += 1

    def _report(self, found: Sequence[Diagnostic]) -> None:
        self.checked.findings += Diagnostics(found).in_order()
        self.checked.broken += any(one.severity == "error" for one in found)


_CALL = re.compile(
    r'^[ \t]*(?:[\w.]+[ \t]*=[ \t]*)?(CALL|REFRESH|(?:USE|ADD|RUN)[ _]TOOL)[ \t]+"([^"$]+)"',
    re.IGNORECASE | re.MULTILINE,
)


def _called(content: bytes, file: str) -> Iterator[tuple[str, Diagnostic]]:
    """Literal names after CALL, REFRESH, USE TOOL and ADD TOOL, each with the warning that there is none."""
    text = content.decode("utf-8", "replace")
    for found in _CALL.finditer(text):
        name, line = tool_name(found[2]), text.count("\n", 0, found.start(1)) + 1
        message = (
            f"there is no function `{name}`, so {found[1].upper()} fails here; add a script or a function of this name"
        )
        column = found.start(1) - text.rfind("\n", 0, found.start(1))
        yield name, Diagnostic(file, line, column, ScriptCode.UNKNOWN_CALL.value, message, "warning")
