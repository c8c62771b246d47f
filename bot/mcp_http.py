"""The MCP server on the web app: known programs alone, bounded sessions, and an end that tells them."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence

import structlog
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.direct_calls import DirectCalls
from bot.mcp_callers import McpCaller, program
from bot.mcp_logs import into_our_log
from bot.mcp_server import MOST_SESSIONS, Context, McpServer
from config.mcp_serve import McpClientSettings, McpServeSettings
from config.texts import Phrases

MOST_BODY_BYTES = 1024 * 1024
_IDLE_SECONDS = 15 * 60.0
_DRAIN_SECONDS = 3.0
_CALLER = "rollcall.mcp_caller"
_CHALLENGE = {"www-authenticate": 'Bearer realm="rollcall"'}
_log = structlog.get_logger("mcp")


class McpHttp:
    """Serves the programs of the settings on one path of the web app, which guards it against strangers' pages."""

    def __init__(self, settings: McpServeSettings, calls: DirectCalls, texts: Phrases, bot_name: str) -> None:
        self._path = settings.path
        self._programs = [_Program(client, program(client, calls.chats)) for client in settings.clients]
        self.server = McpServer(calls, _caller_of, texts, bot_name)
        self._sessions = StreamableHTTPSessionManager(
            self.server.server,
            max_request_body_size=MOST_BODY_BYTES,
            session_idle_timeout=_IDLE_SECONDS,
            max_sessions=MOST_SESSIONS,
        )
        self._ending = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @property
    def routes(self) -> Sequence[Route]:
        """For the web app."""
        return [Route(self._path, endpoint=_Door(self))]

    async def start(self) -> None:
        """Return when requests can be answered."""
        into_our_log()
        ready = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(ready), name="mcp over http")
        await ready.wait()

    def end(self) -> None:
        """Take nothing more, let what runs come to its end within three seconds, and then end every stream."""
        self._ending.set()

    async def closed(self) -> None:
        """Return when that is done."""
        if self._serving is not None:
            await self._serving

    async def _serve(self, ready: asyncio.Event) -> None:
        async with self._sessions.run():
            ready.set()
            await self._ending.wait()
            await self.server.drain(_DRAIN_SECONDS)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Who is not known is told so before anything of it is read."""
        headers = Headers(scope=scope)
        known = self._known(headers.getlist("authorization"))
        if known is None:
            text = "this needs the header `Authorization: Bearer <token>` with a token of mcp.serve.clients"
            await _refusal(401, "unauthorized", text, _CHALLENGE)(scope, receive, send)
            return
        if self._ending.is_set():
            await _refusal(503, "unavailable", "the bot is stopping", {"retry-after": "5"})(scope, receive, send)
            return
        # The library gives a session to nobody but the one who began it.
        token = AccessToken(token="", client_id=known.name, scopes=[])
        inner = {**scope, "user": AuthenticatedUser(token), _CALLER: known.caller}
        await self._sessions.handle_request(inner, receive, send)
        if scope["method"] == "DELETE":
            self.server.forget(headers.get("mcp-session-id", ""))

    def _known(self, given: Sequence[str]) -> _Program | None:
        """The program with that token. All are compared, so that the time tells nothing."""
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        offered = token.strip().encode()
        found = None
        for one in self._programs:
            if hmac.compare_digest(offered, one.token):
                found = one
        return found if scheme.lower() == "bearer" else None


class _Program:
    """One entry of the settings."""

    __slots__ = ("caller", "name", "token")

    def __init__(self, client: McpClientSettings, caller: McpCaller) -> None:
        self.name = client.name
        self.caller = caller
        self.token = client.token.get_secret_value().encode()


class _Door:
    """An ASGI app: the route takes every method, and the library refuses those that it does not know."""

    def __init__(self, http: McpHttp) -> None:
        self._http = http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._http.answer(scope, receive, send)


def _caller_of(context: Context) -> McpCaller:
    request = context.request
    if request is None:
        raise RuntimeError("a request over HTTP that the library gives without its scope")
    caller: McpCaller = request.scope[_CALLER]
    return caller


def _refusal(status: int, code: str, message: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
