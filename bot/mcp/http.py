"""The MCP server over HTTP: known clients only, bounded sessions."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from bot.chats.chats import Chats
from bot.direct_calls import DirectCalls
from bot.mcp.callers import McpCaller, into_our_log, program
from bot.mcp.server import MOST_SESSIONS, SESSION, Context, Credential, McpServer, OpenSessions
from config.sections.mcp import McpClientSettings
from config.texts import Phrases
from services.knowledge import KnowledgeBases

MOST_BODY_BYTES = 1024 * 1024
_IDLE_SECONDS = 15 * 60.0
_DRAIN_SECONDS = 3.0
_CALLER = "rollcall.mcp_caller"
_CHALLENGE = {"www-authenticate": 'Bearer realm="rollcall"'}
_log = structlog.get_logger("mcp")


class McpHttp:
    """Serves the configured programs on one path of the web application, which protects it against foreign origins."""

    def __init__(
        self,
        path: str,
        clients: Sequence[McpClientSettings],
        calls: DirectCalls,
        knowledge: KnowledgeBases,
        texts: Phrases,
        bot_name: str,
    ) -> None:
        self._path = path
        self._chats = calls.chats
        self._programs = _programs(clients, calls.chats)
        self.server = McpServer(calls, knowledge, _caller_of, texts, bot_name)
        self._sessions = StreamableHTTPSessionManager(
            self.server.server,
            max_request_body_size=MOST_BODY_BYTES,
            session_idle_timeout=_IDLE_SECONDS,
            max_sessions=MOST_SESSIONS,
        )
        self._open = OpenSessions()
        self._ending = asyncio.Event()
        self._withdrawing: set[asyncio.Task[None]] = set()
        self._serving: asyncio.Task[None] | None = None

    @property
    def routes(self) -> Sequence[Route]:
        """The routes for the web application."""
        # As an app, since a function would be called for GET alone, and the SDK rejects unknown methods itself.
        return [Route(self._path, endpoint=self)]

    async def start(self) -> None:
        """Start, and return when requests can be answered."""
        into_our_log()
        ready = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(ready), name="mcp over http")
        await ready.wait()

    def use(self, clients: Sequence[McpClientSettings]) -> None:
        """Replace the programs from the next request on. Requests and sessions with withdrawn tokens are ended. Call it
        on the event loop."""
        before = {one.credential for one in self._programs}
        self._programs = _programs(clients, self._chats)
        sessions = self._open.withdraw(before - {one.credential for one in self._programs})
        if self._serving is None or self._ending.is_set():
            return
        if sessions:
            task = asyncio.create_task(self._end_sessions(sessions), name="sessions of withdrawn programs")
            self._withdrawing.add(task)
            task.add_done_callback(self._withdrawing.discard)
        # The functions that a program may call may have changed.
        self.server.functions_changed()

    def end(self) -> None:
        """Reject new requests, wait up to three seconds for running calls, then end every stream."""
        self._ending.set()

    async def closed(self) -> None:
        """Return when the shutdown is complete."""
        if self._serving is not None:
            await self._serving

    async def _serve(self, ready: asyncio.Event) -> None:
        async with self._sessions.run():
            ready.set()
            await self._ending.wait()
            await asyncio.gather(self.server.drain(_DRAIN_SECONDS), *self._withdrawing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. An unauthenticated one is rejected before its body is read."""
        headers = Headers(scope=scope)
        known = self._known(headers.getlist("authorization"))
        if known is None:
            await _stranger()(scope, receive, send)
            return
        if self._ending.is_set():
            await _refusal(503, "unavailable", "the bot is stopping", {"retry-after": "5"})(scope, receive, send)
            return
        inner = {**scope, "user": _user(known.credential), _CALLER: known.caller}
        await self._open.serve(known.credential, self._sessions.handle_request, _stranger(), inner, receive, send)
        if scope["method"] == "DELETE":
            self._forget(headers.get(SESSION, ""))
        await self._end_sessions(self._open.beyond_share(known.credential))

    async def _end_sessions(self, sessions: Sequence[tuple[str, Credential]]) -> None:
        """End the sessions as if their programs had done it."""
        for session, by in sessions:
            headers = [(SESSION.encode(), session.encode()), (b"accept", b"application/json")]
            request = {"type": "http", "method": "DELETE", "path": self._path, "query_string": b"", "headers": headers}
            await self._sessions.handle_request({**request, "user": _user(by)}, _nothing, _unheard)
            self._forget(session)

    def _forget(self, session: str) -> None:
        self._open.forget(session)
        self.server.forget(session)

    def _known(self, tokens: Sequence[str]) -> _Program | None:
        """The program whose token is in the Authorization header; None without exactly one valid header. All tokens are
        compared in constant time."""
        scheme, _, token = (tokens[0] if len(tokens) == 1 else "").partition(" ")
        offered = token.strip().encode()
        found = None
        for one in self._programs:
            if hmac.compare_digest(offered, one.credential.token):
                found = one
        return found if scheme.lower() == "bearer" else None


class _Program(NamedTuple):
    """One entry of the settings."""

    credential: Credential
    caller: McpCaller


def _programs(clients: Sequence[McpClientSettings], chats: Chats) -> list[_Program]:
    return [
        _Program(Credential(one.name, one.token.get_secret_value().encode()), program(one, chats)) for one in clients
    ]


def _caller_of(context: Context) -> McpCaller:
    request = context.request
    if request is None:
        raise RuntimeError("a request over HTTP that the library gives without its scope")
    caller: McpCaller = request.scope[_CALLER]
    return caller


def _user(credential: Credential) -> AuthenticatedUser:
    """The user object for the SDK, which restricts a session to the user who created it."""
    return AuthenticatedUser(AccessToken(token="", client_id=credential.name, scopes=[]))


def _stranger() -> JSONResponse:
    text = "this needs the header `Authorization: Bearer <token>` with a token of mcp.serve.clients"
    return _refusal(401, "unauthorized", text, _CHALLENGE)


async def _nothing() -> Message:
    """Receive function with an empty body."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_message: Message) -> None:
    """Send function that discards the response."""


def _refusal(status: int, code: str, message: str, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)
