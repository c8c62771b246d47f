"""A server that is spoken with over streamable HTTP: one address that the operator named, wherever it is, and no other.

The SDK follows redirects within that origin alone. Beneath it stands a transport that keeps answers within bounds and
turns what fails on the way to the server into answers with codes of its own: an exception there would end all calls of
the connection, and nobody could tell whether a request had reached anybody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2
import orjson
from mcp.client.streamable_http import streamable_http_client

from services.mcp.problems import MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

NOT_SENT = -32010
"""The request has not reached the server, or the server says that the session is over and did nothing."""
LOST = -32011
"""The request may have reached the server, and there is no answer."""
REFUSED = -32012
"""The server refused the request as such: the message has the status."""
_CONNECT_SECONDS = 15.0
_SILENCE_SECONDS = 300.0
_SESSION = "mcp-session-id"
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@asynccontextmanager
async def web_streams(url: str, headers: Mapping[str, str]) -> AsyncIterator[TransportStreams]:
    """The streams of the messages that `url` is sent and sends; every request carries `headers`."""
    client = httpx2.AsyncClient(
        transport=_Bounded(httpx2.AsyncHTTPTransport(retries=0)),
        headers={**headers, "accept-encoding": "identity", "user-agent": "rollcall"},
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
        trust_env=False,
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_BYTES) as streams:
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Carries requests; what goes wrong with a POST becomes an answer."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        try:
            response = await self._inner.handle_async_request(request)
        except _NEVER_SENT as error:
            return _instead(NOT_SENT, f"it cannot be reached: {error or type(error).__name__}")
        except httpx2.TransportError as error:
            return _instead(LOST, f"the connection broke: {error or type(error).__name__}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return _instead(LOST, "it answers compressed, which was not asked for")
        content_type = response.headers.get("content-type", "").lower()
        if response.status_code < HTTPStatus.BAD_REQUEST and not content_type.startswith("application/json"):
            return response
        return await _read(response, has_session=_SESSION in request.headers)


async def _read(response: httpx2.Response, *, has_session: bool) -> httpx2.Response:
    """`response` with its body read, which is one message or an error; an answer of our own where it is neither."""
    body = bytearray()
    try:
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MESSAGE_BYTES:
                return _instead(LOST, f"its answer is longer than {MESSAGE_BYTES} bytes")
    except httpx2.TransportError as error:
        return _instead(LOST, f"the connection broke: {error or type(error).__name__}")
    finally:
        await response.aclose()
    status = response.status_code
    if status == HTTPStatus.NOT_FOUND and has_session:
        return _instead(NOT_SENT, "the session is over")
    if status >= HTTPStatus.BAD_REQUEST and not _is_error(bytes(body)):
        return _instead(REFUSED, f"HTTP {status} {response.reason_phrase}".strip(), status)
    headers = [(name, value) for name, value in response.headers.items() if name.lower() != "transfer-encoding"]
    return httpx2.Response(status, headers=headers, content=bytes(body))


def _is_error(body: bytes) -> bool:
    """Whether `body` is an error as the protocol has it."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(message, dict) and isinstance(message.get("error"), dict)


def _instead(code: int, message: str, status: int = HTTPStatus.BAD_GATEWAY) -> httpx2.Response:
    """An answer in the server's place."""
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})
