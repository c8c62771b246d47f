"""What is wrong or doubtful with BASIC scripts, without running any: behind `rollcall basic check` and `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.basic_scripts import compiler_of, keyword_modules, spellings_of
from bot.missing_files import missing_files
from bot.script_services import folder_beside
from config.basic import BasicSource
from config.diagnostics import Diagnostic, Diagnostics
from config.settings import Settings
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.definition_faults import fault
from function_calls.script_library.names import Names, Taker, taken_twice
from function_calls.script_library.places import ScriptPlace, bot_of, place_of, storage_of
from services.script_files import LocalScriptFiles
from services.storage import Storage, StorageError


@dataclass(slots=True)
class Checked:
    """What was found."""

    findings: list[Diagnostic]
    scripts: int = 0
    broken: int = 0
    """Those with errors."""


def check_scripts(settings: Settings, sources: Iterable[BasicSource]) -> Checked:
    """Every finding, file after file, of scripts that may use the keywords of these settings. Raises
    DefinitionError where those cannot be used."""
    compiler = compiler_of(settings.basic, spellings_of(keyword_modules(settings)))
    checking = _Checking(compiler, {name: tuple(bot.parameters) for name, bot in settings.bots.items()})
    for source in sources:
        checking.source(source)
    return checking.checked


def doubts_of(settings: Settings) -> list[Diagnostic]:
    """The warnings about the scripts of the settings; their errors are told where functions are. Raises
    DefinitionError."""
    if not settings.sources.basic:
        return []
    found = check_scripts(settings, settings.sources.basic).findings
    return [one for one in found if one.severity == "warning"]


class _Checking:
    """Checks one storage after another; names are unique across all of them."""

    def __init__(self, compiler: BasicCompiler, variables: Mapping[str, Collection[str]]) -> None:
        """`variables`: what scripts of each bot find set."""
        self._compiler = compiler
        self._variables = variables
        self._names = Names()
        self.checked = Checked([])

    def source(self, source: BasicSource) -> None:
        """Check what lies there."""
        storage = storage_of(source)
        try:
            listed = list(storage.list())
        except StorageError as error:
            self._tell([fault(str(source.path), str(error))])
            return
        places = [place for path in listed if (place := place_of(path, bot_of(source)))]
        if not places:
            text = (
                f"{source.path}: there are no scripts; they are <bot>.gbai/<bot>.gbdialog/*.bas, or *.bas right there"
            )
            self._tell([fault(str(source.path), text)])
        files = LocalScriptFiles([folder_beside(source)])
        for place in places:
            self._script(storage, place, Profile(source.profile), files)

    def _script(self, storage: Storage, place: ScriptPlace, profile: Profile, files: LocalScriptFiles) -> None:
        file = storage.place(place.path)
        self.checked.scripts += 1
        try:
            content = storage.read(place.path)
        except StorageError as error:
            self._tell([fault(file, str(error))])
            return
        result = self._compiler.compile_text(
            content,
            file,
            name=place.name,
            bot=place.bot,
            profile=profile,
            variables=self._variables.get(place.bot, ()),
        )
        found = list(result.diagnostics)
        for one in result.tools:
            key = (place.bot, one.definition.name)
            first = self._names.take(key, Taker(storage.place(""), place.path, file))
            if first is not None:
                found.append(taken_twice(key, first.file, file, one.definition.line))
        if result.tools:
            found += missing_files(content, file, place, files)
        self._tell(found)

    def _tell(self, found: Sequence[Diagnostic]) -> None:
        self.checked.findings += Diagnostics(found).in_order()
        self.checked.broken += any(one.severity == "error" for one in found)
