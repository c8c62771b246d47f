"""The WebSocket to an implementation of OneBot, dialled or accepted: API calls, and events in order."""

from __future__ import annotations

import asyncio
import hmac
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import aiohttp
import orjson
import structlog
from aiohttp import ClientWSTimeout, web

from bot.platforms.connection import CannotConnect
from bot.platforms.onebot.adapter import OneBotSettings
from services.refs import JsonObject

CALL_SECONDS = 30.0
_DIAL_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_SIGN_OF_LIFE_SECONDS = 30.0
_FRAME_BYTES = 50 * 1024 * 1024
"""Limit of NapCat and LLOneBot."""
_MOST_EVENTS = 2000
"""Limit of queued events; beyond it, reading stops."""
_BAD_TOKEN = 1403
_log = structlog.get_logger("onebot")


class CallError(Exception):
    """The implementation rejected a call, or could not execute it."""

    def __init__(self, action: str, retcode: int) -> None:
        super().__init__(f"{action} failed with retcode {retcode}")
        self.retcode = retcode


class NotSentError(Exception):
    """The connection ended before a call was sent."""


class NoAnswerError(Exception):
    """A call was sent and has an unknown outcome."""


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

    async def event(self) -> str | None:
        """The next event, as JSON, or any other text that is no answer; None after the last."""
        return await self._events.get()

    def drop_events(self) -> None:
        """Drop queued and later events, so that they do not hold up answers."""
        self._takes_events = False
        while not self._events.empty():
            self._events.get_nowait()

    async def call(self, action: str, seconds: float = CALL_SECONDS, /, **params: Any) -> Any:
        """The `data` of the answer. Raises CallError, NotSentError, and NoAnswerError also after `seconds`."""
        if self.ended.is_set():
            raise NotSentError
        echo = str(next(self._numbers))
        answer = self._calls[echo] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._socket.send_str(orjson.dumps({"action": action, "params": params, "echo": echo}).decode())
                found = await answer
        except TimeoutError:
            raise NoAnswerError from None
        except (ConnectionError, aiohttp.ClientError) as error:
            raise NotSentError from error
        finally:
            del self._calls[echo]
        # A call that was only queued is `async` with 1.
        if found.get("status") == "failed" or found.get("retcode") not in (0, 1):
            raise CallError(action, int(found.get("retcode") or 0))
        return found.get("data")

    async def close(self) -> None:
        """Close the connection. Calls without an answer raise NoAnswerError."""
        self.drop_events()
        with suppress(ConnectionError, aiohttp.ClientError):
            await self._socket.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for frame in self._socket:
                self._heard()
                if isinstance(frame.data, str | bytes):
                    await self._take(frame.data)
        finally:
            self.ended.set()
            self.on_end()
            for answer in self._calls.values():
                if not answer.done():
                    answer.set_exception(NoAnswerError())
            await self._events.put(None)

    async def _take(self, data: str | bytes) -> None:
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
            await self._events.put(data if isinstance(data, str) else data.decode("utf-8", "replace"))


class Opener(Protocol):
    """One of the two directions of the connection."""

    async def open(self) -> Session:
        """The next connection. Raises CannotConnect."""

    async def close(self) -> None:
        """Release what `open` needs; sessions remain open."""


def opener_of(settings: OneBotSettings, heard: Callable[[], None]) -> Opener:
    """The configured direction. `heard`: called for each frame, and while a connection is awaited."""
    return Dialling(settings, heard) if settings.url else Listening(settings, heard)


class Dialling:
    """Forward WebSocket: connects to the implementation."""

    def __init__(self, settings: OneBotSettings, heard: Callable[[], None]) -> None:
        self._settings = settings
        self._heard = heard
        self._http: aiohttp.ClientSession | None = None

    async def open(self) -> Session:
        if self._http is None:
            self._http = aiohttp.ClientSession()
        token = self._settings.access_token.get_secret_value()
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                socket = await self._http.ws_connect(
                    self._settings.url,
                    headers={"Authorization": f"Bearer {token}"} if token else {},
                    max_msg_size=_FRAME_BYTES,
                    timeout=ClientWSTimeout(ws_close=_CLOSE_SECONDS),
                )
        except aiohttp.WSServerHandshakeError as error:
            why = "rejects access_token" if error.status in (401, 403) else f"answers with HTTP {error.status}"
            raise CannotConnect(f"{self._settings.url} {why}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CannotConnect(f"{self._settings.url} cannot be reached: {type(error).__name__}") from None
        return Session(socket, self._heard)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


class Listening:
    """Reverse WebSocket: accepts connections of the implementation. A new one replaces the one before."""

    def __init__(self, settings: OneBotSettings, heard: Callable[[], None]) -> None:
        self._settings = settings
        self._heard = heard
        self._runner: web.AppRunner | None = None
        self._newest: Session | None = None
        self._arrived = asyncio.Event()

    async def open(self) -> Session:
        if self._runner is None:
            await self._listen()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SIGN_OF_LIFE_SECONDS):
                    await self._arrived.wait()
            self._arrived.clear()
            self._heard()
            if self._newest is not None and not self._newest.ended.is_set():
                return self._newest

    async def close(self) -> None:
        if self._newest is not None:
            await self._newest.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _listen(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._accept)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_CLOSE_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._settings.host, self._settings.port).start()
        except OSError as error:
            await runner.cleanup()
            raise CannotConnect(f"port {self._settings.port} cannot be opened: {error.strerror}") from None
        self._runner = runner

    async def _accept(self, request: web.Request) -> web.StreamResponse:
        expected = f"Bearer {self._settings.access_token.get_secret_value()}"
        headers = request.headers
        has_token = hmac.compare_digest(_bytes(headers.get("Authorization", "")), _bytes(expected))
        self_id = headers.get("X-Self-ID", "")
        is_account = hmac.compare_digest(_bytes(self_id), _bytes(self._settings.self_id or self_id))
        if not (has_token & is_account & bool(self_id)):
            _log.warning("onebot_rejected", account=self._settings.account, token=has_token, self_id=self_id[:64])
            raise web.HTTPUnauthorized
        if headers.get("X-Client-Role", "Universal").lower() != "universal":
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


def _bytes(header: str) -> bytes:
    return header.encode("utf-8", "surrogateescape")
