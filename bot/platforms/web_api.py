"""Calls over HTTP for an account, and the meaning of their failures. Texts of errors contain no URLs: those of some
networks contain tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import orjson

from bot.platforms.base import FileUnavailable, SendFailed
from bot.platforms.connection import CannotConnect
from function_calls.context import Attachment
from services.refs import JsonObject
from services.web.content import data_in

if TYPE_CHECKING:
    from starlette.requests import Request

FILE_SECONDS = 300.0
_ANSWER_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_ERRORS = (aiohttp.ClientError, OSError)


class Refused(SendFailed):
    """The network rejected a call. `status`: of HTTP. `code`: the network's name of the error; empty without one."""

    def __init__(self, words: str, status: int, *, code: str = "", retry_after: object = "", **facts: bool) -> None:
        """`retry_after`: seconds until the next call, if the answer to one above the rate limit names them. `facts`:
        parameters of SendFailed."""
        text = str(retry_after)
        seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII) else _ANSWER_SECONDS
        super().__init__(
            words,
            # 401: the token was withdrawn, which the connection reports until it is valid again.
            retryable=status in (401, 408, 429) or (status >= 500 and status != 501),
            retry_after_seconds=seconds if status == 429 else None,
            **facts,
        )
        self.status, self.code = status, code


@contextmanager
def unless(*harmless: int | str) -> Iterator[None]:
    """Ignore that a call is rejected with one of these statuses, or with one of these texts in its code, as if it had
    been done before."""
    try:
        yield
    except Refused as problem:
        words = (one for one in harmless if isinstance(one, str))
        if problem.status not in harmless and not any(one in problem.code for one in words):
            raise


class FileGone(FileUnavailable):
    """The server of a file does not provide it, or the file has no URL."""


class Answer(NamedTuple):
    """An answer to a call."""

    status: int
    headers: Mapping[str, str]
    content: Any
    """The JSON value; None if the answer is none."""


def bearer(token: str) -> dict[str, str]:
    """The header with `token`; none if it is empty."""
    return {"Authorization": f"Bearer {token}"} if token else {}


class WebApi:
    """An account's HTTP session, opened with the first call."""

    def __init__(self, network: str, url: str, headers: Mapping[str, str] | None = None) -> None:
        """`network`: in messages. `url`: start of all URLs. `headers`: of each call."""
        self._network, self.url, self._headers = network, url, headers or {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """The session. Requests without TLS, which are to this machine, use no proxy."""
        if self._session is None:
            # A session cookie could have precedence over the token.
            uses_proxy, jar = self.url.startswith("https://"), aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(trust_env=uses_proxy, cookie_jar=jar)
        return self._session

    async def call(
        self, verb: str, path: str, *, seconds: float = _ANSWER_SECONDS, has_effect: bool = True, **options: Any
    ) -> Answer:
        """The answer to a request, also one with an error. `has_effect`: without an answer the outcome is unknown.
        Raises SendFailed."""
        timeout = aiohttp.ClientTimeout(seconds, sock_connect=_CONNECT_SECONDS)
        options["headers"] = {**self._headers, **options.get("headers", {})}
        try:
            async with self.http.request(
                verb, self.url + path, timeout=timeout, allow_redirects=False, **options
            ) as response:
                body, status = await response.read(), response.status
                return Answer(status, response.headers, _json(body) if status >= 300 else orjson.loads(body or b"null"))
        except _UNSENT as error:
            words = f"{self._network} cannot be reached: {type(error).__name__}"
            raise SendFailed(words, retryable=True) from None
        except (*_ERRORS, ValueError) as error:
            words = f"{self._network} did not answer: {type(error).__name__}"
            raise SendFailed(words, retryable=True, unknown_outcome=has_effect) from None

    async def socket(
        self, path: str, greet: Callable[[aiohttp.ClientWebSocketResponse], Awaitable[None]] | None, **options: Any
    ) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket below the URL, or at the URL `path`, after `greet`. Raises CannotConnect."""
        url = path if path.startswith("ws") else self.url.replace("http", "ws", 1) + path
        socket: aiohttp.ClientWebSocketResponse | None = None
        timeout = aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                opened: aiohttp.ClientWebSocketResponse = await self.http.ws_connect(url, timeout=timeout, **options)
                socket = opened
                if greet is not None:
                    await greet(opened)
                socket = None
                return opened
        except aiohttp.WSServerHandshakeError as error:
            problem = "rejects the token" if error.status in (401, 403) else f"answers with HTTP {error.status}"
        except aiohttp.WSMessageTypeError:
            problem = "ends the connection; it may reject the token"
        except _ERRORS as error:
            problem = f"cannot be reached: {type(error).__name__}"
        except (LookupError, TypeError, ValueError, AttributeError):
            problem = "greets in an unknown form"
        finally:
            if socket is not None:
                await socket.close()
        raise CannotConnect(f"{self._network} {problem}")

    async def download(self, url: Any, max_bytes: int, headers: Mapping[str, str] | None = None) -> bytes:
        """The content of a file at `url`. `headers`: None for those of each call; other servers must not get those.
        Raises FileUnavailable."""
        headers, timeout = self._headers if headers is None else headers, aiohttp.ClientTimeout(FILE_SECONDS)
        return await content_of(self.http.get(url, headers=headers, timeout=timeout, allow_redirects=False), max_bytes)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()


def _json(body: bytes | str) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def check_path(path: str, network: str) -> None:
    """Raises SendFailed if a path has a part that is no id; members choose some of them."""
    if re.fullmatch(r"[\w/+-]+", path, re.ASCII) is None:
        raise SendFailed(f"not an id of {network}", retryable=False)


def check_size(size: int | None, max_bytes: int) -> None:
    """Raises FileUnavailable if a file is larger than `max_bytes`. `size`: None if it is not known yet."""
    if size is not None and size > max_bytes:
        raise FileUnavailable(f"the file is larger than {max_bytes:,} bytes")


async def content_of(request: Awaitable[aiohttp.ClientResponse], max_bytes: int) -> bytes:
    """The content of the answer to `request`. Raises FileUnavailable, also if it is larger than `max_bytes`: before the
    download if the server names the size, else as soon as more has arrived."""
    content = bytearray()
    try:
        async with await request as response:
            if response.status != 200:
                raise FileGone(f"its server answers {response.status}")
            while (response.content_length or 0) <= max_bytes and len(content) <= max_bytes:
                if not (chunk := await response.content.readany()):
                    return bytes(content)
                content += chunk
    except (*_ERRORS, ValueError) as error:
        raise FileGone(f"no answer of its server: {type(error).__name__}") from None
    raise FileUnavailable(f"the file is larger than {max_bytes:,} bytes")


def check_host(url: str, hosts: Collection[str]) -> None:
    """Raises FileUnavailable unless the host in `url` is one of `hosts`, the setting `file_hosts`, or below one;
    FileGone if it is no URL on the web."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not host or not url.startswith(("http://", "https://")):
        raise FileGone("the file has no URL on the web")
    if not any(f".{host}".endswith(f".{one}") for one in hosts):
        raise FileUnavailable(f"file_hosts of the network does not name {host}")


def form_with(values: Mapping[str, str], field: str, file: Attachment) -> aiohttp.FormData:
    """A form with `values`, and a file whose content is in its URL."""
    form = aiohttp.FormData(dict(values))
    form.add_field(field, data_in(file.url) or b"", filename=file.name, content_type=file.media_type or None)
    return form


async def frames_of(socket: aiohttp.ClientWebSocketResponse, heard: Callable[[], None]) -> AsyncIterator[str | bytes]:
    """What arrives at a socket without `autoping`, until it ends. Each frame, pings too, is a sign of life."""
    while True:
        frame = await socket.receive()
        heard()
        if frame.type is aiohttp.WSMsgType.PING:
            await socket.pong(frame.data)
        elif frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            yield frame.data
        elif frame.type is not aiohttp.WSMsgType.PONG:
            return


async def objects_of(socket: aiohttp.ClientWebSocketResponse, heard: Callable[[], None]) -> AsyncIterator[JsonObject]:
    """The same as JSON objects; a frame without one is the field `unreadable` of an object."""
    async for data in frames_of(socket, heard):
        yield object_in(data if isinstance(data, str) else repr(data))


async def read_body(request: Request, most_bytes: int) -> bytes | None:
    """The body of a request to a webhook; None if it is larger."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            return None
    return bytes(body)


def object_in(text: str) -> JsonObject:
    """The JSON object in `text`; a text that has none is the field `unreadable` of an object."""
    found = _json(text)
    return found if isinstance(found, dict) else {"unreadable": text}
