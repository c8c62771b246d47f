"""What sources publish, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from function_calls.source import FunctionSource, Snapshot


async def published_by(source: FunctionSource) -> Snapshot:
    """The last snapshot of a source that comes to its end because nothing is watched."""
    published: list[Snapshot] = []
    await source.run(published.append)
    return published[-1]


class ToldChanges:
    """Tells of changes when the test says so."""

    def __init__(self) -> None:
        self._told: list[asyncio.Queue[None]] = []

    async def of(self, *paths: Path) -> AsyncGenerator[None, None]:
        told: asyncio.Queue[None] = asyncio.Queue()
        self._told.append(told)
        yield
        while True:
            await told.get()
            yield

    def tell(self) -> None:
        """Something may have changed, everywhere."""
        for told in self._told:
            told.put_nowait(None)
