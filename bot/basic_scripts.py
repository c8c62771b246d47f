"""The BASIC scripts of the settings: their keywords, their compiler, and the source that publishes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import cast

from bot.function_sources import WantedSource
from bot.keyword_modules import built_in_keyword_modules, own_keyword_modules
from config.basic import BasicSettings, BasicSource
from config.settings import Settings
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.form_parts import LiteralCheck
from function_calls.basic.forms import Forms, form_of
from function_calls.basic.functions import ARITIES
from function_calls.basic.keywords import Grants, keyword_declaration
from function_calls.binding import Services
from function_calls.profile import ChatProfile
from function_calls.script_library.kept_tools import LibraryTool
from function_calls.script_library.specs import LoadProgram
from function_calls.script_library.work_folder import WorkFolder
from function_calls.scripts.handler import ScriptHandler, script_seconds
from function_calls.scripts.heard import Heard, read
from function_calls.scripts.keyword_table import KeywordTable
from function_calls.scripts.line import Line
from function_calls.source import Changes
from function_calls.sources.basic_scripts import BasicScripts
from function_calls.spec import Handler
from services.basic_tools import BasicTools
from services.clock import Clock
from services.json_values import JsonValue
from services.redaction import Redactor
from services.times import Times

WORK = Path("work")
"""Below `home`: what was compiled, bot by bot."""


def scripts_of(settings: Settings, services: Services, changes: Changes) -> Sequence[WantedSource]:
    """The source of the settings' scripts; none where they name none. Raises DefinitionError for keywords that cannot
    be used."""
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
    return [WantedSource(source, made_of_scripts(settings))]


class ScriptRuns:
    """How the scripts of these settings are run."""

    def __init__(self, settings: Settings, table: KeywordTable, services: Services) -> None:
        self._settings = settings.basic
        self._parameters = {name: bot.parameters for name, bot in settings.bots.items()}
        self._table = table
        self._line = Line()
        self._clock = cast(Clock, services[Clock])
        self._chance = cast(Random, services[Random])
        self._times = cast(Times, services[Times])
        self.effect_of = table.effect_of
        self.touches_of = table.touches_of
        self.seconds_of = script_seconds

    def heard(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        """See `ReadsSaid`."""
        now = self._clock.now().astimezone(profile.timezone)
        return read(kind, Heard(text, (), now, self._times, profile.texts))

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        """See `Runs`."""
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
    """What the source of scripts is made of."""
    parameters = {name: bot.parameters for name, bot in settings.bots.items()}
    return settings.sources.basic, settings.sources.basic_keywords, settings.basic, parameters


def keyword_modules(settings: Settings) -> Sequence[ModuleType]:
    """Those of the program, and the operator's own. Raises DefinitionError."""
    return [*built_in_keyword_modules(), *own_keyword_modules(settings.sources.basic_keywords)]


def spellings_of(modules: Sequence[ModuleType]) -> Mapping[str, Mapping[str, LiteralCheck]]:
    """The forms of the keywords of these modules, as they are declared, each with the checks of what is written out in
    it: all that is needed to read a script."""
    return {
        form: declaration.checks
        for module in modules
        for function in vars(module).values()
        if (declaration := keyword_declaration(function)) is not None and function.__module__ == module.__name__
        for form in declaration.forms
    }


def compiler_of(settings: BasicSettings, spellings: Mapping[str, Mapping[str, LiteralCheck]]) -> BasicCompiler:
    """The compiler for scripts that may use these keywords. Raises BadForm."""
    forms = Forms(replace(form_of(one), checks=checks) for one, checks in spellings.items())
    return BasicCompiler(forms, ARITIES, settings.source_kilobytes * 1024, tuple(spellings))
