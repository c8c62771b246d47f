"""A compiled tool of the library, and the work folder in which it is stored."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from config.diagnostics import Diagnostic
from config.sections.basic import BasicSource
from config.wording import did_you_mean
from function_calls.basic.codes import Code
from function_calls.basic.compiler import CompiledTool
from function_calls.basic.machine.program import Program
from function_calls.basic.tool_definition import ToolDefinition
from services.refs import JsonObject
from services.scripts.basic_tools import KeptTool
from services.storage import LocalFile, LocalFolder, Storage

_ENDINGS = (".mcp.json", ".tool.json", ".program.json")


class WorkFolder:
    """`<root>/<bot>.gbai/<bot>.gbdialog/`. Each file is whole or not there, whenever the process ends."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, bot: str) -> Path:
        """The folder of `bot`; perhaps not there yet."""
        return self._root / f"{bot}.gbai" / f"{bot}.gbdialog"

    def put_script(self, bot: str, name: str, content: bytes) -> None:
        """The script as it was fetched. Raises OSError."""
        self._put(self.of(bot) / f"{name}.bas", content)

    def put_tool(self, bot: str, definition: ToolDefinition, program: bytes) -> None:
        """What a tool was compiled to; `program` as `packed` gives it. Raises OSError."""
        contents = (_shown(definition.mcp()), _shown(definition.openai()), program)
        for ending, content in zip(_ENDINGS, contents, strict=True):
            self._put(self.of(bot) / f"{definition.name}{ending}", content)

    def program(self, bot: str, tool: str, checksum: str) -> Program | None:
        """The program of a tool; None where it is not there, or is not the one with that checksum."""
        try:
            packed_program = (self.of(bot) / f"{tool}{_ENDINGS[-1]}").read_bytes()
        except OSError:
            return None
        if checksum_of(packed_program) != checksum:
            return None
        return Program.of_json(orjson.loads(packed_program))

    def drop(self, bot: str, scripts: Iterable[str], tools: Iterable[str]) -> None:
        """What there was of scripts and tools that are gone. Raises OSError."""
        folder = self.of(bot)
        names = [*(f"{one}.bas" for one in scripts), *(f"{one}{ending}" for one in tools for ending in _ENDINGS)]
        for name in names:
            (folder / name).unlink(missing_ok=True)

    def _put(self, file: Path, content: bytes) -> None:
        beside = file.with_name(f".{file.name}.new")
        try:
            written = beside.open("wb")
        except FileNotFoundError:
            file.parent.mkdir(parents=True, exist_ok=True)
            written = beside.open("wb")
        with written:
            written.write(content)
        os.replace(beside, file)


def packed(program: Program) -> bytes:
    """The program as it is kept."""
    return orjson.dumps(program.to_json())


def checksum_of(packed_program: bytes) -> str:
    """By which it is known again."""
    return hashlib.sha256(packed_program).hexdigest()


def _shown(value: JsonObject) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


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


class NotKept(ValueError):
    """A row that does not say what it should; what it stands for is compiled anew."""


@dataclass(frozen=True, slots=True, eq=False)
class LibraryTool:
    """One tool that serves. Compared by identity: when it is compiled anew it is another one."""

    definition: ToolDefinition
    place: ScriptPlace
    file: str
    """As a person is told of it."""
    content_hash: str
    """Of all that it was compiled from."""
    digest: str
    """Of its program."""
    keywords: tuple[str, ...]
    """What it may want of the world."""
    calls: tuple[str, ...]
    """The functions that it calls, where their names stand in the script."""
    checksum: str
    """Of its program as it is kept."""

    @property
    def key(self) -> tuple[str, str]:
        """Bot and name: nothing else that serves has these."""
        return self.place.bot, self.definition.name

    def facts(self) -> str:
        """What is known of the program, as it is kept."""
        return _text(
            {
                "digest": self.digest,
                "keywords": self.keywords,
                "calls": self.calls,
                "checksum": self.checksum,
            }
        )

    def described(self) -> str:
        """The definition, as it is kept."""
        return _text(self.definition.to_json())


def tool_of(compiled: CompiledTool, place: ScriptPlace, file: str, content_hash: str, program: bytes) -> LibraryTool:
    """What was compiled; `program` as it is kept."""
    return LibraryTool(
        definition=compiled.definition,
        place=place,
        file=file,
        content_hash=content_hash,
        digest=compiled.program.digest,
        keywords=compiled.program.keywords,
        calls=compiled.program.calls,
        checksum=checksum_of(program),
    )


def kept_tool(row: KeptTool, place: ScriptPlace) -> LibraryTool:
    """What the row stands for, at the place where its file is. Raises NotKept."""
    try:
        facts = orjson.loads(row.program)
        definition = ToolDefinition.of_json(orjson.loads(row.definition))
        return LibraryTool(
            definition=definition,
            place=place,
            file=definition.source_file,
            content_hash=row.content_hash,
            digest=facts["digest"],
            keywords=tuple(facts["keywords"]),
            calls=tuple(facts["calls"]),
            checksum=facts["checksum"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotKept(f"{row.bot}/{row.tool_name}: {error}") from None


def findings_text(findings: Iterable[Diagnostic]) -> str:
    """What was said of one file, as it is kept."""
    return _text([[one.line, one.column, one.code, one.message, one.severity] for one in findings])


def kept_findings(text: str, file: str) -> tuple[Diagnostic, ...]:
    """The same again. Raises NotKept."""
    try:
        return tuple(Diagnostic(file, *one) for one in orjson.loads(text))
    except (ValueError, TypeError) as error:
        raise NotKept(str(error)) from None


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
