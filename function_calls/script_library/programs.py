"""Programs of tools, loaded when they are first called: a daemon with a thousand scripts runs few of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import structlog

from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.program import Program
from function_calls.script_library.kept_tools import LibraryTool
from function_calls.script_library.work_folder import WorkFolder, packed
from services.basic_tools import BasicTools
from services.storage import StorageError
from services.store.port import StoreError
from services.threads import Threads

_MOST_LOADED = 256
_log = structlog.get_logger("basic")
ReadScript = Callable[[], bytes]
"""Gives the file of a tool as it is now; raises StorageError."""


class ProgramLost(LookupError):
    """Neither the program nor the text that it was compiled from is there any more."""


class Programs:
    """The programs that were called last. Belongs to one event loop."""

    def __init__(self, work: WorkFolder, kept: BasicTools, compiler: BasicCompiler, threads: Threads) -> None:
        self._work = work
        self._kept = kept
        self._compiler = compiler
        self._threads = threads
        self._loaded: OrderedDict[tuple[str, str, str], Program] = OrderedDict()

    async def load(self, tool: LibraryTool, profile: Profile, read: ReadScript) -> Program:
        """The program of `tool`. Where the work folder does not have it, or has another in its place, it is compiled
        anew from the text that it came from. Raises ProgramLost."""
        key = (*tool.key, tool.checksum)
        known = self._loaded.get(key)
        if known is None:
            known = await self._threads.run(self._from_folder, tool) or await self._anew(tool, profile, read)
        self._loaded[key] = known
        self._loaded.move_to_end(key)
        if len(self._loaded) > _MOST_LOADED:
            self._loaded.popitem(last=False)
        return known

    def _from_folder(self, tool: LibraryTool) -> Program | None:
        return self._work.program(*tool.key, tool.checksum)

    async def _anew(self, tool: LibraryTool, profile: Profile, read: ReadScript) -> Program:
        bot, name = tool.key
        _log.info("program_compiled_anew", bot=bot, tool=name, because="the work folder does not have it")
        try:
            text: str | None = await self._kept.script_of(bot, name, tool.content_hash)
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
        """None where another program comes of it."""
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
