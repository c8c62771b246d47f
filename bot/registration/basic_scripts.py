"""BASIC scripts of the settings: keywords, compiler, source, and services of keywords."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import cast

from bot.live.settings import LiveSettings
from bot.registration.function_sources import ConfiguredSource
from config.sections.basic import BasicSettings, BasicSource
from config.settings import Settings
from function_calls.basic import (
    ARITIES,
    Answer,
    BasicCompiler,
    BasicScripts,
    Forms,
    Grants,
    KeywordTable,
    LibraryTool,
    LiteralCheck,
    LoadProgram,
    ModelOfScripts,
    RowSources,
    RunScheduler,
    ScriptHandler,
    WebOfScripts,
    WorkFolder,
    bot_of,
    form_of,
    marked_functions,
    read_heard,
    script_seconds,
)
from function_calls.declaration import error_text, last_place
from function_calls.loading.module_loading import Edition, Services, is_private, units_at
from function_calls.loading.source import Changes
from function_calls.ports import ChatWriter
from function_calls.profile import ChatProfile
from function_calls.schema.definition import DefinitionError
from function_calls.spec import Handler
from services.clock import Clock
from services.mail import Mailer
from services.redaction import Redactor
from services.refs import JsonValue
from services.scripts.basic_tools import BasicTools
from services.scripts.files import LocalScriptFiles, ScriptFolder
from services.scripts.memory import ScriptMemory
from services.scripts.tables import ScriptTables
from services.storage import StorageError
from services.store.ids import Ids
from services.store.port import Store
from services.times import Times
from services.web.http import WebClient

SETTING = "sources.basic_keywords"
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def built_in_keyword_modules() -> list[ModuleType]:
    """Every module of function_calls.basic.keyword_modules, sorted by name."""
    package = importlib.import_module("function_calls.basic.keyword_modules")
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if not is_private(found.name))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def own_keyword_modules(named: Sequence[str]) -> list[ModuleType]:
    """The modules listed in the settings: a file or package by its path, or an installed module by its dotted name.
    They are imported once and not reloaded. Raises DefinitionError with all problems."""
    modules: list[ModuleType] = []
    problems: list[str] = []
    for place, one in enumerate(named):
        try:
            modules += _imported(one)
        except DefinitionError as error:
            problems += [f"{SETTING}[{place}]: {problem}" for problem in error.problems]
    if problems:
        raise DefinitionError("keywords of scripts", problems)
    return modules


def _imported(named: str) -> Iterable[ModuleType]:
    path = Path(named).expanduser()
    if _is_path(named, path):
        return _of_path(path)
    try:
        return [importlib.import_module(named)]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's code may raise anything
        place = last_place(error, __file__)
        raise DefinitionError(
            named, [f"{named} cannot be imported: {error_text(error)}{f' ({place})' if place else ''}"]
        ) from None


def _is_path(named: str, path: Path) -> bool:
    return _DOTTED.fullmatch(named) is None or named.endswith(".py") or path.exists()


def _of_path(path: Path) -> list[ModuleType]:
    try:
        units = units_at(path)
    except (StorageError, OSError) as error:
        raise DefinitionError(str(path), [f"{path} cannot be read: {error}"]) from None
    if not units:
        raise DefinitionError(str(path), [f"{path}: there is no Python file"])
    modules: list[ModuleType] = []
    problems: list[str] = []
    for unit in units:
        loaded, failed = Edition(unit).load()
        modules += loaded
        problems += [f"{one.message} ({one.file}:{one.line})" for one in failed]
    if problems:
        raise DefinitionError(str(path), problems)
    return modules


WORK = Path("work")
"""Below `home`: compiled scripts, by bot."""


def scripts_of(settings: Settings, services: Services, changes: Changes) -> Sequence[ConfiguredSource]:
    """The source of BASIC scripts; empty if none are configured. Raises DefinitionError for keywords that cannot be
    used."""
    if not settings.sources.basic:
        return ()
    modules = keyword_modules(settings)
    redact = cast(Redactor, services[Redactor])
    source = BasicScripts(
        "sources.basic",
        settings.sources.basic,
        compiler=compiler_of(settings.basic, spellings_of(modules)),
        runs=ScriptRuns(settings, KeywordTable(modules, services, hide=redact.known), services),
        kept=cast(BasicTools, services[BasicTools]),
        work=WorkFolder(Path(settings.home) / WORK),
        bots=tuple(settings.bots),
        changes=changes,
        clock=cast(Clock, services[Clock]),
    )
    return [ConfiguredSource(source, made_of_scripts(settings))]


class ScriptRuns:
    """Runs the scripts of these settings."""

    def __init__(self, settings: Settings, table: KeywordTable, services: Services) -> None:
        self._settings = settings.basic
        self._parameters = {name: bot.parameters for name, bot in settings.bots.items()}
        self._table = table
        self._line = RunScheduler()
        self._clock = cast(Clock, services[Clock])
        self._chance = cast(Random, services[Random])
        self._times = cast(Times, services[Times])
        self.effect_of = table.effect_of
        self.touches_of = table.touches_of
        self.seconds_of = script_seconds

    def parse(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        """The value of `text` as a kind of answer, such as `date`, in the chat's time zone. Raises ValueError."""
        now = self._clock.now().astimezone(profile.timezone)
        return read_heard(kind, Answer(text, (), now, self._times, profile.texts))

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        """The handler that runs `tool` with the rights of `source`; see `Runs`."""
        return ScriptHandler(
            tool.definition,
            load,
            self._table,
            self._settings,
            Grants(source.may_call, source.shared_tables, source.shared_memory),
            clock=self._clock,
            chance=self._chance,
            folder=tool.place.folder,
            parameters=lambda bot: self._parameters.get(bot, {}),
            line=self._line,
        ).handle


def made_of_scripts(settings: Settings) -> object:
    """The settings that decide whether the script source has to be rebuilt."""
    parameters = {name: bot.parameters for name, bot in settings.bots.items()}
    return settings.sources.basic, settings.sources.basic_keywords, settings.basic, parameters


def keyword_modules(settings: Settings) -> Sequence[ModuleType]:
    """The built-in keyword modules and those of the settings. Raises DefinitionError."""
    return [*built_in_keyword_modules(), *own_keyword_modules(settings.sources.basic_keywords)]


def spellings_of(modules: Sequence[ModuleType]) -> Mapping[str, Mapping[str, LiteralCheck]]:
    """The forms of the keywords of these modules, each with the checks of its literals; enough to parse a script."""
    return {form: declaration.checks for _, declaration in marked_functions(modules) for form in declaration.forms}


def compiler_of(settings: BasicSettings, spellings: Mapping[str, Mapping[str, LiteralCheck]]) -> BasicCompiler:
    """The compiler for scripts that may use these keywords. Raises BadForm."""
    forms = Forms(replace(form_of(one), checks=checks) for one, checks in spellings.items())
    return BasicCompiler(forms, ARITIES, settings.source_kilobytes * 1024, tuple(spellings))


def script_services_of(
    settings: Settings, services: Mapping[type, object], store: Store, ids: Ids
) -> dict[type, object]:
    """The services of scripts by type, such as web, mail, tables and files, built from `services`."""
    clock = cast(Clock, services[Clock])
    web = WebOfScripts(cast(WebClient, services[WebClient]), settings.basic.web, clock)
    model = ModelOfScripts(cast(ChatWriter, services[ChatWriter]), clock)
    tables, files = ScriptTables(store, ids, clock), LocalScriptFiles(folders_of(settings.sources.basic))
    return {
        WebOfScripts: web,
        ModelOfScripts: model,
        Mailer: Mailer(settings.mail, clock),
        ScriptMemory: ScriptMemory(store, clock),
        ScriptTables: tables,
        LocalScriptFiles: files,
        RowSources: RowSources(tables, files, clock),
    }


def script_services_live(live: LiveSettings, services: Mapping[type, object]) -> None:
    """Register the live settings of web access, files and mail of scripts."""
    files = cast(LocalScriptFiles, services[LocalScriptFiles])
    web, mailer = cast(WebOfScripts, services[WebOfScripts]), cast(Mailer, services[Mailer])

    # The source of scripts is registered for `basic` and `sources` as a whole; these are parts of them.
    live.register(
        prepare=lambda fresh: partial(web.use, fresh.basic.web), depends_on=lambda settings: settings.basic.web
    )
    live.register("mail", prepare=lambda fresh: partial(mailer.use, fresh.mail))
    live.register(
        prepare=lambda fresh: partial(files.use, folders_of(fresh.sources.basic)),
        depends_on=lambda settings: settings.sources.basic,
    )


def folders_of(sources: Iterable[BasicSource]) -> list[ScriptFolder]:
    """The local folders of files that scripts may read: those of the scripts."""
    return [
        ScriptFolder(source.path if source.path.is_dir() else source.path.parent, bot_of(source))
        for source in sources
        if source.path
    ]
