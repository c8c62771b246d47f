"""Compiled scripts of one storage. Changed files are compiled in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import structlog

from config.diagnostics import Diagnostic
from function_calls.basic.codes import Code, Profile
from function_calls.basic.library.compiled_tools import (
    FileChanges,
    InvalidRow,
    LibraryTool,
    ScriptPlace,
    WorkFolder,
    findings_from_row,
    findings_text,
    no_such_bot,
    place_of,
    tool_from_row,
)
from function_calls.basic.library.compiling import Compiled, Compiling, Programs, text_of
from function_calls.basic.machine.program import Program
from function_calls.declaration import error_text
from function_calls.schema.definition import problem_at
from services.clock import Clock
from services.scripts.basic_tools import BasicTools, StoredTool
from services.storage import Storage, StorageError, plain_etag
from services.store.chats import basic_tools
from services.store.port import StoreError, Write
from services.threads import Threads

ToolKey = tuple[str, str]
"""Bot and tool name."""


class NameOwner(NamedTuple):
    """File that owns a tool name."""

    source: str
    path: str
    file: str
    """File name for messages."""


class Names:
    """Owners of tool names, across all libraries of a source."""

    def __init__(self) -> None:
        self._owners: dict[ToolKey, NameOwner] = {}

    def take(self, key: ToolKey, owner: NameOwner) -> NameOwner | None:
        """Claim a name. Returns the owner if it is another file, otherwise None."""
        first = self._owners.setdefault(key, owner)
        return None if first[:2] == owner[:2] else first

    def free(self, source: str, path: str, but: Collection[ToolKey] = ()) -> None:
        """Release the names of a file except those in `but`."""
        theirs = [key for key, owner in self._owners.items() if owner[:2] == (source, path)]
        for key in theirs:
            if key not in but:
                del self._owners[key]

    def is_free(self, key: ToolKey) -> bool:
        """Whether the name has no owner."""
        return key not in self._owners


def duplicate_tool(key: ToolKey, first: str, second: str, line: int) -> Diagnostic:
    """Diagnostic for a second file that defines an existing tool."""
    bot, name = key
    message = f"tool {name!r} of bot {bot!r} is defined in both {first} and {second}; rename one of them"
    return Diagnostic(second, line, 1, Code.DUPLICATE_TOOL.value, message)


_MOST_NAMED = 20
_log = structlog.get_logger("basic")

Change = Literal["added", "changed", "compiled_anew", "broken", "deleted"]


class ChangeLog:
    """Changes of one library since the last log entry."""

    def __init__(self, where: str) -> None:
        """`where` is the location of the scripts, for the log."""
        self._where = where
        self._paths: dict[Change, list[str]] = {}

    def note(self, happened: Change, path: str) -> None:
        """Record that the script at `path` changed."""
        self._paths.setdefault(happened, []).append(path)

    def log(self) -> None:
        """Log the recorded changes, if any, in one entry, and forget them."""
        if not self._paths:
            return
        message: dict[str, object] = {}
        for happened, paths in self._paths.items():
            more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
            message |= {happened: len(paths), f"{happened}_scripts": ", ".join(sorted(paths)[:_MOST_NAMED]) + more}
        self._paths = {}
        _log.info("scripts_changed", where=self._where, **message)


@dataclass(frozen=True, slots=True)
class LibraryServices:
    """Services shared by all libraries of a source. Belongs to one event loop."""

    listing: Threads
    compiling: Compiling
    programs: Programs
    work: WorkFolder
    tools: BasicTools
    names: Names
    clock: Clock


@dataclass(frozen=True, slots=True)
class KnownScript:
    """State of one file."""

    etag: str = ""
    content_hash: str = ""
    """Hash of the content that `tools` were compiled from; without tools, of the latest content."""
    tools: tuple[LibraryTool, ...] = ()
    """Active tools of the file."""
    findings: tuple[Diagnostic, ...] = ()
    """Diagnostics of the last compilation."""
    wanted: tuple[ToolKey, ...] = ()
    """Tool names that the file defines, but another file owns."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """New state of a file, with the files and rows to write."""

    script: KnownScript
    files: tuple[FileChanges, ...] = ()
    rows: tuple[Write, ...] = ()


_SERVES = "the scripts work, but must be compiled again at the next start"
_PATIENT_SECONDS = 5.0
"""Timeout for listing the storage, and for a batch of compilations until it is first exceeded."""
_LESS_PATIENT_SECONDS = 0.5
"""Timeout afterwards; compilations that make no progress within it continue in the background."""
_SECONDS_WITHOUT_A_WORD = 7.0
_AT_ONCE = 100
"""Batch size of compilation; results are written after each batch."""


class ScriptLibrary:
    """Scripts of one configured storage."""

    def __init__(
        self,
        key: str,
        where: str,
        bot: str,
        storage: Callable[[], Storage],
        profile: Profile,
        bots: Collection[str],
        services: LibraryServices,
        tell: Callable[[], None],
    ) -> None:
        """`key` identifies the library's rows; `where` is the storage's name in diagnostics. `bot` owns the scripts
        outside of bot folders; `bots` are the configured ones. `tell` is the callback for changes outside of an awaited
        refresh."""
        self.key = key
        self._where = where
        self._bot = bot
        self._storage = storage
        self._profile = profile
        self._bots = bots
        self._services = services
        self._tell = tell
        self._turn = asyncio.Lock()
        self._scripts: dict[str, KnownScript] = {}
        self._order: tuple[str, ...] = ()
        self._outdated: dict[str, list[StoredTool]] = {}
        """Rows by path that were written by another compiler version or must be compiled again."""
        self._running: dict[str, tuple[str, asyncio.Task[Compiled]]] = {}
        """Etag and task of compilations in progress, by path."""
        self._settling: set[asyncio.Task[None]] = set()
        self._problems: tuple[Diagnostic, ...] = ()
        """Problems of the storage and of writing."""
        self._strangers: tuple[Diagnostic, ...] = ()
        """Warnings about scripts of unknown bots."""
        self._has_looked = False
        self._changes = ChangeLog(where)

    # Current state

    @property
    def tools(self) -> Iterator[LibraryTool]:
        """Active tools in the order of their files."""
        for path in self._order:
            yield from self._scripts[path].tools if path in self._scripts else ()

    @property
    def faults(self) -> Iterator[Diagnostic]:
        """Diagnostics of everything that cannot be used: the storage, scripts of unknown bots, script errors, and
        scripts that are still being compiled."""
        yield from self._problems
        yield from self._strangers
        for path in self._order:
            script = self._scripts.get(path, KnownScript())
            serving = ", ".join(tool.definition.name for tool in script.tools)
            suffix = (
                f" (until it is fixed, the previous version stays active: {serving})"
                if serving and not script.wanted
                else ""
            )
            for one in script.findings:
                if one.severity == "error":
                    yield replace(one, message=one.message + suffix)
        for path in self._running:
            yield problem_at(
                self._storage().place(path), "still being compiled; its tools become available when this is done"
            )

    async def program(self, tool: LibraryTool) -> Program:
        """Load the program of one of `tools`. Raises ProgramLost."""
        storage = self._storage()
        return await self._services.programs.load(tool, self._profile, lambda: storage.read(tool.place.path))

    # Loading and refreshing

    def restore(self, rows: Iterable[StoredTool]) -> list[Write]:
        """Restore tools from the rows of `key`, without reading the storage. Returns the rows to write."""
        by_path: dict[str, list[StoredTool]] = {}
        writes: list[Write] = []
        for row in rows:
            place = place_of(row.path, self._bot)
            if place is not None and place.bot == row.bot and row.bot in self._bots:
                if row.is_active or not row.definition:
                    by_path.setdefault(row.path, []).append(row)
            elif row.is_active:
                writes.append(basic_tools.deactivate(row.bot, row.tool_name, self.key))
        prefix = self._services.compiling.prefix(self._profile)
        for path, rows_of_path in by_path.items():
            # Rows of errors are obsolete once the file has tools.
            kept = [row for row in rows_of_path if row.definition] or rows_of_path
            place = place_of(path, self._bot)
            if place is None or not all(row.content_hash.startswith(prefix) for row in kept):
                self._outdated[path] = kept
                continue
            try:
                self._scripts[path] = self._restored(place, kept)
            except InvalidRow as error:
                _log.info("tool_compiled_anew", because=str(error))
        return writes

    def _restored(self, place: ScriptPlace, rows: Sequence[StoredTool]) -> KnownScript:
        """Restore one file from its stored rows and claim its tool names. Raises InvalidRow if a row is invalid."""
        tools = tuple(tool_from_row(row, place) for row in rows if row.definition)
        file = tools[0].file if tools else self._storage().place(place.path)
        for tool in tools:
            self._services.names.take(tool.key, NameOwner(self.key, place.path, file))
        first = rows[0]
        return KnownScript(first.etag, first.content_hash, tools, findings_from_row(first.findings, file))

    async def refresh(self, again: Collection[str] = ()) -> None:
        """List the storage, and compile changed files and the files in `again`. Slow files continue in the background
        after some seconds; `tell` is called when they are done."""
        async with self._turn:
            storage = self._storage()
            listed = await self._listed(storage)
            if listed is None:
                return
            places = self._places(storage, listed)
            await self._drop(self._scripts.keys() - places.keys())
            self._order = tuple(places)
            changed = [(place, etag) for path, (place, etag) in places.items() if self._is_new(path, etag, again)]
            self._problems = () if changed else self._problems
            await self._compile(storage, changed)
            self._has_looked = True
            self._outdated = {}
            self._changes.log()

    async def refresh_names(self) -> None:
        """Compile the files again whose conflicting names have become available."""
        free = self._services.names.is_free
        again = [path for path, script in self._scripts.items() if any(map(free, script.wanted))]
        if again:
            await self.refresh(again)

    async def finish(self) -> None:
        """Wait for all background compilations."""
        while self._running or self._settling:
            await asyncio.wait([*(task for _, task in self._running.values()), *self._settling])
            await asyncio.sleep(0)

    def close(self) -> None:
        """Cancel all background compilations."""
        for task in (*(task for _, task in self._running.values()), *self._settling):
            task.cancel()
        self._running.clear()

    async def _listed(self, storage: Storage) -> Mapping[str, str] | None:
        """Etags by path. None if the storage fails or is slow; then no file counts as deleted."""
        task = asyncio.create_task(self._services.listing.run(storage.list))
        if not await self._is_done_soon([task], _PATIENT_SECONDS):
            task.cancel()
            self._problems = (problem_at(self._where, "listing the scripts timed out"),)
            return None
        try:
            listed = task.result()
        except StorageError as error:
            self._problems = (problem_at(self._where, str(error)),)
            return None
        self._problems = tuple(one for one in self._problems if one.file != self._where)
        return listed

    def _places(self, storage: Storage, listed: Mapping[str, str]) -> dict[str, tuple[ScriptPlace, str]]:
        """Place and etag of each script in `listed`, by path. Scripts of unknown bots are left out and recorded as
        warnings."""
        found: dict[str, tuple[ScriptPlace, str]] = {}
        strangers: dict[str, list[str]] = {}
        for path, etag in listed.items():
            place = place_of(path, self._bot)
            if place is None:
                continue
            if place.bot in self._bots:
                found[path] = (place, plain_etag(etag))
            else:
                strangers.setdefault(place.bot, []).append(path)
        self._strangers = tuple(
            no_such_bot(bot, [storage.place(path) for path in paths], self._bots) for bot, paths in strangers.items()
        )
        return found

    def _is_new(self, path: str, etag: str, again: Collection[str]) -> bool:
        if path in again:
            return True
        if path in self._running:
            return self._running[path][0] != etag
        return path not in self._scripts or self._scripts[path].etag != etag

    async def _drop(self, gone: Collection[str]) -> None:
        """Remove deleted files: frees their tool names, records the change, and deactivates their tools in the
        store."""
        files: list[FileChanges] = []
        rows: list[Write] = []
        for path in gone:
            script = self._scripts.pop(path)
            self._services.names.free(self.key, path)
            self._changes.note("deleted", path)
            place = place_of(path, self._bot)
            if place is None:
                continue
            names = tuple(tool.definition.name for tool in script.tools)
            rows += [basic_tools.deactivate(place.bot, name, self.key) for name in names]
            if names or not script.wanted:
                files.append(FileChanges(place.bot, place.name, None, gone=names))
        await self._write(files, rows)

    async def _compile(self, storage: Storage, changed: Sequence[tuple[ScriptPlace, str]]) -> None:
        """Compile these files in batches; each batch is written while the next one is compiled."""
        patience, told_at = _PATIENT_SECONDS, self._services.clock.monotonic()
        writing: asyncio.Task[None] | None = None
        try:
            for start in range(0, len(changed), _AT_ONCE):
                tasks = [self._begin(storage, place, etag) for place, etag in changed[start : start + _AT_ONCE]]
                patience = await self._wait([task for _, task in tasks], patience)
                files, rows = await self._taken(self._ended(tasks))
                writing = asyncio.create_task(self._write_behind(writing, files, rows))
                if self._services.clock.monotonic() - told_at > _SECONDS_WITHOUT_A_WORD:
                    self._tell()
                    told_at = self._services.clock.monotonic()
            if len(changed) > _AT_ONCE:
                # Publish before writing: thousands of files can take a disk longer than their compilation.
                self._tell()
            if writing is not None:
                await writing
        finally:
            if writing is not None:
                writing.cancel()

    def _ended(self, tasks: Sequence[tuple[str, asyncio.Task[Compiled]]]) -> list[Compiled]:
        """Results of completed tasks; the others are taken by a callback later."""
        done: list[Compiled] = []
        for path, task in tasks:
            if task.done():
                del self._running[path]
                done.append(task.result())
            else:
                task.add_done_callback(partial(self._is_over, path))
        return done

    async def _wait(self, tasks: Collection[asyncio.Task[Any]], patience: float) -> float:
        """Wait until all tasks are done, or none completes within `patience` seconds. Returns the patience left."""
        waiting = list(tasks)
        while not await self._is_done_soon(waiting, patience):
            patience = _LESS_PATIENT_SECONDS
            # Replace hanging threads, so that queued files can proceed.
            self._services.compiling.crew.relieve()
            left = [task for task in waiting if not task.done()]
            if len(left) == len(waiting):
                break
            waiting = left
        return patience

    def _begin(self, storage: Storage, place: ScriptPlace, etag: str) -> tuple[str, asyncio.Task[Compiled]]:
        path = place.path
        if path in self._running:
            self._running.pop(path)[1].cancel()
        known = self._scripts.get(path, KnownScript())
        # While the daemon runs, a new etag forces compilation even if the text is the same.
        content_hash = "" if self._has_looked else known.content_hash
        task = asyncio.create_task(self._read(storage, place, etag, content_hash), name=f"script {path}")
        self._running[path] = (etag, task)
        return path, task

    async def _read(self, storage: Storage, place: ScriptPlace, etag: str, known: str) -> Compiled:
        try:
            return await self._services.compiling.compiled(storage, place, etag, self._profile, known)
        except Exception as error:  # noqa: BLE001 - a bug of the compiler or of custom storage must not stop the others
            _log.error("script_not_compiled", path=place.path, exc_info=error)
            found = problem_at(place.path, f"internal error of the compiler, not of the script: {error_text(error)}")
            return Compiled(place, etag, place.path, findings=(found,), is_unread=True)

    async def _is_done_soon(self, tasks: Collection[asyncio.Task[Any]], seconds: float) -> bool:
        """Whether all tasks complete within `seconds`. Tasks are not cancelled on timeout."""
        if not tasks:
            return True
        whole = asyncio.create_task(asyncio.wait(tasks))
        timer = asyncio.create_task(self._services.clock.sleep(seconds))
        try:
            await asyncio.wait([whole, timer], return_when=asyncio.FIRST_COMPLETED)
            return whole.done()
        finally:
            whole.cancel()
            timer.cancel()

    def _is_over(self, path: str, task: asyncio.Task[Compiled]) -> None:
        """Callback of a background compilation: starts to process its result, unless it was cancelled or replaced."""
        if task.cancelled() or self._running.get(path, ("", None))[1] is not task:
            return
        settling = asyncio.create_task(self._settle(path, task))
        self._settling.add(settling)
        settling.add_done_callback(self._settling.discard)

    async def _settle(self, path: str, task: asyncio.Task[Compiled]) -> None:
        async with self._turn:
            if self._running.get(path, ("", None))[1] is not task:
                return
            del self._running[path]
            if path in self._order:
                await self._write(*await self._taken([task.result()]))
                self._changes.log()
        self._tell()

    async def _taken(self, compiled: Sequence[Compiled]) -> tuple[list[FileChanges], list[Write]]:
        """Activate compiled scripts and record the changes. Returns the files and rows to write."""
        files: list[FileChanges] = []
        rows: list[Write] = []
        for one in compiled:
            path = one.place.path
            known, outdated = self._scripts.get(path, KnownScript()), self._outdated.get(path, ())
            outcome = await self._outcome(one, known, outdated)
            if not one.is_known and not one.is_unread:
                self._changes.note(_happened(one, known, is_outdated=bool(outdated)), path)
            self._scripts[path] = outcome.script
            files += outcome.files
            rows += outcome.rows
        return files, rows

    async def _outcome(self, one: Compiled, known: KnownScript, outdated: Sequence[StoredTool]) -> Outcome:
        """Return the new state and the rows to write. An unread file is read again at the next refresh. `known` is the
        previous state; `outdated` are rows of another compiler version."""
        path = one.place.path
        if one.is_unread:
            # Without an etag the next refresh reads it again.
            return Outcome(replace(known, etag="", findings=one.findings))
        if one.is_known:
            rows = basic_tools.seen(self.key, path, one.etag, findings_text(known.findings))
            return Outcome(replace(known, etag=one.etag), rows=(rows,))
        if one.tools:
            return self._whole(one, known)
        return await self._broken(one, known, outdated)

    def _whole(self, one: Compiled, known: KnownScript) -> Outcome:
        """State of a script without errors: tools whose names are available become active."""
        place, owner = one.place, NameOwner(self.key, one.place.path, one.file)
        self._services.names.free(self.key, place.path, but=[tool.key for tool, _ in one.tools])
        mine: list[tuple[LibraryTool, bytes]] = []
        wanted: list[ToolKey] = []
        findings = list(one.findings)
        for tool, program in one.tools:
            first = self._services.names.take(tool.key, owner)
            if first is None:
                mine.append((tool, program))
            else:
                wanted.append(tool.key)
                findings.append(duplicate_tool(tool.key, first.file, one.file, tool.definition.line))
        tools = tuple(tool for tool, _ in mine)
        names = {tool.definition.name for tool in tools}
        gone = tuple(tool.definition.name for tool in known.tools if tool.definition.name not in names)
        said = findings_text(findings)
        rows = [basic_tools.deactivate(place.bot, name, self.key) for name in gone]
        # Without an etag a conflicting file is checked again at the next start.
        etag = "" if wanted else one.etag
        rows += [self._row(one, said, etag, tool) for tool in tools]
        files = (FileChanges(place.bot, place.name, one.content, tuple(mine), gone),) if mine or not wanted else ()
        script = KnownScript(one.etag, one.content_hash, tools, tuple(findings), tuple(wanted))
        return Outcome(script, files, tuple(rows))

    def _row(self, one: Compiled, said: str, etag: str, tool: LibraryTool | None = None) -> Write:
        """Write that stores `tool`, or the findings of a file that was never a valid tool."""
        stored = StoredTool(
            bot=one.place.bot,
            tool_name=tool.definition.name if tool else one.place.name,
            source=self.key,
            path=one.place.path,
            etag=etag,
            content_hash=one.content_hash,
            definition=tool.described() if tool else "",
            program=tool.facts() if tool else "",
            findings=said,
            is_active=int(tool is not None),
            compiled_ms=self._services.clock.now_ms(),
        )
        return basic_tools.keep(script=text_of(one.content), **asdict(stored))

    async def _broken(self, one: Compiled, known: KnownScript, outdated: Sequence[StoredTool]) -> Outcome:
        """State of a script with errors: its previous tools stay active, recompiled from the stored text if only
        `outdated` rows remain. The outcome's rows store the findings."""
        place, said = one.place, findings_text(one.findings)
        seen = basic_tools.seen(self.key, place.path, one.etag, said)
        files = (FileChanges(place.bot, place.name, one.content),)
        if not known.tools and outdated:
            earlier = await self._recovered(one, outdated)
            if earlier is not None:
                script = replace(earlier.script, etag=one.etag, findings=one.findings)
                return replace(earlier, script=script, files=(*earlier.files, *files), rows=(*earlier.rows, seen))
        if known.tools:
            script = KnownScript(one.etag, known.content_hash, known.tools, one.findings)
            return Outcome(script, files, (seen,))
        script = KnownScript(one.etag, one.content_hash, (), one.findings)
        return Outcome(script, files, (self._row(one, said, one.etag),))

    async def _recovered(self, one: Compiled, outdated: Sequence[StoredTool]) -> Outcome | None:
        """Compile the last valid version of the file from its stored source; None if there is none."""
        rows = [row for row in outdated if row.definition]
        try:
            texts = {await self._services.tools.script_of(row.bot, row.tool_name, row.content_hash) for row in rows}
        except StoreError:
            return None
        if len(texts) != 1 or None in texts:
            return None
        earlier = await self._services.compiling.from_text(one.place, one.file, self._profile, str(texts.pop()))
        return self._whole(earlier, KnownScript()) if earlier.tools else None

    async def _write_behind(
        self, before: asyncio.Task[None] | None, files: Sequence[FileChanges], rows: Sequence[Write]
    ) -> None:
        """Write after the task `before` has finished."""
        if before is not None:
            await before
        await self._write(files, rows)

    async def _write(self, files: Sequence[FileChanges], rows: Sequence[Write]) -> None:
        """Write the work folder and the store. Failures are recorded as problems."""
        problems: list[Diagnostic] = []
        work = self._services.work
        try:
            if files:
                await self._services.compiling.crew.run(work.apply, files)
        except OSError as error:
            folder = str(work.of(files[0].bot))
            problems.append(problem_at(folder, f"cannot be written: {error.strerror}; {_SERVES}"))
        try:
            await self._services.tools.commit(rows)
        except StoreError as error:
            _log.error("tools_not_stored", problem=str(error))
            problems.append(problem_at("basic_tools", f"cannot store the compiled tools; {_SERVES}"))
        self._problems = tuple(dict.fromkeys([*self._problems, *problems]))


def _happened(one: Compiled, known: KnownScript, *, is_outdated: bool) -> Change:
    """Change to log for a compiled file: `broken`, `compiled_anew`, `changed` or `added`; `known` is its previous
    state."""
    if not one.tools:
        return "broken"
    if is_outdated or known.content_hash == one.content_hash:
        return "compiled_anew"
    return "changed" if known.content_hash else "added"
