"""Shared by tests of the sandbox: a mark for tests that need bubblewrap, a Python that runs in the sandbox, and a way
to detect the end of a process."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.sandbox.processes import PATH, Command

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap", path=PATH) is None, reason="there is no bwrap here: install the package bubblewrap"
)
LIVING = """
import os, sys, time
def live():
    line = open("line", "w")
    line.write("alive")
    line.flush()
    time.sleep(1000)
"""
"""Start of a program that keeps the pipe open until it ends."""
_PYTHON = Path(sys.executable).resolve()
_SOON_SECONDS = 10


def python(
    code: str, *arguments: str, folder: Path | None = None, stdin: bytes = b"", readable: tuple[Path, ...] = ()
) -> Command:
    """A command that runs `code` with a Python that is readable in the sandbox."""
    argv = (str(_PYTHON), "-I", "-S", "-c", code, *arguments)
    return Command(argv, stdin=stdin, folder=folder, readable=(Path(sys.base_prefix), *readable))


class Line:
    """A pipe that a process keeps open while it is alive."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def is_taken(self) -> bool:
        """Whether a process opens it within ten seconds."""
        try:
            async with asyncio.timeout(_SOON_SECONDS):
                return await self._reader.readexactly(5) == b"alive"
        except TimeoutError:
            return False

    async def is_dead(self) -> bool:
        """Whether no process has it open within ten seconds."""
        try:
            async with asyncio.timeout(_SOON_SECONDS):
                await self._reader.read()
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def a_line(folder: Path) -> AsyncIterator[Line]:
    """A pipe for a process that works in `folder`."""
    os.mkfifo(folder / "line")
    reader = asyncio.StreamReader()
    descriptor = os.open(folder / "line", os.O_RDONLY | os.O_NONBLOCK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        yield Line(reader)
    finally:
        transport.close()
