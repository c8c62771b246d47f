"""Files next to scripts, and CSV rows in them."""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import structlog

from services.patterns import visible_line
from services.refs import JsonObject
from services.scripts.errors import DataError, DataProblem
from services.storage import StorageError

_MOST_MISSED = 1000
_LONGEST_SHOWN = 60
_log = structlog.get_logger("basic")
_OF_A_BOT, _DIALOG, _DATA = ".gbai", ".gbdialog", ".gbdata"


class NoSuchScriptFile(LookupError):
    """The file does not exist, or scripts may not read it."""


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """A folder of scripts named in the settings."""

    root: Path
    bot: str
    """Owner of the scripts that are not in a bot's folder."""


class LocalScriptFiles:
    """Files in the operator's script folders. Names have no path; symbolic links that lead out of a folder are treated
    as missing."""

    def __init__(self, folders: Sequence[ScriptFolder], most_bytes: int = 1_000_000) -> None:
        self._folders = tuple(folders)
        self._most_bytes = most_bytes
        self._missed: set[tuple[str, str, str]] = set()

    def use(self, folders: Sequence[ScriptFolder]) -> None:
        """Replace the folders, and log missing files again."""
        self._folders = tuple(folders)
        self._missed.clear()

    def missed(self, bot: str, folder: str, name: str) -> None:
        """Log a warning, once per file, that a script looked for rows in a missing file and found none elsewhere."""
        if len(self._missed) < _MOST_MISSED and (bot, folder, name) not in self._missed:
            self._missed.add((bot, folder, name))
            _log.warning("script_found_no_file", file=visible_line(name)[:_LONGEST_SHOWN], folder=folder, bot=bot)

    def read(self, bot: str, folder: str, name: str) -> bytes:
        """The content of the file `name` in the scripts' `folder` (ending with `/`), else in the bot's `.gbdata`.
        Blocks. Raises NoSuchScriptFile, DataError (FILE_TOO_LARGE) and StorageError."""
        if not _is_plain(name):
            raise NoSuchScriptFile(name)
        for place in self._folders:
            if not _belongs(folder, bot, place):
                continue
            for beside in (folder, _data_folder(folder)):
                content = self._content(place.root, beside, name)
                if content is not None:
                    return content
        raise NoSuchScriptFile(name)

    def _content(self, root: Path, folder: str, name: str) -> bytes | None:
        try:
            within = root.resolve()
            path = (within / folder / name).resolve()
            if not path.is_relative_to(within):
                return None
            state = path.stat()
            if not stat.S_ISREG(state.st_mode):
                return None
            if state.st_size > self._most_bytes:
                raise DataError(DataProblem.FILE_TOO_LARGE, most=self._most_bytes // 1000)
            with path.open("rb") as file:
                content = file.read(self._most_bytes + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"{name}: {error.strerror}") from None
        if len(content) > self._most_bytes:
            raise DataError(DataProblem.FILE_TOO_LARGE, most=self._most_bytes // 1000)
        return content


def _is_plain(name: str) -> bool:
    return bool(name) and name.isprintable() and not name.startswith((".", "_")) and not set(name) & set("/\\:")


def _belongs(folder: str, bot: str, place: ScriptFolder) -> bool:
    """Whether a script in `folder` of `place` can belong to this bot: by the name of its `.gbai` package, else by the
    owner of `place`."""
    package = folder.partition("/")[0]
    if any(part in ("", ".", "..") for part in folder.removesuffix("/").split("/")) and folder:
        return False
    if package.lower().endswith(_OF_A_BOT):
        return package[: -len(_OF_A_BOT)].casefold() == bot.casefold()
    return place.bot.casefold() == bot.casefold()


def _data_folder(folder: str) -> str:
    """The bot's data folder, which is next to its script folder, relative to the root."""
    *package, scripts = folder.removesuffix("/").split("/")
    for ending, name in ((_OF_A_BOT, package[0] if package else ""), (_DIALOG, scripts)):
        if name.lower().endswith(ending):
            return "/".join([*package, f"{name[: -len(ending)]}{_DATA}", ""])
    return _DATA + "/"


MOST_BYTES = 1_000_000
MOST_ROWS = 50_000
MOST_COLUMNS = 500
_SEPARATORS = ",;\t|"
_LOOKED_AT = 20


def csv_rows(content: bytes) -> list[JsonObject]:
    """The rows as dicts of texts, in order; missing cells are NULL. Separators are commas, semicolons, tabs or bars;
    the encoding is UTF-8 or UTF-16, else Windows-1252. Columns without a name are called `column3`, repeated names
    `name_2`. The first line has the names; blank lines are skipped. Raises DataError (NOT_CSV), also above 1 MB, 50,000
    rows or 500 columns (FILE_TOO_LARGE, FILE_ROWS, FILE_COLUMNS)."""
    if len(content) > MOST_BYTES:
        raise DataError(DataProblem.FILE_TOO_LARGE, most=MOST_BYTES // 1000)
    text = _decoded(content)
    if "\0" in text:
        raise DataError(DataProblem.NOT_CSV, line=0)
    first, _, rest = text.partition("\n")
    said = first.strip().lower()
    if said.startswith("sep=") and len(said) == len("sep=;"):  # written by spreadsheets
        return _rows(rest, said[-1])
    return _rows(text, _separator_of(text))


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _separator_of(text: str) -> str:
    """The separator with the most consistent number of columns in the first lines, then with the most columns."""

    def columns(separator: str) -> tuple[int, int]:
        try:
            lines = list(islice(csv.reader(io.StringIO(text), delimiter=separator), _LOOKED_AT))
        except csv.Error:
            return 0, 0
        counts = [len(line) for line in lines if line]
        if not counts or counts[0] == 1:
            return 0, 0
        return sum(count == counts[0] for count in counts), counts[0]

    return max(_SEPARATORS, key=columns)


def _rows(text: str, separator: str) -> list[JsonObject]:
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        head = next((line for line in reader if any(map(str.strip, line))), [])
        return _maps(_names(head), reader)
    except csv.Error:
        raise DataError(DataProblem.NOT_CSV, line=reader.line_num) from None


def _maps(names: list[str], lines: Iterable[Sequence[str]]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for line in lines:
        if not any(map(str.strip, line)):
            continue
        if len(rows) >= MOST_ROWS:
            raise DataError(DataProblem.FILE_ROWS, most=MOST_ROWS)
        if len(line) > len(names):
            names = _names([*names, *[""] * (len(line) - len(names))])
        rows.append({name: line[place].strip() if place < len(line) else None for place, name in enumerate(names)})
    return rows


def _names(head: Sequence[str]) -> list[str]:
    if len(head) > MOST_COLUMNS:
        raise DataError(DataProblem.FILE_COLUMNS)
    names: dict[str, None] = {}
    for place, cell in enumerate(head, 1):
        name = known = cell.strip() or f"column{place}"
        count = 1
        while name in names:
            count += 1
            name = f"{known}_{count}"
        names[name] = None
    return list(names)
