"""Reading and compiling one file, beside the event loop."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.definition_faults import fault
from function_calls.script_library.kept_tools import LibraryTool, tool_of
from function_calls.script_library.places import ScriptPlace
from function_calls.script_library.work_folder import packed
from services.storage import Storage, StorageError
from services.threads import Threads

_COMPILING_AT_ONCE = 4
"""More of them would only keep the event loop from its turn."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a file."""

    place: ScriptPlace
    etag: str
    file: str
    """As a person is told of it."""
    content: bytes = b""
    content_hash: str = ""
    tools: tuple[tuple[LibraryTool, bytes], ...] = ()
    """Each with its program as it is kept. Empty where there are errors."""
    findings: tuple[Diagnostic, ...] = ()
    is_known: bool = False
    """It has the content that it had when it was compiled, and was left alone."""
    is_unread: bool = False
    """Nothing is known but that it cannot be read, which `findings` says."""


class Compiling:
    """Reads and compiles files in threads. Belongs to one event loop."""

    def __init__(self, compiler: BasicCompiler, digest: str) -> None:
        """`digest`: of the compiler."""
        self.compiler = compiler
        self._digest = digest
        self.reading = Threads()
        self._threads = Threads(_COMPILING_AT_ONCE)

    def prefix(self, profile: Profile) -> str:
        """What the hashes begin with of all that is compiled now."""
        return f"{self._digest}.{profile.value}."

    async def compiled(
        self, storage: Storage, place: ScriptPlace, etag: str, profile: Profile, known: str = ""
    ) -> Compiled:
        """What the file is now. `known`: the hash with which it need not be compiled again."""
        try:
            content = await self.reading.run(storage.read, place.path)
        except StorageError as error:
            file = storage.place(place.path)
            return Compiled(place, etag, file, findings=(fault(file, str(error)),), is_unread=True)
        return await self._threads.run(self._compile, storage, place, etag, profile, content, known)

    async def from_text(self, place: ScriptPlace, file: str, profile: Profile, text: str) -> Compiled:
        """The same of a text that is kept."""
        content_hash = self._hash(place, profile, text.encode())
        return await self._threads.run(self._result, place, "", file, profile, text.encode(), content_hash)

    def _compile(
        self, storage: Storage, place: ScriptPlace, etag: str, profile: Profile, content: bytes, known: str
    ) -> Compiled:
        file, content_hash = storage.place(place.path), self._hash(place, profile, content)
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
        """Of all that decides what comes of the file."""
        summed = hashlib.sha256(f"{place.bot}\0{place.path}\0".encode("utf-8", "surrogatepass"))
        summed.update(content)
        return self.prefix(profile) + summed.hexdigest()


def text_of(content: bytes) -> str:
    """The text of a file, as the store can hold it."""
    return content.decode("utf-8", "replace").replace("\0", "\ufffd")
