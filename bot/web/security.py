"""What every answer and every request of the web app has to pass: the guard against pages of strangers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
PROBE_PATHS = frozenset({"/healthz", "/readyz"})
"""Answered under any host name: orchestrators ask by address."""

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """ASGI middleware. A request under a host name that is not ours (DNS rebinding), or sent by a page of another
    origin (CSRF), is answered with 403 before anything else sees it; every answer gets the security headers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), open_paths: Collection[str] = PROBE_PATHS) -> None:
        """`hosts`: names without port under which the app is reached, beside those of the loopback."""
        self._app = app
        self._hosts = LOOPBACK_HOSTS | {_bare(host) for host in hosts}
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        fault = None if scope["path"] in self._open_paths else self._fault(Headers(scope=scope))
        if fault is None:
            await self._app(scope, receive, send_with_headers)
        else:
            body = {"error": {"code": "forbidden", "message": fault}}
            await JSONResponse(body, 403)(scope, receive, send_with_headers)

    def _fault(self, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _bare(hosts[0]) not in self._hosts:
            return "this host name is not served; platforms.web.host names the one that is"
        origins = headers.getlist("origin")
        if len(origins) > 1 or (origins and not _same_place(origins[0], hosts[0])):
            return "requests from pages of other origins are not served"
        if headers.get("sec-fetch-site", "same-origin") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "requests from pages of other origins are not served"
        return None


def _bare(host: str) -> str:
    """A host header without its port, in lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def _same_place(origin: str, host: str) -> bool:
    """Whether a page of `origin` was served under the host header `host`, its port included."""
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.strip().lower()
