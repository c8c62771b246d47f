"""Opens connections to configured MCP servers. The SDK is an optional extra, imported here on first use."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import structlog

from config.sections.mcp import McpServerSettings
from services.clock import Clock
from services.extras import missing_extra
from services.mcp.problems import LoginRequired, Unreachable
from services.mcp.stored_logins import StoredLogin
from services.sandbox.processes import CannotStart, Command
from services.sandbox.sandbox import Isolation, NotIsolated, Sandbox, limits_of

if TYPE_CHECKING:
    from services.mcp.connection import Connection
    from services.mcp.login import Browser
    from services.mcp.stdio import Program
    from services.mcp.web import Authorized


_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_STDERR_CHARS = 500
_LINES_PER_MINUTE = 30
_log = structlog.get_logger("mcp")


Start = Callable[[McpServerSettings], Awaitable["Program"]]
"""Returns the program of the server with these settings. Raises Unreachable if it cannot be started."""


class RateLimiter:
    """Rate limiter: at most `most` events in each fixed window of `seconds`."""

    def __init__(self, most: int, seconds: float, clock: Clock) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._began = clock.monotonic()
        self._count = 0

    def allow(self) -> bool:
        """Whether the event is within the limit; counts it."""
        now = self._clock.monotonic()
        if now - self._began >= self._seconds:
            self._began, self._count = now, 0
        self._count += 1
        return self._count <= self._most


class Opening:
    """Callable that opens connections to one server, over HTTP if its settings have a `url`, else as a child
    process."""

    def __init__(self, settings: McpServerSettings, clock: Clock, start: Start, home: Path) -> None:
        """`start` returns the program to start for a server without a `url`. `home` has the stored logins."""
        self._settings = settings
        self._clock = clock
        self._start = start
        self._stored = StoredLogin(home, settings)
        self._rate_limiter = RateLimiter(_LINES_PER_MINUTE, 60.0, clock)

    async def __call__(self, browser: Browser | None = None) -> Connection:
        """Open a connection and complete the handshake, with `browser` in a new login. Raises Unreachable."""
        settings, login = self._settings, self._settings.login
        needs_person = browser is None and login is not None and login.grant == "authorization_code"
        if needs_person and not self._stored.has_tokens:
            raise LoginRequired(member_text=self._stored.advice)
        connections, streams = await self._modules()
        connection: Connection = connections.Connection(self._clock, may_ask=settings.elicitation)
        if settings.url:
            headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
            opened = streams.web_streams(settings.url, headers, self._authorized(browser))
        else:
            opened = streams.program_streams(
                await self._start(settings), partial(self._note, "stderr"), partial(self._note, "stdout")
            )
        try:
            await connection.open(opened)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _authorized(self, browser: Browser | None) -> Authorized:
        """Wrapper that adds the configured login to a transport."""
        login = self._settings.login
        if login is None:
            return lambda transport: transport
        from services.mcp.login import AuthorizedTransport

        return lambda transport: AuthorizedTransport(transport, self._settings, login, self._stored, browser)

    async def _modules(self) -> tuple[ModuleType, ModuleType]:
        """Import the connection module and the stream module for this server, in that order. Raises Unreachable if the
        optional extra `rollcall[mcp]` is missing."""
        names = ("services.mcp.connection", "services.mcp.web" if self._settings.url else "services.mcp.stdio")
        try:
            # In one thread, one after the other: two threads that import parts of the same package can deadlock.
            connections, streams = await asyncio.to_thread(lambda: [importlib.import_module(name) for name in names])
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.startswith("services"):
                raise
            raise Unreachable(member_text=missing_extra("mcp", str(error.name))) from None
        return connections, streams

    def _note(self, stream: str, piece: bytes) -> None:
        """Log output of the server's program that is not a message, at a limited rate."""
        for line in piece.decode("utf-8", "replace").splitlines():
            if line.strip() and self._rate_limiter.allow():
                _log.info("mcp_server_wrote", server=self._settings.name, stream=stream, text=line[:_STDERR_CHARS])


class SandboxedStart:
    """Prepares programs in the sandbox, or without it if neither the server's nor the sandbox's settings require it.
    Reads the sandbox's settings at each start."""

    def __init__(self, sandbox: Sandbox, folders: Path) -> None:
        """`folders` holds the working folders of servers that configure none."""
        self._sandbox = sandbox
        self._folders = folders

    async def __call__(self, settings: McpServerSettings) -> Program:
        """The program to start, wrapped in the sandbox unless it is off, else with the configured environment and the
        inherited PATH, HOME, LANG and TMPDIR. Raises Unreachable if the required isolation
        is unavailable, or the program or its folder cannot be used."""
        from services.mcp.stdio import Program

        limits, folder = self._sandbox.settings, self._folder(settings)
        env = {name: value.get_secret_value() for name, value in settings.env.items()}
        if settings.sandbox == "off" and limits.isolation != "required":
            inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            return Program(settings.command, {**inherited, **env}, folder)
        command = Command(
            settings.command,
            env=env,
            folder=folder,
            readable=tuple(path.absolute() for path in settings.readable),
            network=settings.network,
        )
        try:
            prepared = await self._sandbox.prepare(command, limits_of(limits), Isolation(settings.sandbox))
        except (NotIsolated, CannotStart) as error:
            raise Unreachable(member_text=str(error)) from None
        return Program(prepared.argv, prepared.env, prepared.folder, prepared.end)

    def _folder(self, settings: McpServerSettings) -> Path:
        """Absolute working folder of the program: as configured, else a private one that is created. Raises Unreachable
        if it is missing or cannot be created. It must not be writable by others, because the program may execute files
        in it."""
        if settings.folder is not None:
            if not settings.folder.is_dir():
                raise Unreachable(member_text=f"there is no folder {settings.folder}")
            return settings.folder.absolute()
        own = (self._folders / settings.name).absolute()
        try:
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unreachable(member_text=f"the folder {own} cannot be made: {error.strerror}") from None
        return own
