"""A source of Python files that a test changes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

from function_calls.loading.module_functions import ModuleReader
from function_calls.loading.source import Changes, Snapshot, Unwatched
from function_calls.sources.python_modules import PythonFiles
from function_calls.spec import FunctionSpec
from services.clock import VirtualClock
from tests.fakes.sources import ToldChanges, published_by
from tests.function_calls.routing import Routing

HEAD = """\
from pydantic import BaseModel
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
"""


def marked(name: str, says: str = "Hi", **options: str) -> str:
    """A marked function; its decorator stands three lines below the beginning."""
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return (
        f"{HEAD}@tool_function(description='Does {name}.'{given})\n"
        f"async def {name}(context: MessageContext) -> str:\n    return {says!r}\n"
    )


def write(folder: Path, name: str, text: str) -> Path:
    """The file `name` in `folder`, which holds `text` less its common indentation."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text), encoding="utf-8")
    return file


def files_at(
    *paths: Path,
    services: Mapping[type, object] | None = None,
    changes: Changes | None = None,
    clock: VirtualClock | None = None,
) -> PythonFiles:
    """The source of these paths."""
    read = ModuleReader(services or {}).modules
    return PythonFiles("mine", paths, read, changes or Unwatched(), clock or VirtualClock())


async def given_by(*paths: Path, services: Mapping[type, object] | None = None) -> Snapshot:
    """What is at these paths now."""
    return await published_by(files_at(*paths, services=services))


class Watched:
    """A source that runs, and what it has published."""

    def __init__(self) -> None:
        self.changes = ToldChanges()
        self.published: asyncio.Queue[Snapshot] = asyncio.Queue()

    async def next(self) -> Snapshot:
        """What it publishes next."""
        async with asyncio.timeout(20):
            return await self.published.get()

    async def change(self) -> Snapshot:
        """What it publishes when it is told of a change."""
        self.changes.tell()
        return await self.next()

    async def change_to(self, expected: list[str]) -> Snapshot:
        """The first snapshot after a change whose faults have these places. Where a source begins to watch another file
        it looks at once, and may publish what it sees in the middle of the change."""
        snapshot = await self.change()
        while places(snapshot) != expected:
            snapshot = await self.next()
        return snapshot


@asynccontextmanager
async def watched(*paths: Path, clock: VirtualClock | None = None) -> AsyncIterator[Watched]:
    """The source of these paths, running."""
    own = Watched()
    source = files_at(*paths, changes=own.changes, clock=clock)
    running = asyncio.create_task(source.run(own.published.put_nowait))
    try:
        yield own
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def names(snapshot: Snapshot) -> list[str]:
    """The names of the functions."""
    return [spec.name for spec in snapshot.specs]


def places(snapshot: Snapshot) -> list[str]:
    """`name of the file:line` of each fault."""
    return [f"{Path(fault.file).name}:{fault.line}" for fault in snapshot.faults]


def waiting_for(pipe: Path) -> str:
    """Python that waits until something has opened the pipe and closed it."""
    return f"import pathlib\npathlib.Path({str(pipe)!r}).read_text()\n"


async def said_by(spec: FunctionSpec, **arguments: object) -> str:
    """What a run says."""
    return (await Routing(spec).invoke(spec.name, raw=arguments)).reply


def modules_of(path: Path) -> list[str]:
    """The modules that Python holds of a file, or of all in a folder."""
    return [name for name, one in sys.modules.items() if (getattr(one, "__file__", "") or "").startswith(str(path))]
