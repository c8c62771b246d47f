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
    """Source of a decorated function; the decorator is on the fourth line."""
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return (
        f"{HEAD}@tool_function(description='Does {name}.'{given})\n"
        f"async def {name}(context: MessageContext) -> str:\n    return {says!r}\n"
    )


def write(folder: Path, name: str, text: str) -> Path:
    """Write the file `name` in `folder` with the dedented `text`."""
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
    reader = ModuleReader(services or {})
    return PythonFiles("mine", paths, reader, changes or Unwatched(), clock or VirtualClock())


async def given_by(*paths: Path, services: Mapping[type, object] | None = None) -> Snapshot:
    """Current snapshot of these paths."""
    return await published_by(files_at(*paths, services=services))


class Watched:
    """A running source and its snapshots."""

    def __init__(self) -> None:
        self.changes = ToldChanges()
        self.published: asyncio.Queue[Snapshot] = asyncio.Queue()

    async def next(self) -> Snapshot:
        """The next snapshot."""
        async with asyncio.timeout(20):
            return await self.published.get()

    async def change(self) -> Snapshot:
        """Notify the source of a change; returns the next snapshot."""
        self.changes.tell()
        return await self.next()

    async def change_to(self, expected: list[str]) -> Snapshot:
        """Notify the source of a change; returns the first snapshot whose problems have these places. A source that
        starts to watch another file reads it immediately, and may publish an intermediate state."""
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
    """Names of the functions."""
    return [spec.name for spec in snapshot.specs]


def places(snapshot: Snapshot) -> list[str]:
    """`file name:line` of each problem."""
    return [f"{Path(fault.file).name}:{fault.line}" for fault in snapshot.faults]


def waiting_for(pipe: Path) -> str:
    """Python code that waits until the pipe has been opened and closed."""
    return f"import pathlib\npathlib.Path({str(pipe)!r}).read_text()\n"


async def said_by(spec: FunctionSpec, **arguments: object) -> str:
    """Text of a run's result."""
    return (await Routing(spec).invoke(spec.name, raw=arguments)).reply


def modules_of(path: Path) -> list[str]:
    """Names in sys.modules that belong to a file or a folder."""
    return [name for name, one in sys.modules.items() if (getattr(one, "__file__", "") or "").startswith(str(path))]
