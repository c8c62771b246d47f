"""Files that lie beside scripts: `people.csv` in the folder of a script, or in the `.gbdata` folder of its bot, which
lies beside its `.gbdialog`."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.storage import StorageError

_OF_A_BOT, _DIALOG, _DATA = ".gbai", ".gbdialog", ".gbdata"
_TABLES = (".csv", ".tsv")
_MOST_SCRIPTS = 500
_WRITES = re.compile(rb"(?<!\w)(?:SAVE|INSERT|MERGE)(?!\w)", re.IGNORECASE)
_GIVEN_A_VALUE = rb"=\s*"


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

    def use(self, folders: Sequence[ScriptFolder]) -> None:
        """Read from these folders from now on."""
        self._folders = tuple(folders)

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

    def tables(self, bot: str, folder: str) -> list[str]:
        """The names of the CSV files that `read` would find there. Blocks."""
        names = {
            path.name
            for root, beside in self._places(bot, folder)
            for path in _entries(root, beside)
            if path.name.lower().endswith(_TABLES) and _is_plain(path.name)
        }
        return sorted(names)

    def is_written(self, bot: str, folder: str, name: str) -> bool:
        """Whether a script in that folder keeps rows under `name`, so that it may be a table of the chat that has none
        yet. Blocks."""
        quoted = rb"[\"']" + re.escape(name.encode()) + rb"[\"']"
        named = re.compile(quoted, re.IGNORECASE)
        in_variable = re.compile(_GIVEN_A_VALUE + quoted, re.IGNORECASE)
        scripts = (path for root, beside in self._places(bot, folder) for path in _entries(root, beside))
        found = [path for path in scripts if path.name.lower().endswith(".bas")]
        return any(_writes(path, named, in_variable, self._most_bytes) for path in found[:_MOST_SCRIPTS])

    def _places(self, bot: str, folder: str) -> list[tuple[Path, Path]]:
        """Where `read` looks: beside the scripts, and in the data of the bot; each with its root."""
        return [
            (place.root, place.root / beside)
            for place in self._folders
            if _belongs(folder, bot, place)
            for beside in (folder, _data_folder(folder))
        ]

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


def _entries(root: Path, folder: Path) -> Iterator[Path]:
    """The files there; none where they cannot be listed."""
    try:
        within = root.resolve()
        found = (path for path in sorted(folder.iterdir()) if path.resolve().is_relative_to(within))
        yield from (path for path in found if path.is_file())
    except OSError:
        return


def _writes(script: Path, named: re.Pattern[bytes], in_variable: re.Pattern[bytes], most_bytes: int) -> bool:
    """Whether a line of the script keeps rows under the name, or it keeps some and the name is in a variable."""
    try:
        with script.open("rb") as file:
            content = file.read(most_bytes)
    except OSError:
        return False
    if not named.search(content) or not _WRITES.search(content):
        return False
    if in_variable.search(content):
        return True
    return any(named.search(line) and _WRITES.search(line) for line in content.splitlines())


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
