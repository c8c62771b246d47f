"""Files that lie beside scripts: `people.csv` in the folder of a script, or in the `.gbdata` folder of its bot, which
lies beside its `.gbdialog`."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from services.storage import StorageError
from services.visible_text import visible_line

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
