"""aiohttp's connections to one server, under an httpx2 client that does what such a server needs and no more."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
from multidict import CIMultiDict
from yarl import URL

from services.llm.provider_client import Alike, Parcel

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Headers that aiohttp makes itself."""


class OneServerClient(httpx2.AsyncClient):
    """For one server. Keeps no cookies and follows no redirects. Proxies and certificates are the environment's."""

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """The response, with its body unread, after the event hooks have seen it. Raises httpx2's errors for a
        connection that fails, and what a hook raises."""
        if self.is_closed:
            raise httpx2.ConnectError("the connections were closed", request=request)
        response = await self._transport_for_url(request.url).handle_async_request(request)
        try:
            for hook in self.event_hooks["response"]:
                await hook(response)
        except BaseException:
            await response.aclose()
            raise
        return response

    def _init_transport(self, *_: Any, **given: Any) -> httpx2.AsyncBaseTransport:
        return _pool(None, **given)

    def _init_proxy_transport(self, proxy: httpx2.Proxy, *_: Any, **given: Any) -> httpx2.AsyncBaseTransport:
        return _pool(proxy, **given)


def _pool(
    proxy: httpx2.Proxy | None, *, verify: Any, cert: Any, trust_env: bool, limits: httpx2.Limits, **_: Any
) -> Pool:
    named = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return Pool(_ssl_context(verify, cert, trust_env, named), limits, proxy)


@cache  # reading the certificates takes a twentieth of a second, and every model and each of its proxies wants them
def _ssl_context(verify: Any, cert: Any, trust_env: bool, _named: tuple[str | None, ...]) -> ssl.SSLContext:
    return httpx2.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)


class Pool(httpx2.AsyncBaseTransport):
    """Connections that are kept and used again, straight to a server or through a proxy."""

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx2.Limits, proxy: httpx2.Proxy | None) -> None:
        self._ssl_context = ssl_context
        self._limits = limits
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._usual: _Usual | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, its body unread. Raises httpx2's errors for a connection that fails."""
        usual, parcel = self._usual_for(request), await _parcel_of(request)
        try:
            response = await self._ask(request.method, usual, parcel)
        except aiohttp.ConnectionTimeoutError as error:
            raise httpx2.ConnectTimeout(str(error), request=request) from error
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # A ValueError: an address or a header that cannot be sent.
            raise _read_error(error) from error
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Answer(response), request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, method: str, usual: _Usual, parcel: Parcel) -> aiohttp.ClientResponse:
        try:
            return await self._ask_once(method, usual, parcel)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise
        except aiohttp.ClientConnectionError:
            if parcel.data is None or self._session is None:
                raise
        # The connection was ended before anything was sent over it, most often one that was kept.
        return await self._ask_once(method, usual, parcel)

    async def _ask_once(self, method: str, usual: _Usual, parcel: Parcel) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = self._open()
        return await self._session.request(
            method,
            usual.url,
            headers=usual.headers,
            data=_Payload(parcel),
            timeout=usual.timeout,
            allow_redirects=False,
            proxy=usual.proxy,
            proxy_headers=usual.proxy_headers,
        )

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            ssl=self._ssl_context,
            limit=self._limits.max_connections or 0,
            keepalive_timeout=self._limits.keepalive_expiry,
        )
        # Unpacking is left to whoever knows how much may come of it.
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    def _usual_for(self, request: httpx2.Request) -> _Usual:
        like = request.like if isinstance(request, Alike) else request
        if self._usual is None or self._usual.like is not like:
            self._usual = _Usual(like, self._proxy)
        return self._usual


class _Usual:
    """What aiohttp is told of every request that is like one."""

    def __init__(self, like: httpx2.Request, proxy: httpx2.Proxy | None) -> None:
        self.like = like
        self.url = URL(str(like.url), encoded=True)
        pairs = ((name.decode("ascii"), value.decode("latin-1")) for name, value in like.headers.raw)
        self.headers = CIMultiDict((name, value) for name, value in pairs if name.lower() not in _FRAMING)
        self.timeout = aiohttp.ClientTimeout(sock_connect=like.extensions.get("timeout", {}).get("connect"))
        self.proxy = None if proxy is None else URL(str(proxy.url))
        self.proxy_headers: CIMultiDict[str] | None = None
        if proxy is not None and proxy.auth is not None:
            word = aiohttp.encode_basic_auth(*proxy.auth)
            if self.url.scheme == "https":
                # For the proxy alone, which is asked for a tunnel first.
                self.proxy_headers = CIMultiDict({"Proxy-Authorization": word})
            else:
                self.headers["Proxy-Authorization"] = word


async def _parcel_of(request: httpx2.Request) -> Parcel:
    stream = request.stream
    return stream if isinstance(stream, Parcel) else Parcel(await request.aread())


class _Payload(aiohttp.Payload):
    """A parcel as aiohttp sends it: taken only where it can be written."""

    _value: Parcel
    _autoclose = True

    def __init__(self, parcel: Parcel) -> None:
        super().__init__(parcel)
        self._size = parcel.size_bytes

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (self._value.data or b"").decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        transport = writer.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the server ended the connection")
        await writer.write(self._value.take())

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)


class _Answer(httpx2.AsyncByteStream):
    """The body of a response, in the pieces in which it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _read_error(error) from error
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Give the connection back, or end it where the body was not read whole. What is still being sent is not sent
        on."""
        self._response.release()
        await self._response.wait_for_close()


def _read_error(error: Exception) -> httpx2.ReadError:
    # What aiohttp says of a response that it cannot read has the whole address with it.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return httpx2.ReadError(f"{type(error).__name__}: {text}")
