"""MCP servers over streamable HTTP, at the address in the settings, private networks included.

The SDK follows redirects only within that origin. The custom transport limits response sizes and turns transport errors
into responses with special codes: an exception would end every call of the connection and hide whether the request was
sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2
import orjson
from mcp.client.streamable_http import streamable_http_client

from services.mcp.login import LoginFailed
from services.mcp.problems import MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

NOT_SENT = -32010
"""The request did not reach the server, or the server rejected it because the session is over."""
LOST = -32011
"""The request may have reached the server, but there is no response."""
REFUSED = -32012
"""The server rejected the request itself; the message contains the status."""
LOGIN = -32013
"""The server requires a login by a person, and received nothing but the request for it."""
_CONNECT_SECONDS = 15.0
_SILENCE_SECONDS = 300.0
_SESSION = "mcp-session-id"
Authorized = Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport]
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@asynccontextmanager
async def web_streams(
    url: str, headers: Mapping[str, str], authorized: Authorized = lambda transport: transport
) -> AsyncIterator[TransportStreams]:
    """Context manager that yields the message streams for `url`; every request carries `headers`. `authorized` wraps
    the transport in one that logs in. Uses no proxies; a read times out after 300 seconds of silence."""
    client = httpx2.AsyncClient(
        transport=_Bounded(authorized(httpx2.AsyncHTTPTransport(retries=0))),
        headers={**headers, "accept-encoding": "identity", "user-agent": "rollcall"},
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
        trust_env=False,
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=MESSAGE_BYTES) as streams:
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """Transport that limits responses to POST requests and turns their errors into JSON-RPC error responses with the
    codes NOT_SENT, LOST or REFUSED."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return await self._inner.handle_async_request(request)
        try:
            response = await self._inner.handle_async_request(request)
        except LoginFailed as error:
            return _error_response(LOGIN, str(error))
        except _NEVER_SENT as error:
            return _error_response(NOT_SENT, f"it cannot be reached: {error or type(error).__name__}")
        except httpx2.TransportError as error:
            return _error_response(LOST, f"the connection broke: {error or type(error).__name__}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return _error_response(LOST, "it answers compressed, which was not asked for")
        content_type = response.headers.get("content-type", "").lower()
        if response.status_code < HTTPStatus.BAD_REQUEST and not content_type.startswith("application/json"):
            return response
        return await _read(response, has_session=_SESSION in request.headers)


async def _read(response: httpx2.Response, *, has_session: bool) -> httpx2.Response:
    """`response` with its whole body, a message or an error; a substitute response with an error code for HTTP errors,
    too long bodies and broken connections."""
    body = bytearray()
    try:
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MESSAGE_BYTES:
                return _error_response(LOST, f"its answer is longer than {MESSAGE_BYTES} bytes")
    except httpx2.TransportError as error:
        return _error_response(LOST, f"the connection broke: {error or type(error).__name__}")
    finally:
        await response.aclose()
    status = response.status_code
    if status == HTTPStatus.NOT_FOUND and has_session:
        return _error_response(NOT_SENT, "the session is over")
    if status >= HTTPStatus.BAD_REQUEST and not _is_error(bytes(body)):
        return _error_response(REFUSED, f"HTTP {status} {response.reason_phrase}".strip(), status)
    headers = [(name, value) for name, value in response.headers.items() if name.lower() != "transfer-encoding"]
    return httpx2.Response(status, headers=headers, content=bytes(body))


def _is_error(body: bytes) -> bool:
    """Whether `body` is a JSON-RPC error."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(message, dict) and isinstance(message.get("error"), dict)


def _error_response(code: int, message: str, status: int = HTTPStatus.BAD_GATEWAY) -> httpx2.Response:
    """Substitute for the server's response: a JSON-RPC error with `code` and `message`."""
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})
