"""Host and origin checks for every request of the web application, and security headers for every response."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from config.terms import host_and_port

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
PROBE_PATHS = frozenset({"/healthz", "/readyz"})
"""Answered under any host name, because orchestrators use addresses."""

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "media-src 'self'; connect-src 'self'; "
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
    """ASGI middleware: answers requests for unknown hosts (DNS rebinding) and from pages of other origins (CSRF) with
    403, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), public_urls: Iterable[str] = ()) -> None:
        """`hosts`: addresses or names that browsers reach directly, on any port, in addition to the loopback's.
        `public_urls`: origins of the page on other machines, perhaps behind a proxy that rewrites `Host`."""
        self._app = app
        self._direct_hosts = LOOPBACK_HOSTS | {_in_brackets(host.lower()) for host in hosts}
        self._origins = frozenset(public_urls)
        self._hosts = self._direct_hosts | {_host(origin) for origin in self._origins}

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

        fault = None if scope["path"] in PROBE_PATHS else self._fault(Headers(scope=scope))
        if fault is None:
            await self._app(scope, receive, send_with_headers)
        else:
            body = {"error": {"code": "forbidden", "message": fault}}
            await JSONResponse(body, 403)(scope, receive, send_with_headers)

    def _fault(self, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        place = host_and_port(hosts[0]) if len(hosts) == 1 else None
        if place is None or place[0] not in self._hosts:
            return "this host name is not served; platforms.web.public_url names those that are"
        origins = headers.getlist("origin")
        if len(origins) > 1 or (origins and not self._is_own(origins[0], place)):
            return "requests from pages of other origins are not served; platforms.web.public_url names the page's own"
        if headers.get("sec-fetch-site", "same-origin") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "requests from pages of other origins are not served"
        return None

    def _is_own(self, origin: str, place: tuple[str, int | None]) -> bool:
        """Whether `origin` is the page's own: a public URL, or the origin that was reached directly at `place`."""
        if origin in self._origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in ("http", "https") and place[0] in self._direct_hosts and host_and_port(authority) == place


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _host(origin: str) -> str:
    place = host_and_port(origin.partition("://")[2])
    if place is None:
        raise ValueError(f"{origin!r} is no origin")
    return place[0]
