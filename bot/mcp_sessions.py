"""What programs have open over HTTP: it ends when the token by which they came is withdrawn."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anyio
from mcp.server.context import ServerRequestContext
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION = "mcp-session-id"
_GONE = "rollcall.mcp_gone"
_SESSIONS_KEPT = 1024
"""Many times as many as are open at once: nobody tells of those that were idle for too long."""


class Credential(NamedTuple):
    """What a request proves."""

    name: str
    token: bytes


class OpenSessions:
    """Of all programs."""

    def __init__(self) -> None:
        self._exchanges: dict[int, _Exchange] = {}
        self._sessions: OrderedDict[str, Credential] = OrderedDict()

    async def serve(
        self, by: Credential, app: ASGIApp, refusal: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let `app` answer. Where what proves the request is withdrawn meanwhile, the answer ends where it is; had it
        not begun, it is `refusal`."""
        exchange = _Exchange(by, send)
        self._exchanges[id(exchange)] = exchange
        try:
            with exchange.running:
                await app({**scope, _GONE: exchange.gone}, receive, lambda message: self._pass_on(exchange, message))
        finally:
            exchange.gone.set()
            del self._exchanges[id(exchange)]
        if not exchange.running.cancelled_caught:
            return
        if not exchange.has_begun:
            await refusal(scope, receive, send)
        elif not exchange.has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def forget(self, session: str) -> None:
        """It has ended."""
        self._sessions.pop(session, None)

    def withdraw(self, those: Collection[Credential]) -> list[tuple[str, Credential]]:
        """End what is being answered to them. Returns the sessions that they began, which are to be ended too."""
        for exchange in self._exchanges.values():
            if exchange.by in those:
                exchange.running.cancel()
        begun = [(session, by) for session, by in self._sessions.items() if by in those]
        for session, _ in begun:
            self.forget(session)
        return begun

    async def _pass_on(self, exchange: _Exchange, message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.has_begun = True
            session = Headers(raw=message["headers"]).get(SESSION, "")
            if session and message["status"] < 400:
                self._began(session, exchange.by)
        elif message["type"] == "http.response.body":
            exchange.has_ended = not message.get("more_body", False)
        await exchange.send(message)

    def _began(self, session: str, by: Credential) -> None:
        self._sessions[session] = by
        self._sessions.move_to_end(session)
        if len(self._sessions) > _SESSIONS_KEPT:
            self._sessions.popitem(last=False)


@dataclass(slots=True)
class _Exchange:
    """A request that is being answered."""

    by: Credential
    send: Send
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    has_begun: bool = False
    has_ended: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answer is at its end, or nobody reads it any more."""


def gone_from(context: ServerRequestContext[Any, Any]) -> asyncio.Event | None:
    """What is set when nobody reads the answer to a request any more; None where no such thing is known."""
    scope = context.request.scope if context.request is not None else {}
    gone: asyncio.Event | None = scope.get(_GONE)
    return gone
