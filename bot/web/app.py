"""The one web app: the platforms' routes, the chat page, health and metrics, behind one guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.platforms.http import HttpPlatform
from bot.platforms.http_callers import bears
from bot.platforms.http_routes import answer_refusal, authenticate, chat_routes, json_response
from bot.platforms.http_wire import Refusal
from bot.web.page import ChatPage
from bot.web.security import Guard
from bot.web.wrong_tokens import WrongTokens
from services.clock import Clock, SystemClock

_NO_TOKEN = SecretStr("")
_CLOCK = SystemClock()


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
    exposed: bool = False,
    metrics_token: SecretStr = _NO_TOKEN,
    clock: Clock = _CLOCK,
) -> Starlette:
    """The app. `more_routes` are those of other platforms (webhooks); `hosts` and `public_urls` are what Guard
    serves. `exposed`: others than this machine can reach it, so that metrics and commands need a token."""
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
        exception_handlers={Refusal: answer_refusal, HTTPException: _answer_http_exception},
    )


def _probe_routes(probes: Probes, metrics_token: SecretStr | None) -> list[Route]:
    """`metrics_token`: what metrics need; None: nothing."""

    async def healthz(_request: Request) -> Response:
        return _health_response(probes.alive())

    async def readyz(_request: Request) -> Response:
        return _health_response(probes.ready())

    async def metrics(request: Request) -> Response:
        if metrics_token is not None and not bears(request, metrics_token):
            needs = "this needs the header `Authorization: Bearer <platforms.web.metrics_token>`"
            raise Refusal(401, "unauthorized", needs)
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
