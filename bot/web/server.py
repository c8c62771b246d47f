"""The web server inside our own event loop: uvicorn without its signal handlers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from bot.web.connections import Connection, ConnectionLimits, ConnectionTable

_BACKLOG = 128
"""Also how many connections are accepted at a time, before any is closed for them."""
_GRACE_SECONDS = 5
_LIMITS = ConnectionLimits()


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """For a browser on this machine, without a slash at the end."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class WebServer:
    """Serves one app."""

    def __init__(
        self,
        app: ASGIApp,
        host: str = "127.0.0.1",
        port: int = 8080,
        *,
        before_stop: Callable[[], None] | None = None,
        limits: ConnectionLimits = _LIMITS,
    ) -> None:
        """`port` 0 takes a free one. `before_stop` ends what would never end by itself: open streams."""
        self._host = host
        self._port = port
        self._before_stop = before_stop
        self._serving: asyncio.Task[None] | None = None
        self._server = _EmbeddedServer(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=partial(Connection, ConnectionTable(limits)),  # type: ignore[arg-type] # called, never inherited
                backlog=_BACKLOG,
                timeout_keep_alive=limits.idle_seconds,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def start(self) -> Address:
        """Listen, and return where, once requests are answered. Raises OSError when the address is taken."""
        listening = _bound_socket(self._host, self._port)
        address = Address(*listening.getsockname()[:2])
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]), name="web server")
        await self._server.answering.wait()
        return address

    async def run(self) -> None:
        """Return when the server has stopped; cancelled, stop it first."""
        if self._serving is None:
            raise RuntimeError("start() comes before run()")
        try:
            await asyncio.shield(self._serving)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Answer the requests that have come, within five seconds, and close."""
        if self._serving is None:
            return
        if self._before_stop is not None:
            self._before_stop()
        self._server.should_exit = True
        await self._serving


class _EmbeddedServer(uvicorn.Server):
    """Leaves signals to the daemon, and tells when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answering.set()


def _bound_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay (40 ms an answer) off only for sockets that say they are TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
