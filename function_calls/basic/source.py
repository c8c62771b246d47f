"""Function source of BASIC scripts: every script in the configured folders is a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing

import structlog

from config.diagnostics import Diagnostic
from config.sections.basic import BasicSource
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.library.compiled_tools import LibraryTool, WorkFolder, bot_of, storage_of
from function_calls.basic.library.compiling import Compiling, Programs
from function_calls.basic.library.library import LibraryServices, Names, ScriptLibrary
from function_calls.basic.library.specs import Runs, spec_of
from function_calls.loading.source import Changes, Publish, Snapshot
from function_calls.schema.definition import DefinitionError, problems_of
from function_calls.spec import FunctionSpec
from services.clock import Clock
from services.scripts.basic_tools import BasicTools, StoredTool
from services.storage import Storage
from services.store.chats import basic_tools
from services.store.port import StoreError, Write
from services.threads import Threads

_log = structlog.get_logger("basic")


class BasicScripts:
    """Scripts of all configured entries."""

    def __init__(
        self,
        name: str,
        sources: Sequence[BasicSource],
        *,
        compiler: BasicCompiler,
        runs: Runs,
        kept: BasicTools,
        work: WorkFolder,
        bots: Collection[str],
        changes: Changes,
        clock: Clock,
        storage: Callable[[BasicSource], Storage] = storage_of,
    ) -> None:
        """`bots`: ids of the configured bots. `storage` returns the storage of an entry."""
        self.name = name
        self._sources = tuple(dict.fromkeys(sources))
        self._compiler = compiler
        self._runs = runs
        self._stored_tools = kept
        self._work = work
        self._bots = bots
        self._changes = changes
        self._clock = clock
        self._storage = storage
        self._threads = Threads()
        self._looking = asyncio.Lock()
        self._libraries: tuple[tuple[BasicSource, ScriptLibrary], ...] = ()
        self._specs: dict[LibraryTool, FunctionSpec | DefinitionError] = {}
        self._published: Snapshot | None = None

    async def run(self, publish: Publish) -> None:
        """Publish the tools that compile, and again after changes of files and requests to recompile."""
        await self._begin(publish)
        asked = asyncio.Event()
        try:
            with self._stored_tools.watched(asked):
                async with asyncio.TaskGroup() as tasks:
                    hearing = tasks.create_task(self._hear(asked, publish), name=f"{self.name} asked")
                    polling = tasks.create_task(self._poll(publish), name=f"{self.name} polled")
                    await self._follow(publish)
                    hearing.cancel()
                    polling.cancel()
        finally:
            for _, library in self._libraries:
                library.close()

    async def _follow(self, publish: Publish) -> None:
        """Refresh after every change until no more are watched, then wait for running compilations."""
        async with aclosing(self._changes.of(*(one.path for one in self._sources if one.path))) as message:
            async for _ in message:
                await self._look(publish)
        for _, library in self._libraries:
            await library.finish()

    async def _poll(self, publish: Publish) -> None:
        """Refresh at intervals if there are buckets, whose changes are not watched."""
        seconds = [one.s3.poll_seconds for one in self._sources if one.s3]
        while seconds:
            await self._clock.sleep(min(seconds))
            await self._look(publish)

    async def _begin(self, publish: Publish) -> None:
        """Create the libraries and restore their stored tools. If the store fails, the error is logged and the scripts
        are compiled again."""
        digest = await self._threads.run(self._compiler.digest)
        compiling = Compiling(self._compiler, digest)
        programs = Programs(self._work, self._stored_tools, self._compiler, self._threads)
        services = LibraryServices(
            self._threads, compiling, programs, self._work, self._stored_tools, Names(), self._clock
        )
        self._libraries = tuple(
            (one, self._library(one, services, lambda: self._publish(publish))) for one in self._sources
        )
        try:
            rows = await self._stored_tools.everything()
            writes = await self._threads.run(self._restore, rows)
            await self._stored_tools.commit(writes)
        except StoreError as error:
            # Stored tools only save time.
            _log.error("tools_not_known", problem=str(error))

    def _library(self, source: BasicSource, services: LibraryServices, tell: Callable[[], None]) -> ScriptLibrary:
        return ScriptLibrary(
            key=key_of(source),
            where=source.where,
            bot=bot_of(source),
            storage=lambda: self._storage(source),
            profile=Profile(source.profile),
            bots=self._bots,
            services=services,
            tell=tell,
        )

    def _restore(self, rows: Sequence[StoredTool]) -> list[Write]:
        """Restore each library from its rows; returns the writes. Tools of removed entries are deactivated."""
        by_key: dict[str, list[StoredTool]] = {}
        for row in rows:
            by_key.setdefault(row.source, []).append(row)
        writes = [write for _, library in self._libraries for write in library.restore(by_key.pop(library.key, ()))]
        others = [row for rows_of_one in by_key.values() for row in rows_of_one]
        gone = [basic_tools.deactivate(row.bot, row.tool_name, row.source) for row in others if row.is_active]
        return [*writes, *gone]

    async def _hear(self, asked: asyncio.Event, publish: Publish) -> None:
        """Recompile outdated files whenever `asked` is set, until cancelled. Errors of the store are logged."""
        while True:
            await asked.wait()
            asked.clear()
            try:
                outdated = await self._stored_tools.outdated()
            except StoreError as error:
                _log.error("tools_not_known", problem=str(error))
                continue
            if outdated:
                await self._look(publish, outdated)

    async def _look(self, publish: Publish, again: Collection[tuple[str, str]] = ()) -> None:
        """Refresh the libraries, recompiling the files in `again`, and publish if something changed. Only one refresh
        runs at a time."""
        async with self._looking:
            await asyncio.gather(
                *(
                    library.refresh([path for key, path in again if key == library.key])
                    for _, library in self._libraries
                )
            )
            for _, library in self._libraries:
                await library.refresh_names()
            await self._threads.run(self._make_specs)
            self._publish(publish)

    def _publish(self, publish: Publish) -> None:
        self._make_specs()
        snapshot = self._snapshot()
        if snapshot != self._published:
            self._published = snapshot
            publish(snapshot)

    def _make_specs(self) -> None:
        """Create the specs of new tools and drop those of removed tools."""
        tools = [(source, library, tool) for source, library in self._libraries for tool in library.tools]
        known = self._specs
        self._specs = {
            tool: known[tool] if tool in known else self._spec(source, library, tool) for source, library, tool in tools
        }

    def _spec(self, source: BasicSource, library: ScriptLibrary, tool: LibraryTool) -> FunctionSpec | DefinitionError:
        try:
            return spec_of(tool, lambda: library.program(tool), source, self._runs)
        except DefinitionError as error:
            return error

    def _snapshot(self) -> Snapshot:
        faults: list[Diagnostic] = [one for _, library in self._libraries for one in library.faults]
        specs: list[FunctionSpec] = []
        for tool, made in self._specs.items():
            if isinstance(made, FunctionSpec):
                specs.append(made)
            else:
                faults += problems_of(made, tool.file)
        return Snapshot(tuple(specs), faults=tuple(dict.fromkeys(faults)))


def key_of(source: BasicSource) -> str:
    """Key of the source's stored tools. A folder may be configured twice, for two bots."""
    return f"{source.bot}:{source.where}"
