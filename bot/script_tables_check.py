"""Tables that scripts read from a file which is not there, and which no script of their bot fills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Code
from function_calls.basic.nodes import At
from function_calls.basic.table_checks import TablesNamed
from function_calls.script_library.places import ScriptPlace
from services.script_files import LocalScriptFiles, NoSuchScriptFile, ScriptFileTooLarge
from services.storage import StorageError

_FILES = (".csv", ".tsv")


@dataclass(slots=True)
class TablesSeen:
    """What the scripts of all bots say of tables."""

    _read: list[tuple[ScriptPlace, str, str, At]] = field(default_factory=list)
    """The script, its file as people are told of it, the table, and where it is named."""
    _filled: dict[str, set[str]] = field(default_factory=dict)
    """By bot."""
    _open: set[str] = field(default_factory=set)
    """Bots whose scripts fill tables of which the name is known only when they run."""

    def see(self, place: ScriptPlace, file: str, tables: TablesNamed) -> None:
        """Take in what one script says."""
        self._read += [(place, file, name, at) for name, at in tables.read if name.strip().lower().endswith(_FILES)]
        self._filled.setdefault(place.bot, set()).update(tables.filled)
        if tables.fills_any:
            self._open.add(place.bot)

    def without_a_file(self, files: LocalScriptFiles) -> Iterator[Diagnostic]:
        """A warning for each place that names such a table."""
        for place, file, name, at in self._read:
            is_filled = place.bot in self._open or name.strip().lower() in self._filled[place.bot]
            if not is_filled and not _is_there(files, place, name):
                told = (
                    f"there is no file {name} beside this script, and no script fills a table of that name, so this "
                    "finds nothing: put the file there, or look whether it is called otherwise"
                )
                yield Diagnostic(file, at.line, at.column, Code.NO_SUCH_FILE.value, told, "warning")


def _is_there(files: LocalScriptFiles, place: ScriptPlace, name: str) -> bool:
    try:
        files.read(place.bot, place.folder, name)
    except NoSuchScriptFile:
        return False
    except (ScriptFileTooLarge, StorageError):
        return True  # and what is wrong with it is told when it is read
    return True
