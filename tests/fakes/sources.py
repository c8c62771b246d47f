"""Function sources for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from config.diagnostics import Diagnostic
from function_calls.loading.source import FunctionSource, Publish, Snapshot
from function_calls.spec import FunctionSpec


async def published_by(source: FunctionSource) -> Snapshot:
    """The last snapshot of a source that ends because it watches nothing."""
    published: list[Snapshot] = []
    await source.run(published.append)
    return published[-1]


class ToldChanges:
    """A change notifier controlled by the test."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        """The paths of the last subscription."""
        self._told: list[asyncio.Queue[None]] = []
        self._asked = asyncio.Event()

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        told: asyncio.Queue[None] = asyncio.Queue()
        self._told.append(told)
        self.paths = list(paths)
        self._asked.set()
        told.put_nowait(None)
        try:
            while True:
                await told.get()
                try:
                    yield
                finally:
                    told.task_done()
        finally:
            self._told.remove(told)

    async def told_and_heard(self) -> None:
        """Notify all subscribers of a change; returns after all have processed it."""
        await self._asked.wait()
        self.tell()
        for told in list(self._told):
            await told.join()

    def tell(self) -> None:
        """Notify all subscribers of a change."""
        for told in self._told:
            told.put_nowait(None)


class Written:
    """A source that publishes the functions given by the test."""

    def __init__(self, name: str, *first: FunctionSpec, made_of: object = "settings") -> None:
        self.name = name
        self.made_of = made_of
        self.publish: Publish | None = None
        self.runs = 0
        self.is_over = False
        self._snapshots: asyncio.Queue[Snapshot | Exception] = asyncio.Queue()
        if first:
            self.write(*first)

    def write(self, *specs: FunctionSpec, faults: Sequence[Diagnostic] = ()) -> None:
        self._snapshots.put_nowait(Snapshot(specs, faults=tuple(faults)))

    def break_down(self) -> None:
        self._snapshots.put_nowait(RuntimeError("broken"))

    async def run(self, publish: Publish) -> None:
        self.publish = publish
        self.runs += 1
        try:
            while True:
                snapshot = await self._snapshots.get()
                self._snapshots.task_done()
                if isinstance(snapshot, Exception):
                    raise snapshot
                publish(snapshot)
        finally:
            self.is_over = True

    async def read(self) -> None:
        """Wait until everything written has been published."""
        await self._snapshots.join()
