"""The one web app: the platforms' routes, the chat page, health and metrics, behind one guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.platforms.http import HttpPlatform
from bot.platforms.http_routes import answer_refusal, chat_routes, json_response
from bot.platforms.http_wire import Refusal
from bot.web.page import ChatPage
from bot.web.security import Guard


@dataclass(frozen=True, slots=True)
class Health:
    """What a probe is told."""

    ok: bool
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probes:
    """What operators ask; each is called for every request and must answer at once."""

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
) -> Starlette:
    """The app. `more_routes` are those of other platforms (webhooks); `hosts` and `public_urls` are what Guard
    serves."""
    routes: list[BaseRoute] = [*chat_routes(platforms), *more_routes]
    if page is not None:
        routes += page.routes()
    if probes is not None:
        routes += _probe_routes(probes)
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=tuple(hosts), public_urls=tuple(public_urls))],
        exception_handlers={Refusal: answer_refusal, HTTPException: _answer_http_exception},
    )


def _probe_routes(probes: Probes) -> list[Route]:
    async def healthz(_request: Request) -> Response:
        return _health_response(probes.alive())

    async def readyz(_request: Request) -> Response:
        return _health_response(probes.ready())

    async def metrics(_request: Request) -> Response:
        return Response(probes.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


def _health_response(health: Health) -> Response:
    return json_response({"ok": health.ok, "details": dict(health.details)}, 200 if health.ok else 503)


async def _answer_http_exception(_request: Request, error: Exception) -> Response:
    """404 and 405 in the same shape as every other refusal."""
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
    response = json_response({"error": {"code": code, "message": error.detail}}, error.status_code)
    response.headers.update(error.headers or {})
    return response
