"""Browser and daemon process of the browser tests, with a time limit for slow machines."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.harness.forked_processes import forked_command

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0
CHROMIUM = shutil.which("chromium-headless-shell")
SERVED_NAME = "bot.example.org"
"""A name that the browser resolves to 127.0.0.1. Unlike 127.0.0.1, it is not a secure context over plain HTTP."""
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {SERVED_NAME} 127.0.0.1",
]


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    """Wait up to a minute for elements; the default of the library is five seconds."""
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    yield
    expect.set_options(timeout=None)


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def _chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="package")
async def browser(_chromium: Browser) -> AsyncIterator[Browser]:
    """Headless Chromium, started once. Its contexts, with separate cookies, storage and cache, are closed after the
    test."""
    yield _chromium
    for context in _chromium.contexts:
        await context.close()


@asynccontextmanager
async def a_running_daemon(home: Path, *options: str, **environment: str) -> AsyncIterator[dict[str, str]]:
    """`rollcall run` as a process, with these command-line options; yields its start output, by label."""
    process = await asyncio.create_subprocess_exec(
        *(*forked_command("bot"), "run", "--no-console", *(options or ("--port", "0"))),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "ROLLCALL_HOME": str(home), "ROLLCALL_LOGS": str(home / "logs"), **environment},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            printed = ""
            while "Model:" not in printed:
                line = await process.stdout.readline()
                assert line, printed
                printed += line.decode()
        yield dict(re.findall(r"^(.+?):\s+(\S+)", printed, re.MULTILINE))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() == 0
