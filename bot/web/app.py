"""The web application: probes, routes and middleware, and the server that runs it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from bot.platforms.http.platform import HttpPlatform, bears
from bot.platforms.http.routes import answer_refusal, authenticate, chat_routes, json_response
from bot.platforms.http.wire import RequestError
from bot.web.connections import Connection, ConnectionLimits, ConnectionTable, WrongTokens
from bot.web.page import ChatPage
from bot.web.security import Guard
from services.clock import Clock, SystemClock

_NO_TOKEN = SecretStr("")
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Health:
    """Response of a probe."""

    ok: bool
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probes:
    """Probes and metrics for operators; called on each request, so they must not block."""

    alive: Callable[[], Health]
    ready: Callable[[], Health]
    metrics: Callable[[], bytes]
    """In the text format of Prometheus."""


def web_app(
    *,
    platforms: Sequence[HttpPlatform] = (),
    page: ChatPage | None = None,
    probes: Probes | None = None,
    more_routes: Sequence[BaseRoute] = (),
    hosts: Iterable[str] = (),
    public_urls: Iterable[str] = (),
    exposed: bool = False,
    metrics_token: SecretStr = _NO_TOKEN,
    clock: Clock = _CLOCK,
) -> Starlette:
    """The app. `more_routes` are those of other platforms (webhooks); `hosts` and `public_urls` are passed to Guard.
    `exposed`: reachable from other machines, so that metrics and commands need a token."""
    routes: list[BaseRoute] = [*chat_routes(platforms), *more_routes]
    if page is not None:
        routes += page.routes(partial(authenticate, platforms) if exposed else None)
    if probes is not None:
        is_open = not exposed and not metrics_token.get_secret_value()
        routes += _probe_routes(probes, None if is_open else metrics_token)
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=tuple(hosts), public_urls=tuple(public_urls)),
            Middleware(WrongTokens, clock=clock),
        ],
        exception_handlers={RequestError: answer_refusal, HTTPException: _answer_http_exception},
    )


def _probe_routes(probes: Probes, metrics_token: SecretStr | None) -> list[Route]:
    """Routes of /healthz, /readyz and /metrics. `metrics_token`: token required for metrics, which are answered with
    401 otherwise; None for none."""

    async def healthz(_request: Request) -> Response:
        return _health_response(probes.alive())

    async def readyz(_request: Request) -> Response:
        return _health_response(probes.ready())

    async def metrics(request: Request) -> Response:
        if metrics_token is not None and not bears(request, metrics_token):
            needs = "this needs the header `Authorization: Bearer <platforms.web.metrics_token>`"
            raise RequestError(401, "unauthorized", needs)
        return Response(probes.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


def _health_response(health: Health) -> Response:
    return json_response({"ok": health.ok, "details": dict(health.details)}, 200 if health.ok else 503)


async def _answer_http_exception(_request: Request, error: Exception) -> Response:
    """Return 404 and 405 in the format of all other errors."""
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
    response = json_response({"error": {"code": code, "message": error.detail}}, error.status_code)
    response.headers.update(error.headers or {})
    return response


_BACKLOG = 128
"""Also the number of connections accepted at once, before any is closed to make room."""
_GRACE_SECONDS = 5
_LIMITS = ConnectionLimits()


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of the server."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """URL for a browser on this machine, without a trailing slash."""
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
        """`port` 0 selects a free one. `before_stop` ends open streams, which would never end by themselves."""
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
        """Listen; returns the address when requests are answered. Raises OSError if the address is in use."""
        listening = _bound_socket(self._host, self._port)
        address = Address(*listening.getsockname()[:2])
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]), name="web server")
        await self._server.answering.wait()
        return address

    async def stop(self) -> None:
        """Answer pending requests within five seconds, and close. Does nothing if the server is not started."""
        if self._serving is None:
            return
        if self._before_stop is not None:
            self._before_stop()
        self._server.should_exit = True
        await self._serving


class _EmbeddedServer(uvicorn.Server):
    """uvicorn server without signal handlers, with an event for its start."""

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
    # asyncio disables Nagle's algorithm (40 ms per response) only for sockets with protocol TCP.
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
