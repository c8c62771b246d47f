"""HTTP transport to providers: the openai package's client over an aiohttp connection pool."""

from __future__ import annotations

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import httpx2
import openai
from multidict import CIMultiDict
from yarl import URL

from services.clock import Clock
from services.llm.errors import error_of_status
from services.llm.model import ModelError
from services.llm.profile import Endpoint
from services.llm.reading.answers import MAX_BODY_BYTES
from services.refs import ErrorCode

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from openai._models import FinalRequestOptions


class RequestBody(httpx2.AsyncByteStream):
    """Request body that is released once it is sent, so that waiting for the answer does not hold it."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self.data: bytes | None = data
        """None once the body was taken."""

    def take(self) -> bytes:
        """Return and release the bytes. Raises RuntimeError the second time."""
        data, self.data = self.data, None
        if data is None:
            raise RuntimeError("a request's body is sent once")
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.take()


class RequestCopy(httpx2.Request):
    """Copy of a request with a different body and its Content-Length."""

    def __init__(self, like: httpx2.Request, body: RequestBody) -> None:
        self.like = like
        self.method = like.method
        self.url = like.url
        self.extensions = like.extensions
        self.headers = like.headers.copy()
        self.headers["Content-Length"] = str(body.size_bytes)
        self.stream = body


class OpenAIClient(openai.AsyncOpenAI):
    """The package's client with a cached request for calls that differ only in their RequestBody bodies.

    It overrides private methods. If a new version stops calling them, requests are built each time: slower but correct.
    """

    _first: tuple[FinalRequestOptions, httpx2.Request] | None = None

    @property
    def user_agent(self) -> str:
        """The package's user agent instead of this subclass's name."""
        return f"{openai.AsyncOpenAI.__name__}/Python {openai.__version__}"

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        body = options.content
        if retries_taken or not isinstance(body, RequestBody):
            return super()._build_request(options, retries_taken=retries_taken)
        if self._first is None or not _are_equal_requests(options, self._first[0]):
            bare = options.model_copy(update={"content": b""})
            self._first = (bare, super()._build_request(bare))
        return RequestCopy(self._first[1], body)

    async def _send_request(self, request: httpx2.Request, *, stream: bool, **more: Any) -> httpx2.Response:
        # The package's version checks other authentication methods in five nested coroutines, which every waiting turn
        # would hold.
        return await self._client.send(request, stream=stream, **more)


def _are_equal_requests(one: FinalRequestOptions, other: FinalRequestOptions) -> bool:
    return (
        one.url == other.url
        and one.headers == other.headers
        and one.timeout == other.timeout
        and one.security == other.security
        and one.params == other.params
        and one.method == other.method
    )


_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Headers that aiohttp sets itself."""


class OneServerClient(httpx2.AsyncClient):
    """HTTP client for one server, without cookies and redirects. Proxies and certificates come from the environment."""

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send the request and run the response hooks; the body is not read, and an error of a hook closes the
        response. Raises httpx2's connection errors and exceptions of hooks."""
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

    def _init_transport(self, *_: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        return _pool(None, **options)

    def _init_proxy_transport(self, proxy: httpx2.Proxy, *_: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        return _pool(proxy, **options)


def _pool(
    proxy: httpx2.Proxy | None, *, verify: Any, cert: Any, trust_env: bool, limits: httpx2.Limits, **_: Any
) -> Pool:
    named = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")) if trust_env else (None, None)
    return Pool(partial(_ssl_context, verify, cert, trust_env, named), limits, proxy)


@cache  # loading certificates takes 50 ms, per model and proxy
def _ssl_context(verify: Any, cert: Any, trust_env: bool, _named: tuple[str | None, ...]) -> ssl.SSLContext:
    return httpx2.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)


class Pool(httpx2.AsyncBaseTransport):
    """Connection pool with keep-alive, direct or through a proxy, opened with the first request. A request is sent
    again if a reused connection was closed before it was sent."""

    def __init__(
        self, ssl_context: Callable[[], ssl.SSLContext], limits: httpx2.Limits, proxy: httpx2.Proxy | None
    ) -> None:
        """`ssl_context` is called for the first TLS connection."""
        self._ssl_context = ssl_context
        self._limits = limits
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._usual: _RequestArguments | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the body of the response is not read. Raises httpx2's connection errors."""
        usual, body = self._arguments_for(request), await _body_of(request)
        try:
            response = await self._ask(request.method, usual, body)
        except aiohttp.ConnectionTimeoutError as error:
            raise httpx2.ConnectTimeout(str(error), request=request) from error
        except aiohttp.ClientConnectorError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # ValueError: an address or header that cannot be sent.
            raise _read_error(error) from error
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Answer(response), request=request)

    async def aclose(self) -> None:
        """Close all connections; the next request opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, method: str, usual: _RequestArguments, body: RequestBody) -> aiohttp.ClientResponse:
        try:
            return await self._ask_once(method, usual, body)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise
        except aiohttp.ClientConnectionError:
            if body.data is None or self._session is None:
                raise
        # The connection, usually a reused one, was closed before anything was sent.
        return await self._ask_once(method, usual, body)

    async def _ask_once(self, method: str, usual: _RequestArguments, body: RequestBody) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = self._open(usual)
        return await self._session.request(
            method,
            usual.url,
            headers=usual.headers,
            data=_Payload(body),
            timeout=usual.timeout,
            allow_redirects=False,
            proxy=usual.proxy,
            proxy_headers=usual.proxy_headers,
        )

    def _open(self, usual: _RequestArguments) -> aiohttp.ClientSession:
        uses_tls = "https" in (usual.url.scheme, usual.proxy and usual.proxy.scheme)
        connector = aiohttp.TCPConnector(
            ssl=self._ssl_context() if uses_tls else True,
            limit=self._limits.max_connections or 0,
            keepalive_timeout=self._limits.keepalive_expiry,
        )
        # No decompression here: the reader limits the decompressed size.
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)

    def _arguments_for(self, request: httpx2.Request) -> _RequestArguments:
        like = request.like if isinstance(request, RequestCopy) else request
        if self._usual is None or self._usual.like is not like:
            self._usual = _RequestArguments(like, self._proxy)
        return self._usual


class _RequestArguments:
    """Arguments for aiohttp, shared by all requests that are like one request."""

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
                # Only for the proxy, in the CONNECT request.
                self.proxy_headers = CIMultiDict({"Proxy-Authorization": word})
            else:
                self.headers["Proxy-Authorization"] = word


async def _body_of(request: httpx2.Request) -> RequestBody:
    stream = request.stream
    return stream if isinstance(stream, RequestBody) else RequestBody(await request.aread())


class _Payload(aiohttp.Payload):
    """aiohttp payload that takes the body only if it can be written, so that a failed request can be repeated."""

    _value: RequestBody
    _autoclose = True

    def __init__(self, body: RequestBody) -> None:
        super().__init__(body)
        self._size = body.size_bytes

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
    """Response body in chunks as received, not decompressed. Raises httpx2.ReadError if it breaks off."""

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
        """Release the connection, or close it if the body was not fully read; stops sending the request."""
        self._response.release()
        await self._response.wait_for_close()


def _read_error(error: Exception) -> httpx2.ReadError:
    # str() of aiohttp's response errors contains the full URL.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return httpx2.ReadError(f"{type(error).__name__}: {text}")


_MAX_ERROR_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0
_SECRET_CHARS = 6
_KEEPALIVE_SECONDS = 30.0
_ENCODINGS = {"": None, "identity": None, "gzip": 47, "x-gzip": 47, "deflate": 47}
"""zlib's `wbits` per content encoding: 47 detects gzip and zlib."""


class ProviderTransport:
    """Posts to one server, with the endpoint's key and headers. Never follows redirects, so the key stays with the
    configured origin."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        profile, own_headers = endpoint.profile, {**endpoint.profile.headers, **endpoint.headers}
        key = profile.api_key.get_secret_value()
        self._silence_seconds = profile.silence_seconds
        self._clock = clock
        values = (key, *own_headers.values())
        # A shorter value may be a word.
        self._secrets = sorted((one for one in values if len(one) >= _SECRET_CHARS), key=len, reverse=True)
        # Only connecting has a separate timeout; the caller limits the whole request.
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
        self._client = OpenAIClient(
            base_url=profile.base_url,
            # The package requires a key even if the server needs none; the placeholder is not sent.
            api_key=key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=OneServerClient(
                limits=httpx2.Limits(
                    max_connections=profile.connections,
                    max_keepalive_connections=profile.connections,
                    keepalive_expiry=_KEEPALIVE_SECONDS,
                ),
                timeout=timeout,
                event_hooks={"response": [self._refuse_status]},
            ),
        )
        # The complete URL: the package would join it for each request, which takes longer than sending.
        base = self._client.base_url
        self._url = str(base.copy_with(raw_path=base.raw_path + endpoint.path.encode()))
        headers: dict[str, str | openai.Omit] = {
            "content-type": "application/json",
            "accept-encoding": "gzip, deflate",
            **own_headers,
        }
        bearer = endpoint.bearer and bool(key)
        if not bearer:
            headers.setdefault("authorization", openai.Omit())
        # All options are set, since the package would copy missing ones for each request.
        self._options: openai.RequestOptions = {
            "headers": headers,
            "security": {"bearer_auth": bearer},
            "timeout": timeout,
            "max_retries": 0,
            "params": {"api-version": profile.api_version} if profile.api_version else {},
        }

    @staticmethod
    def packed(body: bytes) -> RequestBody:
        """Wrap `body` so that it is released once it is sent, unless the caller keeps a reference."""
        return RequestBody(body)

    async def post(self, body: RequestBody) -> tuple[int, Mapping[str, str], bytes]:
        """POST `body`; returns status, headers and at most 8 MiB and one byte of the body.

        Raises ModelError for a status other than 2xx, a failed connection (`transient`) and a body that stalls. Sets no
        timeout for the whole request."""
        try:
            # `stream` leaves the body unread, so that its size can be limited.
            response = await self._client.post(
                self._url, cast_to=httpx2.Response, content=body, options=self._options, stream=True
            )
            try:
                return (
                    response.status_code,
                    response.headers,
                    await _read(response, MAX_BODY_BYTES, self._silence_seconds),
                )
            finally:
                await response.aclose()
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise self._connection_error(error) from error
        except openai.OpenAIError as error:
            raise ModelError(ErrorCode.PROVIDER_ERROR, self._without_secrets(str(error))) from None

    async def close(self) -> None:
        """Close all connections; it cannot be used afterwards."""
        await self._client.close()

    async def _refuse_status(self, response: httpx2.Response) -> None:
        """Response hook that raises ModelError for an error status. The package would read its whole body."""
        if response.is_success:
            return
        body = await _read(response, _MAX_ERROR_BYTES, self._silence_seconds)
        text = self._without_secrets(body.decode("utf-8", "replace"))
        raise error_of_status(response.status_code, response.headers, text.encode(), self._clock.now())

    def _connection_error(self, error: Exception) -> ModelError:
        reason = error.__cause__ or error
        text = self._without_secrets(f"{type(reason).__name__}: {reason}")
        return ModelError(ErrorCode.TRANSIENT, f"the connection to the provider failed: {text}", retryable=True)

    def _without_secrets(self, text: str) -> str:
        """`text` with the API key and the values of configured headers replaced by `***`: some gateways quote them in
        errors."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


async def _read(response: httpx2.Response, most_bytes: int, silence_seconds: float) -> bytes:
    """Read the decompressed body, or its first `most_bytes` + 1 if it is longer. Decompression is incremental here,
    because a chunk can expand a thousandfold. Raises ModelError for a body that stalls, breaks off or has an unexpected
    encoding."""
    unpack = _unpacker(response.headers.get("content-encoding", ""))
    parts: list[bytes] = []
    missing = most_bytes + 1
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(silence_seconds) as silence:
            # The raw stream: httpx2 would wrap it twice.
            async for piece in cast(httpx2.AsyncByteStream, response.stream):
                silence.reschedule(loop.time() + silence_seconds)
                part = piece[:missing] if unpack is None else unpack.decompress(piece, missing)
                parts.append(part)
                missing -= len(part)
                if missing <= 0:
                    break
    except TimeoutError:
        text = f"the provider fell silent for {silence_seconds:g} s in its answer"
        raise ModelError(ErrorCode.TIMEOUT, text, retryable=True) from None
    except zlib.error as error:
        raise ModelError(ErrorCode.TRANSIENT, f"the answer cannot be unpacked: {error}", retryable=True) from error
    if unpack is not None and missing > 0 and parts and not unpack.eof:
        raise ModelError(ErrorCode.TRANSIENT, "the packed answer breaks off", retryable=True)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    encoding = encoding.strip().lower()
    if encoding not in _ENCODINGS:
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, f"the answer is packed as {encoding[:40]!r}, unasked")
    window = _ENCODINGS[encoding]
    return None if window is None else zlib.decompressobj(window)
