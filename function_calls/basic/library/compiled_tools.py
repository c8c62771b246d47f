"""Compiled tools, their rows in the store, and the work folder for their files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import orjson

from config.diagnostics import Diagnostic, did_you_mean
from config.sections.basic import BasicSource
from function_calls.basic.codes import Code
from function_calls.basic.compiler import CompiledTool
from function_calls.basic.machine.program import Program
from function_calls.basic.tool_definition import ToolDefinition
from services.refs import JsonObject
from services.s3_storage import S3Storage
from services.scripts.basic_tools import StoredTool
from services.storage import LocalFile, LocalFolder, Storage

_ENDINGS = (".mcp.json", ".tool.json", ".program.json")


class WorkFolder:
    """Work folder `<root>/<bot>.gbai/<bot>.gbdialog/`. Files are replaced atomically."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, bot: str) -> Path:
        """The folder of `bot`, which may not exist yet."""
        return self._root / f"{bot}.gbai" / f"{bot}.gbdialog"

    def apply(self, changes: Iterable[FileChanges]) -> None:
        """Write and delete the files of changed scripts. Raises OSError."""
        for one in changes:
            folder = self.of(one.bot)
            gone = [f"{tool}{ending}" for tool in one.gone for ending in _ENDINGS]
            if one.content is None:
                gone.append(f"{one.script}.bas")
            else:
                self._put(folder / f"{one.script}.bas", one.content)
            for name in gone:
                (folder / name).unlink(missing_ok=True)
            for tool, program in one.tools:
                self.put_tool(one.bot, tool.definition, program)

    def put_tool(self, bot: str, definition: ToolDefinition, program: bytes) -> None:
        """Write the definitions and the program of a tool; `program` as returned by `packed`. Raises OSError."""
        contents = (_shown(definition.mcp()), _shown(definition.openai()), program)
        for ending, content in zip(_ENDINGS, contents, strict=True):
            self._put(self.of(bot) / f"{definition.name}{ending}", content)

    def program(self, bot: str, tool: str, checksum: str) -> Program | None:
        """Load the program of a tool; None if it is missing or has another checksum."""
        try:
            packed_program = (self.of(bot) / f"{tool}{_ENDINGS[-1]}").read_bytes()
        except OSError:
            return None
        if checksum_of(packed_program) != checksum:
            return None
        return Program.of_json(orjson.loads(packed_program))

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
    """Serialize a program for the work folder."""
    return orjson.dumps(program.to_json())


def checksum_of(packed_program: bytes) -> str:
    """SHA-256 of a serialized program, in hex."""
    return hashlib.sha256(packed_program).hexdigest()


def _shown(value: JsonObject) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


_OF_A_BOT, _DIALOG = ".gbai", ".gbdialog"
_PATTERNS = ("*.bas", "*.BAS", "*.Bas")
_FOLDERS = (f"*{_OF_A_BOT}", f"*{_DIALOG}")


class ScriptPlace(NamedTuple):
    """Location of a script."""

    path: str
    """Path in the storage."""
    bot: str
    name: str
    """File name without `.bas`."""

    @property
    def folder(self) -> str:
        """Folder in the storage with a trailing `/`; empty for the root."""
        head, slash, _ = self.path.rpartition("/")
        return head + slash


def place_of(path: str, bot: str) -> ScriptPlace | None:
    """Parse the path of a script: `<bot>.gbai/<any>.gbdialog/<name>.bas`, `<any>.gbdialog/<name>.bas`, or `<name>.bas`;
    the last two belong to `bot`. None for any other file."""
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
    """Storage of a configured path or bucket: a folder of bots, one bot or scripts, or a single script."""
    if source.s3 is not None:
        return S3Storage(source.s3)
    path = source.path or Path()
    if path.exists() and not path.is_dir():
        return LocalFile(path)
    folders = _FOLDERS[1:] if _is(path.name, _OF_A_BOT) else _FOLDERS
    return LocalFolder(path, _PATTERNS, is_deep=True, folders=folders)


def bot_of(source: BasicSource) -> str:
    """Bot of the scripts that are in no `.gbai` folder below the path: the bot of the folder that the path is or is in,
    otherwise the configured one."""
    path = Path(source.where).absolute()
    if _is(path.name, _OF_A_BOT):
        return _bot_of(path.name)
    if _is(path.name, _DIALOG) and _is(path.parent.name, _OF_A_BOT):
        return _bot_of(path.parent.name)
    return source.bot


def no_such_bot(bot: str, files: Sequence[str], bots: Iterable[str]) -> Diagnostic:
    """Warning about scripts of a bot that is not configured."""
    count = f"its {len(files)} scripts are" if len(files) > 1 else "its script is"
    hint = did_you_mean(bot, bots) or f"; there are: {', '.join(bots)}"
    message = f"the settings have no bot {bot!r}, so {count} not used: add it under `bots`, or rename the folder{hint}"
    return Diagnostic(files[0], 1, 1, Code.UNKNOWN_BOT.value, message, "warning")


def _is(name: str, ending: str) -> bool:
    return name.casefold().endswith(ending) and len(name) > len(ending)


def _bot_of(package: str) -> str:
    """Names of bots are in lower case."""
    return package[: -len(_OF_A_BOT)].casefold()


class InvalidRow(ValueError):
    """Raised for an invalid row; its script is compiled again."""


@dataclass(frozen=True, slots=True, eq=False)
class LibraryTool:
    """An active tool. Compared by identity: each compilation creates a new object."""

    definition: ToolDefinition
    place: ScriptPlace
    file: str
    """File name for messages."""
    content_hash: str
    """Hash of the compiler, profile, location and source."""
    digest: str
    """Digest of the program."""
    keywords: tuple[str, ...]
    """Host keywords that the program may use."""
    calls: tuple[str, ...]
    """Functions that the program calls by a literal name."""
    checksum: str
    """Checksum of the serialized program."""

    @property
    def key(self) -> tuple[str, str]:
        """Unique key: bot and name."""
        return self.place.bot, self.definition.name

    def facts(self) -> str:
        """Metadata of the program as stored in the database, in JSON: `digest`, `keywords`, `calls`, `checksum`."""
        return _text(
            {
                "digest": self.digest,
                "keywords": self.keywords,
                "calls": self.calls,
                "checksum": self.checksum,
            }
        )

    def described(self) -> str:
        """The definition as stored in the database, in JSON."""
        return _text(self.definition.to_json())


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes to the work folder for one script."""

    bot: str
    script: str
    """File name without `.bas`."""
    content: bytes | None
    """None deletes the script."""
    tools: tuple[tuple[LibraryTool, bytes], ...] = ()
    """Tools with their serialized programs."""
    gone: tuple[str, ...] = ()
    """Tools to delete."""


def tool_of(compiled: CompiledTool, place: ScriptPlace, file: str, content_hash: str, program: bytes) -> LibraryTool:
    """Create the tool of a compilation; `program` is the serialized program, whose checksum is stored with the tool."""
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


def tool_from_row(row: StoredTool, place: ScriptPlace) -> LibraryTool:
    """Restore a tool from its row, for the script at `place`. Raises InvalidRow if the stored data is not that of a
    tool."""
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
        raise InvalidRow(f"{row.bot}/{row.tool_name}: {error}") from None


def findings_text(findings: Iterable[Diagnostic]) -> str:
    """Serialize the diagnostics of one file."""
    return _text([[one.line, one.column, one.code, one.message, one.severity] for one in findings])


def findings_from_row(text: str, file: str) -> tuple[Diagnostic, ...]:
    """Parse the result of `findings_text`. Raises InvalidRow for other data."""
    try:
        return tuple(Diagnostic(file, *one) for one in orjson.loads(text))
    except (ValueError, TypeError) as error:
        raise InvalidRow(str(error)) from None


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
