"""HTTP client for all web access: checked addresses, pinned connections, limits on size and time."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urlsplit

import orjson

from config.terms import host_and_port
from services.refs import ErrorCode, JsonValue
from services.web.addresses import Resolver, Target, WebError, read_url, resolve_by_system, vetted

if TYPE_CHECKING:
    import httpx2

__all__ = ["WebAnswer", "WebClient", "WebError", "WebLimits", "json_value"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ANSWER_LOST = frozenset({502, 504})
"""Gateway errors: the origin server may have processed the request. Any other status is the origin's own answer: 503
refuses the request, 500 reports a failure."""
_OURS = {"accept-encoding": "gzip", "connection": "close"}
_MOST_JSON_VALUES = 50_000
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
MayAsk = Callable[[str], bool]
"""Whether a host, in lower case, may be requested."""


def _anybody(host: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of one exchange, redirects included: whole time, time to connect, decompressed bytes of the body, and
    number of redirects."""

    timeout_seconds: float = 15.0
    connect_timeout_seconds: float = 5.0
    body_bytes: int = 5 * 1024 * 1024
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A 2xx response with its whole body."""

    url: str
    """URL after redirects."""
    content_type: str
    body: bytes
    etag: str = ""
    last_modified: str = ""
    """Validator for a conditional request, as is `etag`: an unchanged resource raises a WebError with status 304."""

    def json(self) -> JsonValue:
        """Parse the body as JSON. Raises WebError (failed) if it is not JSON."""
        try:
            return json_value(self.body)
        except orjson.JSONDecodeError as error:
            raise WebError(ErrorCode.FAILED, f"{urlsplit(self.url).hostname} did not answer in JSON") from error


def json_value(body: bytes) -> JsonValue:
    """Parse `body` as JSON. Raises orjson.JSONDecodeError, and WebError if it may contain more than 50,000 values:
    parsing holds Python's global lock, so that a thread would not help."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") > _MOST_JSON_VALUES:
        problem = f"the JSON response has more than {_MOST_JSON_VALUES} values"
        raise WebError(ErrorCode.FAILED, problem, is_unknown=True)
    return orjson.loads(body)


@dataclass(frozen=True, slots=True)
class _Request:
    """Request to one hop of a redirect chain: HTTP method, target, headers by lower-case name, and body."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes

    def is_done_by(self, status: int) -> bool:
        """Whether a redirect with this status confirms the operation and only a GET remains."""
        return self.method != "GET" and (status == 303 or (status in (301, 302) and self.method == "POST"))

    def redirected(self, status: int, target: Target) -> _Request:
        """Request for the next hop. A hop to another origin keeps only harmless headers; raises WebError if it would
        also carry a body."""
        following = replace(self, target=target)
        if status == 303 or self.is_done_by(status):
            headers = {name: value for name, value in self.headers.items() if name.lower() != "content-type"}
            following = replace(following, method="GET", headers=headers, body=b"")
        if target.origin == self.target.origin:
            return following
        if following.method != "GET":
            raise WebError(ErrorCode.REFUSED, f"{self.target.host} redirects what was posted to {target.host}")
        forwarded = {
            name: value for name, value in following.headers.items() if name.lower() in ("accept", "user-agent")
        }
        return replace(following, headers=forwarded)


class WebClient:
    """HTTP client for public web servers. Resolves each name once per hop, requires every address to be public and
    connects to a checked address. Uses no proxies, cookies or credentials.

    `resolve` replaces the DNS resolver and `transport` the factory of the httpx2 transport. `allow_loopback` also
    permits servers on 127.0.0.0/8 and ::1. `private_origin` is the URL of an operator's server that may be on a private
    network: exactly that scheme, host and port. No redirect leads from another host to a private server.
    """

    def __init__(
        self,
        limits: WebLimits | None = None,
        *,
        allow_loopback: bool = False,
        resolve: Resolver = resolve_by_system,
        transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
        private_origin: str = "",
    ) -> None:
        self._limits = limits or WebLimits()
        self._allow_loopback = allow_loopback
        self._resolve = resolve
        self._make_transport = transport or _transport
        self._transport: httpx2.AsyncBaseTransport | None = None
        self._private_origin = private_origin
        self._private_hosts: frozenset[tuple[str, int]] = frozenset()

    def allow_private(self, hosts: Sequence[str]) -> None:
        """Permit these servers of a private network from now on, instead of those before: `host:port`, or `host` for
        the ports 80 and 443."""
        places = [place for one in hosts if (place := host_and_port(one)) is not None]
        self._private_hosts = frozenset(
            (host.strip("[]"), one) for host, port in places for one in ((80, 443) if port is None else (port,))
        )

    def is_private(self, url: str) -> bool:
        """Whether `url` is on a permitted server of a private network."""
        return self._is_own(read_url(url, local_names=True))

    async def get(
        self, url: str, *, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> WebAnswer:
        """GET `url` with `query` added. Raises WebError, also for a status other than 2xx."""
        return await self.request("GET", _with_query(url, query), headers=headers)

    async def get_json(
        self, url: str, *, query: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> JsonValue:
        """GET `url` and parse the response as JSON. Raises WebError, also for a status other than 2xx or a body that is
        not JSON."""
        wanted = {"accept": "application/json", **(headers or {})}
        return (await self.get(url, query=query, headers=wanted)).json()

    async def post_json(self, url: str, body: JsonValue, *, headers: Mapping[str, str] | None = None) -> JsonValue:
        """POST `body` as JSON and parse the response as JSON. Raises WebError, also for a status other than 2xx or a
        body that is not JSON."""
        sent = {"accept": "application/json", "content-type": "application/json", **(headers or {})}
        encoded = json.dumps(body, ensure_ascii=False).encode()
        return (await self.request("POST", url, headers=sent, body=encoded)).json()

    async def request(
        self,
        method: Method,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        may_ask: MayAsk = _anybody,
        limits: WebLimits | None = None,
    ) -> WebAnswer:
        """Send any request. `may_ask` checks the host of each hop; `limits` replace the client's. Raises WebError for a
        refused address, a failure, a timeout and a status other than 2xx, with `is_unknown` if the request may have
        taken effect."""
        sent = {"user-agent": "rollcall", **{name.lower(): value for name, value in (headers or {}).items()}}
        limits = limits or self._limits
        request = _Request(method, self._permitted(url, may_ask), sent, body)
        try:
            async with asyncio.timeout(limits.timeout_seconds):
                return await self._follow(request, may_ask, limits)
        except TimeoutError as error:
            slow = f"{request.target.host} took too long to answer"
            raise WebError(ErrorCode.TRANSIENT, slow, is_unknown=True) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    def _permitted(self, url: str, may_ask: MayAsk, redirected_by: str = "") -> Target:
        """Parse `url`. Raises WebError if the URL is invalid, another host redirects to a private server, or `may_ask`
        rejects its host, which is then its `barred`."""
        target = self._target(url)
        if redirected_by not in ("", target.host) and self._is_own(target):
            raise WebError(ErrorCode.REFUSED, f"{redirected_by} redirects into a private network")
        if not may_ask(target.host):
            raise WebError(ErrorCode.REFUSED, f"{target.host} may not be asked", barred=target.host)
        return target

    def _target(self, url: str) -> Target:
        """Parse and validate `url`. Raises WebError; only a permitted private server may have a local name."""
        if self._private_origin or self._private_hosts:
            target = read_url(url, local_names=True)
            if self._is_own(target):
                return target
        return read_url(url)

    def _is_own(self, target: Target) -> bool:
        own = self._private_origin
        if (target.host, target.port) in self._private_hosts:
            return True
        return bool(own) and target.origin == read_url(own, local_names=True).origin

    async def _follow(self, request: _Request, may_ask: MayAsk, limits: WebLimits) -> WebAnswer:
        is_done = False
        try:
            for _ in range(limits.redirects + 1):
                response = await self._send(request, limits)
                try:
                    location = response.headers.get("location", "")
                    if response.status_code not in _REDIRECTS or not location:
                        return await self._read(request.target, response, limits.body_bytes)
                finally:
                    await response.aclose()
                is_done = is_done or request.is_done_by(response.status_code)
                target = self._permitted(request.target.join(location), may_ask, redirected_by=request.target.host)
                request = request.redirected(response.status_code, target)
        except WebError as error:
            error.is_unknown = error.is_unknown or is_done
            raise
        host, most = request.target.host, limits.redirects
        raise WebError(ErrorCode.FAILED, f"{host} redirects more than {most} times", is_unknown=is_done)

    async def _send(self, request: _Request, limits: WebLimits) -> httpx2.Response:
        """Response headers from the first checked address that accepts a connection. Raises WebError if the host is
        refused, no address accepts a connection, or the connection breaks."""
        import httpx2  # deferred: the import takes 100 ms

        if self._transport is None:
            self._transport = self._make_transport()
        target = request.target
        is_own = self._is_own(target)
        for address in await vetted(target, self._resolve, allow_loopback=self._allow_loopback, allow_any=is_own):
            try:
                return await self._transport.handle_async_request(self._pinned(request, address, limits))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
            except httpx2.TransportError as error:
                raise _broken(target) from error
        raise WebError(ErrorCode.TRANSIENT, f"{target.host} cannot be reached")

    def _pinned(self, request: _Request, address: str, limits: WebLimits) -> httpx2.Request:
        """`request` as sent to `address`; the host name goes into the Host header and the TLS handshake."""
        import httpx2

        target = request.target
        timeout = httpx2.Timeout(limits.timeout_seconds, connect=limits.connect_timeout_seconds)
        return httpx2.Request(
            request.method,
            target.pinned_url(address),
            headers={**request.headers, **_OURS, "host": target.authority},
            content=request.body or None,
            extensions={"timeout": timeout.as_dict(), "sni_hostname": target.host},
        )

    async def _read(self, target: Target, response: httpx2.Response, most_bytes: int) -> WebAnswer:
        import httpx2

        if not response.is_success:
            raise _status_error(target, response.status_code)
        body = _Body(target, response.headers.get("content-encoding", ""), most_bytes)
        try:
            async for chunk in response.aiter_raw():
                body.add(chunk)
        except httpx2.TransportError as error:
            raise _broken(target) from error
        headers = response.headers
        return WebAnswer(
            target.url,
            headers.get("content-type", ""),
            body.whole(),
            headers.get("etag", ""),
            headers.get("last-modified", ""),
        )


class _Body:
    """Response body, limited to `most` bytes after decompression of gzip. Raises WebError for another encoding, a
    longer body and damaged data."""

    def __init__(self, target: Target, encoding: str, most: int) -> None:
        self._host = target.host
        self._most = most
        self._parts = bytearray()
        self._inflater: Any = None
        if encoding.strip().lower() in ("gzip", "x-gzip"):
            self._inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        elif encoding.strip().lower() not in ("", "identity"):
            odd = f"{self._host} answers in an encoding that was not asked for"
            raise WebError(ErrorCode.FAILED, odd, is_unknown=True)

    def add(self, chunk: bytes) -> None:
        room = self._most - len(self._parts) + 1
        if self._inflater is None:
            self._parts += chunk[:room]
        else:
            try:
                self._parts += self._inflater.decompress(chunk, room)
            except zlib.error as error:
                raise _broken_body(self._host) from error
        if len(self._parts) > self._most:
            much = f"{self._host} answers with more than {self._most} bytes"
            raise WebError(ErrorCode.FAILED, much, is_unknown=True)

    def whole(self) -> bytes:
        if self._inflater is not None and not self._inflater.eof:
            raise _broken_body(self._host)
        return bytes(self._parts)


def _transport() -> httpx2.AsyncBaseTransport:
    import httpx2

    # No keep-alive: a pooled connection would serve another name on the same address without checking its certificate.
    limits = httpx2.Limits(max_connections=50, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)


def _with_query(url: str, query: Mapping[str, object] | None) -> str:
    if not query:
        return url
    pairs: Sequence[tuple[str, str]] = [(name, str(value)) for name, value in query.items()]
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs)}"


def _status_error(target: Target, status: int) -> WebError:
    transient = status >= 500 or status in (408, 425, 429)
    code = ErrorCode.TRANSIENT if transient else ErrorCode.FAILED
    text = f"{target.host} answers with status {status}"
    return WebError(code, text, status=status, is_unknown=status in _ANSWER_LOST)


def _broken(target: Target) -> WebError:
    return WebError(ErrorCode.TRANSIENT, f"the connection to {target.host} broke", is_unknown=True)


def _broken_body(host: str) -> WebError:
    return WebError(ErrorCode.TRANSIENT, f"the answer of {host} is damaged", is_unknown=True)
