"""MCP programs of others, run by their own Node, as `tests/node` pins them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.web.app import WebServer
from tests.harness.mcp_programs import TOKEN, Programs

INSTALLED = Path(__file__).resolve().parents[1] / "node" / "node_modules"
_NODE = INSTALLED / ".bin" / "node"
_SECONDS = 60.0


class Ended(NamedTuple):
    """How a program ended."""

    status: int
    out: str
    err: str


def installed(name: str) -> Path:
    """The script of the program `name`. The test is skipped where it is not installed."""
    script = INSTALLED / ".bin" / name
    if not script.exists() or not _NODE.exists():
        pytest.skip(f"there is no {name}: `npm ci --ignore-scripts` in tests/node installs it")
    return script.resolve()


async def run(name: str, *arguments: str, folder: Path) -> Ended:
    """Run it in `folder` to its end."""
    script = installed(name)
    process = await asyncio.create_subprocess_exec(
        *(str(_NODE), str(script), *arguments),
        cwd=folder,
        env={"PATH": str(_NODE.parent), "HOME": str(folder), "NO_COLOR": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class _WithToken:
    """The app, for a program that cannot be given a token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": list(scope["headers"])}
            MutableHeaders(scope=scope)["authorization"] = f"Bearer {TOKEN}"
        await self._app(scope, receive, send)


@asynccontextmanager
async def known(served: Programs) -> AsyncIterator[str]:
    """A second address of the same functions, at which everybody is the program with TOKEN."""
    assert served.web._server is not None
    server = WebServer(_WithToken(served.web._server._server.config.app), port=0)
    address = await server.start()
    try:
        yield f"{address.url}/mcp"
    finally:
        await server.stop()
