"""The openai package's client, which makes what all requests to a server share once, and hands them to aiohttp's pool.

Left to themselves, the package, httpx2 and aiohttp put together, copy and parse the same address and the same headers
anew for each request, and hold them and the request's body until the answer is there.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import httpx2
import openai
from multidict import CIMultiDict, istr
from yarl import URL

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from openai._models import FinalRequestOptions

_FRAMING = frozenset({"content-length", "transfer-encoding", "host"})
"""Headers that aiohttp makes itself."""
_PROXY_AUTHORIZATION = istr("Proxy-Authorization")


class Parcel(httpx2.AsyncByteStream):
    """The body of a request, let go once it is on its way: whoever waits for the answer need not hold it."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self.data: bytes | None = data
        """None when it was taken to be sent."""

    def take(self) -> bytes:
        """The bytes, which are not here any more. Raises RuntimeError when they were taken before."""
        data, self.data = self.data, None
        if data is None:
            raise RuntimeError("a request's body is sent once")
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.take()


class OpenAIClient(openai.AsyncOpenAI):
    """The package's client, for requests that are alike in all but their bodies, which are Parcels.

    Whatever the package would do anew it does for the first request. Were its method named otherwise one day, it would
    do so for each again, which is slow and right.
    """

    _first: tuple[FinalRequestOptions, httpx2.Request] | None = None

    @property
    def user_agent(self) -> str:
        """Who sends: the package, under its own name."""
        return f"{openai.AsyncOpenAI.__name__}/Python {openai.__version__}"

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        parcel = options.content
        if retries_taken or not isinstance(parcel, Parcel):
            return super()._build_request(options, retries_taken=retries_taken)
        if self._first is None or not _are_alike(options, self._first[0]):
            bare = options.model_copy(update={"content": b""})
            self._first = (bare, super()._build_request(bare))
        return _Request(self._first[1], parcel)


def _are_alike(one: FinalRequestOptions, other: FinalRequestOptions) -> bool:
    return (
        one.url == other.url
        and one.headers == other.headers
        and one.security == other.security
        and one.method == other.method
        and one.params == other.params
        and one.timeout == other.timeout
    )


class _Request(httpx2.Request):
    """A request like another, with a body of its own."""

    def __init__(self, like: httpx2.Request, parcel: Parcel) -> None:
        self.like = like
        self.method = like.method
        self.url = like.url
        self.extensions = like.extensions
        self.headers = like.headers.copy()
        self.headers["Content-Length"] = str(parcel.size_bytes)
        self.stream = parcel


class OneServerClient(httpx2.AsyncClient):
    """An httpx2 client for one server that wants no cookies and whose redirects are not followed. Proxies and
    certificates are those of the environment."""

    def _init_transport(self, **given: Any) -> httpx2.AsyncBaseTransport:
        return _pool(None, **given)

    def _init_proxy_transport(self, proxy: httpx2.Proxy, **given: Any) -> httpx2.AsyncBaseTransport:
        return _pool(proxy, **given)

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """The response, its body unread. The event hooks for responses see it first."""
        if self.is_closed:
            raise RuntimeError("the client was closed")
        response = await self._transport_for_url(request.url).handle_async_request(request)
        try:
            for hook in self.event_hooks["response"]:
                await hook(response)
        except BaseException:
            await response.aclose()
            raise
        return response


def _pool(
    proxy: httpx2.Proxy | None, *, verify: Any, cert: Any, trust_env: bool, limits: httpx2.Limits, **_: Any
) -> Pool:
    return Pool(httpx2.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env), limits, proxy)


class _Usual:
    """What aiohttp is told of all requests that are like one."""

    def __init__(self, like: httpx2.Request, proxy: httpx2.Proxy | None) -> None:
        self.like = like
        self.url = URL(str(like.url), encoded=True)
        pairs = ((name.decode("ascii"), value.decode("latin-1")) for name, value in like.headers.raw)
        self.headers = CIMultiDict((istr(name), value) for name, value in pairs if name.lower() not in _FRAMING)
        self.timeout = aiohttp.ClientTimeout(sock_connect=like.extensions.get("timeout", {}).get("connect"))
        self.proxy = None if proxy is None else URL(str(proxy.url))
        self.proxy_headers: CIMultiDict[str] | None = None
        if proxy is not None and proxy.auth is not None:
            # Told to the proxy itself, which for https is asked for a tunnel first.
            own = self.headers if self.url.scheme == "http" else CIMultiDict[str]()
            own[_PROXY_AUTHORIZATION] = aiohttp.encode_basic_auth(*proxy.auth)
            self.proxy_headers = None if own is self.headers else own


class Pool(httpx2.AsyncBaseTransport):
    """aiohttp's connections to a server, under httpx2."""

    def __init__(self, ssl_context: ssl.SSLContext, limits: httpx2.Limits, proxy: httpx2.Proxy | None = None) -> None:
        self._ssl_context = ssl_context
        self._limits = limits
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._usual: _Usual | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to `request`, its body unread. Raises what httpx2 has for connections that fail."""
        usual, parcel = self._usual_for(request), await _parcel_of(request)
        try:
            response = await self._asked(request.method, usual, parcel)
        except aiohttp.ConnectionTimeoutError as error:
            raise httpx2.ConnectTimeout(str(error), request=request) from error
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except (aiohttp.ClientError, OSError) as error:
            raise httpx2.ReadError(f"{type(error).__name__}: {error}", request=request) from error
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Answer(response), request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _asked(self, method: str, usual: _Usual, parcel: Parcel) -> aiohttp.ClientResponse:
        try:
            return await self._ask(method, usual, parcel)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise
        except aiohttp.ClientConnectionError:
            if parcel.data is None:
                raise
            # The server had closed a connection that was kept; nothing was sent over it.
            return await self._ask(method, usual, parcel)

    async def _ask(self, method: str, usual: _Usual, parcel: Parcel) -> aiohttp.ClientResponse:
        session = self._session = self._session or self._open()
        return await session.request(
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
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    def _usual_for(self, request: httpx2.Request) -> _Usual:
        like = request.like if isinstance(request, _Request) else request
        if self._usual is None or self._usual.like is not like:
            self._usual = _Usual(like, self._proxy)
        return self._usual


async def _parcel_of(request: httpx2.Request) -> Parcel:
    stream = request.stream
    return stream if isinstance(stream, Parcel) else Parcel(await request.aread())


class _Payload(aiohttp.Payload):
    """A parcel as aiohttp sends it."""

    _autoclose = True

    def __init__(self, parcel: Parcel) -> None:
        super().__init__(parcel, content_type="application/json")
        self._size = parcel.size_bytes

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return cast(Parcel, self._value).take().decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        transport = writer.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the server closed the connection")
        await writer.write(cast(Parcel, self._value).take())

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)


class _Answer(httpx2.AsyncByteStream):
    """The body of a response, in the pieces that come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise httpx2.ReadError(f"{type(error).__name__}: {error}") from error
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Give the connection back, or end it where the body was not read whole."""
        self._response.release()
