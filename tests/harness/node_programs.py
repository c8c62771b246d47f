"""External MCP programs for Node, with the versions pinned in `tests/node`."""

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


class Ended(NamedTuple):
    """Exit status and output of a program."""

    status: int
    out: str
    err: str


def installed(name: str) -> Path:
    """Script of the program `name`. Skips the test if it is not installed."""
    script = INSTALLED / ".bin" / name
    if not script.exists() or not _NODE.exists():
        pytest.skip(f"there is no {name}: `npm ci --ignore-scripts` in tests/node installs it")
    return script.resolve()


async def run(name: str, *arguments: str, folder: Path, seconds: float = 60.0, **environment: str) -> Ended:
    """Run it in `folder` until it ends, at most for `seconds`, with `environment` in addition to PATH and HOME."""
    script = installed(name)
    process = await asyncio.create_subprocess_exec(
        *(str(_NODE), str(script), *arguments),
        cwd=folder,
        env={"PATH": str(_NODE.parent), "HOME": str(folder), "NO_COLOR": "1", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class _WithToken:
    """The app with a token added to each request, for programs that have no option for one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": list(scope["headers"])}
            MutableHeaders(scope=scope)["authorization"] = f"Bearer {TOKEN}"
        await self._app(scope, receive, send)


@asynccontextmanager
async def known(served: Programs) -> AsyncIterator[str]:
    """A second URL of the same functions, where all requests are authenticated with TOKEN."""
    assert served.web._server is not None
    server = WebServer(_WithToken(served.web._server._server.config.app), port=0)
    address = await server.start()
    try:
        yield f"{address.url}/mcp"
    finally:
        await server.stop()
