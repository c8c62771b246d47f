"""Shutdown of a server process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from services.mcp.stdio import Program, program_streams

PATIENCE_SECONDS = 20.0
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True:
    time.sleep(60)
"""


async def test_whoever_is_cancelled_while_a_program_ends_leaves_nothing_of_it(tmp_path: Path) -> None:
    said: asyncio.Queue[bytes] = asyncio.Queue()
    leaving = asyncio.Event()

    async def talk() -> None:
        program = Program((sys.executable, "-I", "-c", STUBBORN), {}, tmp_path)
        async with program_streams(program, lambda _: None, said.put_nowait):
            await leaving.wait()

    async with asyncio.timeout(PATIENCE_SECONDS):
        talking = asyncio.create_task(talk())
        pid = int(await said.get())
        leaving.set()
        # It has been asked to end, and is waited for.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        talking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talking
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
