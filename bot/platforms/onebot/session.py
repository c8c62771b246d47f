"""Settings of OneBot v11, and the WebSocket to an implementation, dialled or accepted: calls, and events in order."""

from __future__ import annotations

import asyncio
import hmac
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import structlog
from aiohttp import web
from pydantic import AfterValidator, Field, SecretStr, field_validator
from pydantic import ValidationInfo as Info

from bot.platforms.base import SendFailed
from bot.platforms.connection import CannotConnect
from bot.platforms.web_api import WebApi, bearer
from config.sections.networks import NetworkSettings
from config.terms import SHORTEST_TOKEN, Count, Word, described_matching, is_loopback, settings_error
from services.refs import JsonObject

CALL_SECONDS = 30.0
_CLOSE_SECONDS = 2.0
_LISTEN_SECONDS = 30.0
_FRAME_BYTES = 50 * 1024 * 1024
"""Limit of NapCat and LLOneBot."""
_MOST_EVENTS = 2000
"""Limit of queued events; beyond it, reading stops."""
_DONE = (0, 1)
"""`retcode` of a call that was executed or queued."""
_BAD_TOKEN = 1403
_ELSEWHERE = "without TLS, others on the network could read the token and all messages"
_log = structlog.get_logger("onebot")


def _websocket_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("ws", "wss") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if url and (not is_url or "@" in parts.netloc or parts.query or parts.fragment):
        raise settings_error("has to be ws(s)://host:port/path without user and query; the token is access_token")
    if url and parts.scheme == "ws" and not is_loopback(parts.hostname or ""):
        raise settings_error(f"has to be wss:// for another machine: {_ELSEWHERE}")
    return url


def _local(host: str) -> str:
    if not is_loopback(host):
        raise settings_error(f"has to be a loopback address such as 127.0.0.1: {_ELSEWHERE}; use url, or a proxy")
    return host


class OneBotSettings(NetworkSettings):
    """One account, by its OneBot v11 implementation. Either `url` or `port` is needed."""

    url: Annotated[str, AfterValidator(_websocket_url)] = ""
    """WebSocket server of the implementation, such as `ws://127.0.0.1:3001`, to which the bot connects."""
    host: Annotated[str, AfterValidator(_local)] = "127.0.0.1"
    """Address of the bot's own WebSocket server, with `port`."""
    port: Count = Field(default=0, ge=0, le=65_535)
    """Port of the bot's own WebSocket server, to which the implementation connects. 0: none."""
    access_token: SecretStr = SecretStr("")
    """Token that is also set in the implementation; preferably a reference to the environment. Needed with `port`."""
    self_id: Annotated[str, *described_matching(r"[^\s]{0,64}", "has to be one word, such as a QQ number")] = ""
    """The bot's own id, such as its QQ number; other accounts are rejected. Empty: any."""
    accept_invitations: bool = False
    """Whether invitations to groups are accepted. The bot leaves groups that `chats.allow` does not name."""
    file_hosts: tuple[Word, ...] = Field(default=("qq.com", "qq.com.cn", "qpic.cn"), max_length=50)
    """Hosts, with their subdomains, from which files in messages may be downloaded."""

    @field_validator("port")
    @classmethod
    def _one_direction(cls, port: int, info: Info) -> int:
        if "url" in info.data and bool(port) == bool(info.data["url"]):
            raise settings_error("or url is needed, and not both")
        return port

    @field_validator("access_token")
    @classmethod
    def _long_enough(cls, token: SecretStr, info: Info) -> SecretStr:
        if not token.get_secret_value().isascii() or not token.get_secret_value().isprintable():
            raise settings_error("must hold only visible ASCII characters")
        if info.data.get("port") and len(token.get_secret_value()) < SHORTEST_TOKEN:
            raise settings_error(f"needs at least {SHORTEST_TOKEN} characters with port, because it admits others")
        return token


class CallFailed(SendFailed):
    """The implementation rejected a call. Retryable unless its form, its rights or the action itself is the reason."""

    def __init__(self, action: str, retcode: int) -> None:
        is_invalid = 400 <= retcode < 500 or 1400 <= retcode < 1500 or 10_000 <= retcode < 20_000
        super().__init__(f"{action} failed with retcode {retcode}", retryable=not is_invalid)
        self.retcode = retcode


class Session:
    """One connection. It is read until it ends, because answers and events share it."""

    def __init__(self, socket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse, heard: Callable[[], None]):
        """`heard`: called for each frame."""
        self.ended = asyncio.Event()
        self.on_end: Callable[[], None] = lambda: None
        self.is_rejected = False
        """The implementation has rejected the token."""
        self._socket = socket
        self._heard = heard
        self._events: asyncio.Queue[str | None] = asyncio.Queue(_MOST_EVENTS)
        self._takes_events = True
        self._calls: dict[str, asyncio.Future[JsonObject]] = {}
        self._numbers = itertools.count(1)
        self._reading = asyncio.create_task(self._read())

    @property
    def is_full(self) -> bool:
        """Whether answers are not read until events are taken."""
        return self._events.full()

    async def event(self) -> str | None:
        """The next event, as JSON, or any other text that is no answer; None after the last."""
        return await self._events.get()

    def drop_events(self) -> None:
        """Drop queued and later events, so that they do not hold up answers."""
        self._takes_events = False
        while not self._events.empty():
            self._events.get_nowait()

    async def call(self, action: str, seconds: float = CALL_SECONDS, /, **params: Any) -> Any:
        """The `data` of the answer. Raises CallFailed, and SendFailed without an answer, also after `seconds`."""
        if self.ended.is_set():
            raise SendFailed("the connection has ended", retryable=True)
        echo = str(next(self._numbers))
        answer = self._calls[echo] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._socket.send_str(orjson.dumps({"action": action, "params": params, "echo": echo}).decode())
                found = await answer
        except TimeoutError:
            raise SendFailed(f"{action} has no answer", retryable=True, unknown_outcome=True) from None
        except (ConnectionError, aiohttp.ClientError):
            raise SendFailed("the connection has ended", retryable=True) from None
        finally:
            del self._calls[echo]
        if found.get("status") == "failed" or found.get("retcode") not in _DONE:
            raise CallFailed(action, int(found.get("retcode") or 0))
        return found.get("data")

    async def close(self) -> None:
        """Close the connection. Calls without an answer raise SendFailed."""
        self.drop_events()
        with suppress(ConnectionError, aiohttp.ClientError):
            await self._socket.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for frame in self._socket:
                self._heard()
                if isinstance(frame.data, str):
                    await self._take(frame.data)
        finally:
            self.ended.set()
            self.on_end()
            for answer in self._calls.values():
                if not answer.done():
                    answer.set_exception(TimeoutError())
            await self._events.put(None)

    async def _take(self, data: str) -> None:
        try:
            message = orjson.loads(data)
        except ValueError:
            message = None
        if isinstance(message, dict) and "post_type" not in message:
            answer = self._calls.get(str(message.get("echo")))
            if answer is not None and not answer.done():
                answer.set_result(message)
            elif message.get("retcode") == _BAD_TOKEN:
                self.is_rejected = True
        elif self._takes_events:
            await self._events.put(data)


class Dialling:
    """Forward WebSocket: connects to the implementation."""

    def __init__(self, settings: OneBotSettings, heard: Callable[[], None]) -> None:
        """`heard`: called for each frame."""
        self._settings = settings
        self._heard = heard
        self._web = WebApi(settings.url, settings.url)
        self.close = self._web.close

    async def open(self) -> Session:
        """A new connection. Raises CannotConnect."""
        headers = bearer(self._settings.access_token.get_secret_value())
        socket = await self._web.socket(self._settings.url, None, headers=headers, max_msg_size=_FRAME_BYTES)
        return Session(socket, self._heard)


class Listening:
    """Reverse WebSocket: accepts connections of the implementation. A new one replaces the one before."""

    def __init__(self, settings: OneBotSettings, heard: Callable[[], None]) -> None:
        """`heard`: called for each frame, and while a connection is awaited."""
        self._settings = settings
        self._heard = heard
        self._runner: web.AppRunner | None = None
        self._newest: Session | None = None
        self._arrived = asyncio.Event()

    async def open(self) -> Session:
        """The newest connection, as soon as there is one. Raises CannotConnect if the port cannot be opened."""
        if self._runner is None:
            self._runner = await self._listening()
        while self._newest is None or self._newest.ended.is_set():
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LISTEN_SECONDS):
                    await self._arrived.wait()
            self._heard()
        return self._newest

    async def close(self) -> None:
        """Close the port and the newest connection."""
        if self._newest is not None:
            await self._newest.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _listening(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._accept)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        except OSError as error:
            await runner.cleanup()
            raise CannotConnect(f"port {self._settings.port} cannot be opened: {error.strerror}") from None
        return runner

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        self_id = request.headers.get("X-Self-ID", "")
        has_token = _same(
            request.headers.get("Authorization", ""), f"Bearer {self._settings.access_token.get_secret_value()}"
        )
        is_account = _same(self_id, self._settings.self_id or self_id)
        if not (has_token and is_account and self_id):
            _log.warning("onebot_rejected", account=self._settings.account, has_token=has_token, self_id=self_id[:64])
            raise web.HTTPUnauthorized
        if request.headers.get("X-Client-Role", "Universal").lower() != "universal":
            raise web.HTTPBadRequest(text="Configure one connection for both API and events (Universal).")
        socket = web.WebSocketResponse(max_msg_size=_FRAME_BYTES, timeout=_CLOSE_SECONDS)
        await socket.prepare(request)
        session, before = Session(socket, self._heard), self._newest
        self._newest = session
        self._arrived.set()
        if before is not None:
            await before.close()
        await session.ended.wait()
        return socket


def _same(header: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(header.encode("utf-8", "surrogateescape"), expected.encode())
