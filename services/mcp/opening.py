"""How the connection to a server of the settings is opened. The SDK is an extra and slow to import, so it is imported
here, when the first server is asked for the first time, and beside the event loop."""

from __future__ import annotations

import asyncio
import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import structlog

from config.mcp_servers import McpServerSettings
from services.clock import Clock
from services.mcp.pace import Pace
from services.mcp.problems import Unreachable

if TYPE_CHECKING:
    from services.mcp.connection import Connection
    from services.mcp.stdio import Program

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_STDERR_CHARS = 500
_LINES_PER_MINUTE = 30
_log = structlog.get_logger("mcp")


class Start(Protocol):
    """Makes of a server's settings the program that is started."""

    async def __call__(self, settings: McpServerSettings) -> Program:
        """Raises Unreachable where it may not be started so."""


class Opening:
    """Opens connections to one server."""

    def __init__(self, settings: McpServerSettings, clock: Clock, start: Start) -> None:
        """`start` says how the server's program is started."""
        self._settings = settings
        self._clock = clock
        self._start = start
        self._pace = Pace(_LINES_PER_MINUTE, 60.0, clock)

    async def __call__(self) -> Connection:
        """A connection that has shaken hands. Raises Unreachable."""
        connections, streams = await self._modules()
        connection: Connection = connections.Connection(self._clock)
        settings = self._settings
        if settings.url:
            headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
            opened = streams.web_streams(settings.url, headers)
        else:
            opened = streams.program_streams(await self._start(settings), self._note_stderr, self._note_noise)
        try:
            await connection.open(opened)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _modules(self) -> tuple[ModuleType, ModuleType]:
        """Of connections, and of the streams that this server needs."""
        streams = "services.mcp.web" if self._settings.url else "services.mcp.stdio"
        try:
            # One after the other: two threads that import parts of the same package can wait for each other.
            found = await asyncio.to_thread(lambda: [importlib.import_module(one) for one in (_CONNECTIONS, streams)])
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.startswith("services"):
                raise
            text = f"the package {error.name!r} is missing: install rollcall with its extra, as rollcall[mcp]"
            raise Unreachable(said=text) from None
        return found[0], found[1]

    def _note_stderr(self, piece: bytes) -> None:
        self._note("stderr", piece)

    def _note_noise(self, line: bytes) -> None:
        self._note("stdout", line)

    def _note(self, stream: str, piece: bytes) -> None:
        """What the server's program writes beside its messages goes to our log, at a bounded pace."""
        for line in piece.decode("utf-8", "replace").splitlines():
            if line.strip() and self._pace.may_go_on():
                _log.info("mcp_server_wrote", server=self._settings.name, stream=stream, text=line[:_STDERR_CHARS])


_CONNECTIONS = "services.mcp.connection"


def plainly(settings: McpServerSettings, folder: Path) -> Program:
    """The program as a process of this machine that works in `folder`, with what the settings give it and nothing
    else."""
    from services.mcp.stdio import Program

    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    given = {name: value.get_secret_value() for name, value in settings.env.items()}
    return Program(settings.command, {**inherited, **given}, folder)
