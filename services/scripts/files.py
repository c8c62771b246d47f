"""Files next to scripts, and CSV rows in them."""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

import structlog

from services.patterns import visible_line
from services.refs import JsonObject
from services.storage import StorageError

_MOST_MISSED = 1000
_LONGEST_SHOWN = 60
_log = structlog.get_logger("basic")
_OF_A_BOT, _DIALOG, _DATA = ".gbai", ".gbdialog", ".gbdata"


class NoSuchScriptFile(LookupError):
    """There is no file of that name there, or it is nothing that a script may read."""


class ScriptFileTooLarge(ValueError):
    """The file has more than so many bytes."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        self.most_bytes = most_bytes


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """A folder of scripts as an operator named it."""

    root: Path
    bot: str
    """Whose the scripts are that lie in no folder of a bot."""


class LocalScriptFiles:
    """Files of the folders that the operator named, and of nothing else: names are plain, and what a link leads out of
    the folder is not there."""

    def __init__(self, folders: Sequence[ScriptFolder], most_bytes: int = 1_000_000) -> None:
        self._folders = tuple(folders)
        self._most_bytes = most_bytes
        self._missed: set[tuple[str, str, str]] = set()

    def use(self, folders: Sequence[ScriptFolder]) -> None:
        """Read from these folders from now on."""
        self._folders = tuple(folders)
        self._missed.clear()

    def missed(self, bot: str, folder: str, name: str) -> None:
        """A script has looked for rows in a file that is not there, and there are none elsewhere: the log says so, once
        for each file."""
        if len(self._missed) < _MOST_MISSED and (bot, folder, name) not in self._missed:
            self._missed.add((bot, folder, name))
            _log.warning("script_found_no_file", file=visible_line(name)[:_LONGEST_SHOWN], folder=folder, bot=bot)

    def read(self, bot: str, folder: str, name: str) -> bytes:
        """The content of the file `name` beside the scripts in `folder` (with `/` at its end) of this bot, else in the
        bot's `.gbdata`. Blocks. Raises NoSuchScriptFile, ScriptFileTooLarge and StorageError."""
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
                raise ScriptFileTooLarge(self._most_bytes)
            with path.open("rb") as file:
                content = file.read(self._most_bytes + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"{name}: {error.strerror}") from None
        if len(content) > self._most_bytes:
            raise ScriptFileTooLarge(self._most_bytes)
        return content


def _is_plain(name: str) -> bool:
    return bool(name) and name.isprintable() and not name.startswith((".", "_")) and not set(name) & set("/\\:")


def _belongs(folder: str, bot: str, place: ScriptFolder) -> bool:
    """Whether a script in `folder` of `place` can be one of this bot's."""
    package = folder.partition("/")[0]
    if any(part in ("", ".", "..") for part in folder.removesuffix("/").split("/")) and folder:
        return False
    if package.lower().endswith(_OF_A_BOT):
        return package[: -len(_OF_A_BOT)].casefold() == bot.casefold()
    return place.bot.casefold() == bot.casefold()


def _data_folder(folder: str) -> str:
    """Where the bot's data lies, seen from where the script's folder is: beside the folder of its scripts."""
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


class CsvProblem(StrEnum):
    """Why a file cannot be read."""

    TOO_LARGE = "too_large"
    TOO_MANY_ROWS = "too_many_rows"
    TOO_MANY_COLUMNS = "too_many_columns"
    NOT_CSV = "not_csv"


class CsvError(ValueError):
    """A file that cannot be read as rows."""

    def __init__(self, problem: CsvProblem, line: int = 0) -> None:
        super().__init__(f"{problem} in line {line}")
        self.problem = problem
        self.line = line
        """From 1; 0 where it is about the whole file."""


def csv_rows(content: bytes) -> list[JsonObject]:
    """The rows as maps of texts, in their order; a cell that a row has not is NULL. Commas, semicolons, tabs and bars
    may separate; UTF-8 and UTF-16 are understood, else each byte is a western character. A column without a name is
    `column3`, one whose name comes again `name_2`. Raises CsvError."""
    if len(content) > MOST_BYTES:
        raise CsvError(CsvProblem.TOO_LARGE)
    text = _decoded(content)
    if "\0" in text:
        raise CsvError(CsvProblem.NOT_CSV)
    first, _, rest = text.partition("\n")
    said = first.strip().lower()
    if said.startswith("sep=") and len(said) == len("sep=;"):  # spreadsheets say so in the first line
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
    """The one that makes most columns, the same number in the most of the first lines."""

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
        raise CsvError(CsvProblem.NOT_CSV, reader.line_num) from None


def _maps(names: list[str], lines: Iterable[Sequence[str]]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for line in lines:
        if not any(map(str.strip, line)):
            continue
        if len(rows) >= MOST_ROWS:
            raise CsvError(CsvProblem.TOO_MANY_ROWS)
        if len(line) > len(names):
            names = _names([*names, *[""] * (len(line) - len(names))])
        rows.append({name: line[place].strip() if place < len(line) else None for place, name in enumerate(names)})
    return rows


def _names(head: Sequence[str]) -> list[str]:
    if len(head) > MOST_COLUMNS:
        raise CsvError(CsvProblem.TOO_MANY_COLUMNS)
    names: dict[str, None] = {}
    for place, cell in enumerate(head, 1):
        name = known = cell.strip() or f"column{place}"
        count = 1
        while name in names:
            count += 1
            name = f"{known}_{count}"
        names[name] = None
    return list(names)
