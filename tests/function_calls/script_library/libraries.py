"""A source of scripts that a test changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

from sqlalchemy import select

from config.sections.basic import BasicSource
from function_calls.basic.compiler import BasicCompiler, CompilationResult
from function_calls.basic.functions import ARITIES
from function_calls.basic.keywords import ScriptRun, Value, basic_keyword
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.library.compiled_tools import LibraryTool, WorkFolder
from function_calls.basic.library.specs import LoadProgram
from function_calls.basic.run.handler import script_seconds
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.basic.source import BasicScripts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.loading.source import Changes, Snapshot, Unwatched
from function_calls.profile import ChatProfile
from function_calls.spec import FunctionResult, FunctionSpec, Handler
from services.clock import VirtualClock
from services.refs import JsonValue
from services.scripts.basic_tools import BasicTools
from services.storage import Storage
from services.store.chats.basic_tools import BASIC_TOOLS
from services.store.port import Statement, Store
from tests.fakes.memory_storage import MemoryStorage
from tests.fakes.sources import ToldChanges, published_by
from tests.fakes.sqlite_store import a_store

ALL_ROWS = Statement("all basic tools", select(BASIC_TOOLS).order_by(BASIC_TOOLS.c.bot, BASIC_TOOLS.c.tool_name))
SPELLINGS = ("TALK {text}", "SEND MAIL {to}, {subject}, {body}", "GET {url}")
REGISTRATION = """\
PARAM name AS string LIKE "John Smith" DESCRIPTION "User's full name"
PARAM age AS number LIKE 25 DESCRIPTION "User's age"
DESCRIPTION "Processes user registration"
TALK "Welcome, " + name
"""
ORDER = """\
PARAM customer_name AS string LIKE "John Doe" DESCRIPTION "Customer's full name"
PARAM order_amount AS number LIKE 99.99 DESCRIPTION "Total order amount"
PARAM shipping_address AS string LIKE "123 Main St" DESCRIPTION "Delivery address"

DESCRIPTION "Process a new customer order"

# Script logic here
TALK "Processing order for " + customer_name
"""
BROKEN = 'DESCRIPTION "Never closed"\nTALK "Hello\nIF 1 = 1 THEN\n'


@basic_keyword("TALK {text}")
async def talk(run: ScriptRun, text: Value) -> Value:
    """Say it."""
    return None


@basic_keyword("SEND MAIL {to}, {subject}, {body}", effect="once", touches=("reaches_out", "sends_out"))
async def send_mail(run: ScriptRun, to: Value, subject: Value, body: Value) -> Value:
    """Send it."""
    return None


@basic_keyword("GET {url}", touches=("reads_outside",))
async def get(run: ScriptRun, url: Value) -> Value:
    """Fetch it."""
    return None


def keywords() -> KeywordTable:
    """A table of three keywords."""
    module = ModuleType(__name__)
    for one in (talk, send_mail, get):
        setattr(module, one.__name__, one)
    return KeywordTable([module], {})


def says(text: str, description: str = "Says something nice") -> str:
    """A script that sends `text`."""
    return f'DESCRIPTION "{description}"\nTALK "{text}"\n'


class Telling:
    """Runs that record the program instead of running it."""

    def __init__(self) -> None:
        table = keywords()
        self.effect_of = table.effect_of
        self.touches_of = table.touches_of
        self.seconds_of = script_seconds

    def parse(self, kind: str, text: str, profile: ChatProfile) -> JsonValue:
        raise ValueError(text)

    def handler(self, tool: LibraryTool, load: LoadProgram, source: BasicSource) -> Handler:
        async def handle(context: MessageContext, arguments: Any, call: Call) -> FunctionResult:
            program = await load()
            return FunctionResult(data={"digest": program.digest, "keywords": list(program.keywords)})

        return handle


class CountingCompiler(BasicCompiler):
    """A compiler that counts its compilations."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.compilations = 0
        self._counting = Lock()

    def compile_text(self, *given: Any, **named: Any) -> CompilationResult:
        with self._counting:
            self.compilations += 1
        return super().compile_text(*given, **named)


def a_compiler(**more: Any) -> CountingCompiler:
    return CountingCompiler(Forms(form_of(one) for one in SPELLINGS), ARITIES, spellings=SPELLINGS, **more)


@dataclass(slots=True)
class Scripts:
    """The source's dependencies and its published snapshots."""

    store: Store
    home: Path
    storage: Storage = field(default_factory=MemoryStorage)
    compiler: CountingCompiler = field(default_factory=a_compiler)
    clock: VirtualClock = field(default_factory=VirtualClock)
    changes: ToldChanges = field(default_factory=ToldChanges)
    snapshots: list[Snapshot] = field(default_factory=list)
    _published: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def kept(self) -> BasicTools:
        return BasicTools(self.store)

    @property
    def work(self) -> Path:
        return self.home / "work"

    def folder(self, bot: str = "default") -> Path:
        """Folder of the bot in the work folder."""
        return self.work / f"{bot}.gbai" / f"{bot}.gbdialog"

    def source(
        self,
        *sources: BasicSource,
        changes: Changes | None = None,
        kept: BasicTools | None = None,
        bots: Collection[str] = ("default", "crm"),
        storages: Mapping[BasicSource, Storage] | None = None,
    ) -> BasicScripts:
        """A source of the storage, or of these folders."""
        given = sources or (BasicSource(path=Path("drive")),)
        more: dict[str, Any] = {}
        if not sources:
            more["storage"] = lambda source: self.storage
        if storages is not None:
            more["storage"] = lambda source: storages[source]
        return BasicScripts(
            "sources.basic",
            given,
            compiler=self.compiler,
            runs=Telling(),
            kept=kept or self.kept,
            work=WorkFolder(self.work),
            bots=bots,
            changes=changes or Unwatched(),
            clock=self.clock,
            **more,
        )

    async def once(self, *sources: BasicSource, **more: Any) -> Snapshot:
        """The current snapshot; the source ends afterwards."""
        return await published_by(self.source(*sources, **more))

    @asynccontextmanager
    async def running(self, *sources: BasicSource, **more: Any) -> AsyncIterator[Scripts]:
        """Start the source, and wait for its first pass."""
        running = self.source(*sources, changes=self.changes, **more)
        task = asyncio.create_task(running.run(self.publish))
        try:
            await self.look()
            yield self
        finally:
            task.cancel()
            await asyncio.wait([task])

    def publish(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self._published.set()

    async def until(self, *wanted: str) -> Snapshot:
        """The snapshot that has exactly these functions."""
        async with asyncio.timeout(10):
            while not self.snapshots or names(self.snapshots[-1]) != list(wanted):
                self._published.clear()
                await self._published.wait()
        return self.snapshots[-1]

    async def published(self, count: int) -> Snapshot:
        """The last snapshot, after at least `count` were published."""
        async with asyncio.timeout(10):
            while len(self.snapshots) < count:
                self._published.clear()
                await self._published.wait()
        return self.snapshots[-1]

    async def look(self) -> Snapshot:
        """Notify the source of a change; returns the last snapshot after it has been processed."""
        async with asyncio.timeout(20):
            await self.changes.told_and_heard()
        return self.snapshots[-1]

    async def rows(self) -> list[dict[str, Any]]:
        """All stored rows."""
        return [dict(row) for row in await self.store.read(ALL_ROWS.query())]


@asynccontextmanager
async def scripts(home: Path, **more: Any) -> AsyncIterator[Scripts]:
    """An in-memory storage, and a store and a work folder below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    async with a_store(home, clock := VirtualClock()) as store:
        yield Scripts(store, home, clock=clock, **more)


def names(snapshot: Snapshot) -> list[str]:
    """Names of its functions."""
    return [spec.name for spec in snapshot.specs]


def spec(snapshot: Snapshot, name: str) -> FunctionSpec:
    return next(one for one in snapshot.specs if one.name == name)


def faults(snapshot: Snapshot) -> list[str]:
    """Formatted problems, as operators see them."""
    return [str(one) for one in snapshot.faults]
