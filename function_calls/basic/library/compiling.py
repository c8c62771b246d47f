"""Compilation of script files in a thread, and loading and storing of compiled programs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.library.compiled_tools import LibraryTool, ScriptPlace, WorkFolder, packed, tool_of
from function_calls.basic.machine.program import Program
from function_calls.schema.definition import problem_at
from services.scripts.basic_tools import BasicTools
from services.storage import Storage, StorageError
from services.store.port import StoreError
from services.threads import Threads

_AT_ONCE = 4
"""More threads would starve the event loop."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Result of reading and compiling a file."""

    place: ScriptPlace
    etag: str
    file: str
    """File name for messages."""
    content: bytes = b""
    content_hash: str = ""
    tools: tuple[tuple[LibraryTool, bytes], ...] = ()
    """Tools with their serialized programs; empty if there are errors."""
    findings: tuple[Diagnostic, ...] = ()
    is_known: bool = False
    """The content is unchanged since the last compilation, so it was not compiled."""
    is_unread: bool = False
    """The file could not be read; `findings` has the reason."""


class Compiling:
    """Reads and compiles files in threads. Belongs to one event loop."""

    def __init__(self, compiler: BasicCompiler, digest: str) -> None:
        """`digest` identifies the version of the compiler."""
        self.compiler = compiler
        self._digest = digest
        self.crew = Threads(_AT_ONCE)

    def prefix(self, profile: Profile) -> str:
        """Common prefix of the hashes of this compiler and profile."""
        return f"{self._digest}.{profile.value}."

    async def compiled(
        self, storage: Storage, place: ScriptPlace, etag: str, profile: Profile, known: str = ""
    ) -> Compiled:
        """Read and compile a file. It is not compiled if its hash equals `known`."""
        return await self.crew.run(self._compile, storage, place, etag, profile, known)

    async def from_text(self, place: ScriptPlace, file: str, profile: Profile, text: str) -> Compiled:
        """Compile a stored text in a thread. Errors of the script are in the result."""
        content_hash = self._hash(place, profile, text.encode())
        return await self.crew.run(self._result, place, "", file, profile, text.encode(), content_hash)

    def _compile(self, storage: Storage, place: ScriptPlace, etag: str, profile: Profile, known: str) -> Compiled:
        file = storage.place(place.path)
        try:
            content = storage.read(place.path)
        except StorageError as error:
            return Compiled(place, etag, file, findings=(problem_at(file, str(error)),), is_unread=True)
        content_hash = self._hash(place, profile, content)
        if content_hash == known:
            return Compiled(place, etag, file, content, content_hash, is_known=True)
        return self._result(place, etag, file, profile, content, content_hash)

    def _result(
        self, place: ScriptPlace, etag: str, file: str, profile: Profile, content: bytes, content_hash: str
    ) -> Compiled:
        result = self.compiler.compile_text(content, file, name=place.name, bot=place.bot, profile=profile)
        tools: list[tuple[LibraryTool, bytes]] = []
        for one in result.tools:
            program = packed(one.program)
            tools.append((tool_of(one, place, file, content_hash, program), program))
        return Compiled(place, etag, file, content, content_hash, tuple(tools), result.diagnostics)

    def _hash(self, place: ScriptPlace, profile: Profile, content: bytes) -> str:
        """Hash of everything that determines the result of a compilation."""
        summed = hashlib.sha256(f"{place.bot}\0{place.path}\0".encode("utf-8", "surrogatepass"))
        summed.update(content)
        return self.prefix(profile) + summed.hexdigest()


def text_of(content: bytes) -> str:
    """Decode a file to a text that the store accepts."""
    return content.decode("utf-8", "replace").replace("\0", "\ufffd")


_log = structlog.get_logger("basic")


_MOST_LOADED = 256
ReadScript = Callable[[], bytes]
"""Returns the current content of a tool's file. Raises StorageError."""


class ProgramLost(LookupError):
    """Raised if a program is lost and cannot be compiled again from its source."""


class Programs:
    """LRU cache of programs. Belongs to one event loop."""

    def __init__(self, work: WorkFolder, kept: BasicTools, compiler: BasicCompiler, threads: Threads) -> None:
        self._work = work
        self._stored_tools = kept
        self._compiler = compiler
        self._threads = threads
        self._loaded: OrderedDict[tuple[str, str, str], Program] = OrderedDict()

    async def load(self, tool: LibraryTool, profile: Profile, read: ReadScript) -> Program:
        """Load the program of `tool`. If the work folder lacks it or has another version, it is compiled again from the
        stored or current source. Raises ProgramLost."""
        key = (*tool.key, tool.checksum)
        known = self._loaded.get(key)
        if known is None:
            known = await self._threads.run(self._work.program, *tool.key, tool.checksum)
            known = known or await self._anew(tool, profile, read)
        self._loaded[key] = known
        self._loaded.move_to_end(key)
        if len(self._loaded) > _MOST_LOADED:
            self._loaded.popitem(last=False)
        return known

    async def _anew(self, tool: LibraryTool, profile: Profile, read: ReadScript) -> Program:
        bot, name = tool.key
        _log.info("program_compiled_anew", bot=bot, tool=name, because="it is missing from the work folder")
        try:
            text: str | None = await self._stored_tools.script_of(bot, name, tool.content_hash)
        except StoreError:
            text = None
        program = None if text is None else await self._threads.run(self._compiled, tool, profile, text.encode())
        if program is None:
            program = await self._threads.run(self._read_again, tool, profile, read)
        if program is None:
            raise ProgramLost(f"{bot}/{name}")
        return program

    def _read_again(self, tool: LibraryTool, profile: Profile, read: ReadScript) -> Program | None:
        try:
            return self._compiled(tool, profile, read())
        except StorageError:
            return None

    def _compiled(self, tool: LibraryTool, profile: Profile, content: bytes) -> Program | None:
        """Compile the tool again; None if the result is a different program."""
        place = tool.place
        result = self._compiler.compile_text(content, tool.file, name=place.name, bot=place.bot, profile=profile)
        for one in result.tools:
            if one.definition.name == tool.definition.name and one.program.digest == tool.digest:
                self._write(place.bot, tool, one.program)
                return one.program
        return None

    def _write(self, bot: str, tool: LibraryTool, program: Program) -> None:
        try:
            self._work.put_tool(bot, tool.definition, packed(program))
        except OSError as error:
            _log.warning("work_folder_unwritable", bot=bot, tool=tool.definition.name, problem=str(error))
