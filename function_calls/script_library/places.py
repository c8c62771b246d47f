"""Where scripts lie: which files of a storage are scripts, whose they are, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from config.basic import BasicSource
from config.diagnostics import Diagnostic
from config.wording import did_you_mean
from function_calls.basic.codes import Code
from services.storage import LocalFile, LocalFolder, Storage

_OF_A_BOT, _DIALOG = ".gbai", ".gbdialog"
_PATTERNS = ("*.bas", "*.BAS", "*.Bas")
_FOLDERS = (f"*{_OF_A_BOT}", f"*{_DIALOG}")


class ScriptPlace(NamedTuple):
    """One script."""

    path: str
    """In its storage."""
    bot: str
    name: str
    """Of the file, without `.bas`."""

    @property
    def folder(self) -> str:
        """Where it lies in the storage, with `/` at the end; empty at the top."""
        head, slash, _ = self.path.rpartition("/")
        return head + slash


def place_of(path: str, bot: str) -> ScriptPlace | None:
    """The script at `path` of a storage: `<bot>.gbai/<any>.gbdialog/<name>.bas`, `<any>.gbdialog/<name>.bas`, or
    `<name>.bas`; the last two belong to `bot`. None for any other file."""
    *folders, file = path.split("/")
    name, dot, ending = file.rpartition(".")
    if not dot or ending.casefold() != "bas" or not name:
        return None
    match folders:
        case []:
            return ScriptPlace(path, bot, name)
        case [dialog] if _is(dialog, _DIALOG):
            return ScriptPlace(path, bot, name)
        case [package, dialog] if _is(package, _OF_A_BOT) and _is(dialog, _DIALOG):
            return ScriptPlace(path, _bot_of(package), name)
    return None


def storage_of(source: BasicSource) -> Storage:
    """What an operator named: a folder of bots, the folder of one bot, a folder of scripts, or one script."""
    path = source.path
    if path.exists() and not path.is_dir():
        return LocalFile(path)
    folders = _FOLDERS[1:] if _is(path.name, _OF_A_BOT) else _FOLDERS
    return LocalFolder(path, _PATTERNS, is_deep=True, folders=folders)


def bot_of(source: BasicSource) -> str:
    """Whose the scripts are that lie in no folder of a bot below the path: of the bot whose folder the path itself is
    or lies in, else of the one that the operator says."""
    path = Path(source.path).absolute()
    if _is(path.name, _OF_A_BOT):
        return _bot_of(path.name)
    if _is(path.name, _DIALOG) and _is(path.parent.name, _OF_A_BOT):
        return _bot_of(path.parent.name)
    return source.bot


def no_such_bot(bot: str, files: Sequence[str], bots: Iterable[str]) -> Diagnostic:
    """The warning about scripts of a bot that the settings do not have."""
    count = f"its {len(files)} scripts serve" if len(files) > 1 else "its script serves"
    hint = did_you_mean(bot, bots) or f"; there are: {', '.join(bots)}"
    message = f"the settings have no bot {bot!r}, so {count} nobody: name it under `bots`, or rename the folder{hint}"
    return Diagnostic(files[0], 1, 1, Code.UNKNOWN_BOT.value, message, "warning")


def _is(name: str, ending: str) -> bool:
    return name.casefold().endswith(ending) and len(name) > len(ending)


def _bot_of(package: str) -> str:
    """Bots are called in small letters."""
    return package[: -len(_OF_A_BOT)].casefold()
