"""BASIC scripts: each is a function, for as long as it lies in one of the folders that an operator named."""

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
from function_calls.basic.library.compiling import Compiling, Programs, Writing
from function_calls.basic.library.library import Names, ScriptLibrary, Workshop
from function_calls.basic.library.specs import Runs, spec_of
from function_calls.loading.source import Changes, Publish, Snapshot
from function_calls.schema.definition import DefinitionError, problems_of
from function_calls.spec import FunctionSpec
from services.clock import Clock
from services.scripts.basic_tools import BasicTools, KeptTool
from services.storage import Storage
from services.store.port import StoreError, Write
from services.threads import Threads

_log = structlog.get_logger("basic")


class BasicScripts:
    """The scripts of all entries of the settings."""

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
        """`bots`: those of the settings. `storage` says what an entry stands for."""
        self.name = name
        self._sources = tuple(dict.fromkeys(sources))
        self._compiler = compiler
        self._runs = runs
        self._kept = kept
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
        """Publish what can be compiled, and again when something has changed, or somebody wants it compiled anew."""
        await self._begin(publish)
        asked = asyncio.Event()
        try:
            with self._kept.watched(asked):
                async with asyncio.TaskGroup() as tasks:
                    hearing = tasks.create_task(self._hear(asked, publish), name=f"{self.name} asked")
                    await self._follow(publish)
                    hearing.cancel()
        finally:
            for _, library in self._libraries:
                library.close()

    async def _follow(self, publish: Publish) -> None:
        """Until nobody tells of changes any more, and what is being read then has been."""
        async with aclosing(self._changes.of(*(one.path for one in self._sources))) as told:
            async for _ in told:
                await self._look(publish)
        for _, library in self._libraries:
            await library.finish()

    async def _begin(self, publish: Publish) -> None:
        """Take up what was kept."""
        digest = await self._threads.run(self._compiler.digest)
        compiling = Compiling(self._compiler, digest)
        programs = Programs(self._work, self._kept, self._compiler, self._threads)
        writing = Writing(self._work, self._kept, compiling.crew)
        shop = Workshop(self._threads, compiling, programs, writing, self._kept, Names(), self._clock)
        self._libraries = tuple(
            (one, self._library(one, shop, lambda: self._publish(publish))) for one in self._sources
        )
        try:
            rows = await self._kept.everything()
            writes = await self._threads.run(self._restore, rows)
            await self._kept.commit(writes)
        except StoreError as error:
            # What is kept saves time, no more.
            _log.error("tools_not_known", problem=str(error))

    def _library(self, source: BasicSource, shop: Workshop, tell: Callable[[], None]) -> ScriptLibrary:
        return ScriptLibrary(
            key=key_of(source),
            where=str(source.path),
            bot=bot_of(source),
            storage=lambda: self._storage(source),
            profile=Profile(source.profile),
            bots=self._bots,
            shop=shop,
            tell=tell,
        )

    def _restore(self, rows: Sequence[KeptTool]) -> list[Write]:
        """Give each library what is its own; what is to be written of it. The tools of entries that are gone serve
        nobody any more."""
        by_key: dict[str, list[KeptTool]] = {}
        for row in rows:
            by_key.setdefault(row.source, []).append(row)
        writes = [write for _, library in self._libraries for write in library.restore(by_key.pop(library.key, ()))]
        others = [row for rows_of_one in by_key.values() for row in rows_of_one]
        return [*writes, *(self._kept.gone(row) for row in others if row.is_active)]

    async def _hear(self, asked: asyncio.Event, publish: Publish) -> None:
        """Compile anew what somebody wants to be, whenever there is word of it."""
        while True:
            await asked.wait()
            asked.clear()
            try:
                outdated = await self._kept.outdated()
            except StoreError as error:
                _log.error("tools_not_known", problem=str(error))
                continue
            if outdated:
                await self._look(publish, outdated)

    async def _look(self, publish: Publish, again: Collection[tuple[str, str]] = ()) -> None:
        """See what there is now, and publish it if it is other than before."""
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
        """Of the tools that have none yet; those that are gone take theirs along."""
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
    """Under which its tools are kept. A folder may be named twice, for two bots."""
    return f"{source.bot}:{source.path}"
