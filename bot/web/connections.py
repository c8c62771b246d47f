"""Limits on connections, requests and wrong tokens, per address."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

import h11
import structlog
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from bot.web.page import Allowance
from bot.web.security import PROBE_PATHS
from services.clock import Clock

_RESERVED_FILES = 256
"""File descriptors reserved for the database, processes and networks, up to half of the limit."""
_RETRY_SECONDS = "5"
_WARN_SECONDS = 60.0
_log = structlog.get_logger("web")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits and timeouts of connections."""

    connections: int = 1000
    """Open at once; fewer if the process may open fewer files."""
    per_address: int = 100
    """Open at once from one address (in IPv6: one /64). 0: no limit. The loopback is exempt, because a reverse proxy
    there opens the connections of all its clients."""
    head_seconds: float = 10.0
    """Timeout from the first byte of a request to the end of its head."""
    body_seconds: float = 30.0
    """Timeout from the end of the head to the end of the body."""
    idle_seconds: int = 75
    """Timeout between two requests."""
    stalled_seconds: float = 30.0
    """Timeout for a client that does not read its response."""


class Client(Protocol):
    """One connection in the table."""

    client: tuple[str, int] | None
    """Address and port; None if unknown."""

    def close(self) -> None:
        """Close it at once."""


class ConnectionTable:
    """Open connections of a server. Over a limit, the connection that has waited longest without a complete request is
    closed in favour of the new one."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, min(limits.connections, most_files - min(_RESERVED_FILES, most_files // 2)))
        self._sources: dict[Client, str] = {}
        self._by_source: Counter[str] = Counter()
        self._waiting: dict[Client, None] = {}
        self._warned_at = float("-inf")

    def add(self, new: Client) -> bool:
        """Register `new`. False if it is over a limit and every other connection has an active request."""
        source = source_of(new.client)
        is_source_full = bool(source) and 0 < self.limits.per_address <= self._by_source[source]
        is_within = not is_source_full and len(self._sources) < self._most
        if not is_within:
            self._warn()
            among = (each for each in self._waiting if not is_source_full or self._sources[each] == source)
            oldest = next(among, None)
            if oldest is not None:
                self.remove(oldest)
                oldest.close()
                is_within = True
        self._sources[new] = source
        self._by_source[source] += 1
        return is_within

    def waits(self, connection: Client) -> None:
        """Mark the connection as waiting for a complete request."""
        self._waiting.pop(connection, None)
        if connection in self._sources:
            self._waiting[connection] = None

    def is_answered(self, connection: Client) -> None:
        """Mark the request as complete."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Client) -> None:
        """Remove a closed connection from the counts; unknown ones are ignored."""
        self._waiting.pop(connection, None)
        source = self._sources.pop(connection, None)
        if source is not None:
            self._by_source[source] -= 1
            if not self._by_source[source]:
                del self._by_source[source]

    def _warn(self) -> None:
        now = time.monotonic()
        if now - self._warned_at >= _WARN_SECONDS:
            self._warned_at = now
            _log.warning("too_many_connections", open=len(self._sources), sources=len(self._by_source))


class Connection(H11Protocol):
    """uvicorn's connection with deadlines."""

    def __init__(self, table: ConnectionTable, **given: Any) -> None:
        super().__init__(**given)
        self._table = table
        self._step: tuple[str, RequestResponseCycle | None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        super().connection_made(transport)
        if not self._table.add(self):
            self.app = partial(_probes_alone, self.app)
        self._follow()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._follow(is_idle=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        for timer in (self._deadline, self._unread, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        self.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self._table.limits.stalled_seconds, self.close)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def close(self) -> None:
        """Abort the connection: a client that does not read would keep it open while there is data to send."""
        self.transport.abort()

    def _follow(self, *, is_idle: bool = False) -> None:
        """Set the deadline of the current step, once per step: more bytes do not extend it."""
        limits, cycle = self._table.limits, self.cycle
        seconds = None
        if self.transport.is_closing():
            step, seconds = "closing", limits.stalled_seconds
        elif self.conn.their_state is h11.SEND_BODY:
            step, seconds = "body", limits.body_seconds
        elif cycle is not None and not cycle.response_complete:
            step = "answer"
        elif is_idle:
            step = "idle"  # uvicorn's own timer runs
        else:
            step, seconds = "head", limits.head_seconds
        if (step, cycle) == self._step:
            return
        self._step = step, cycle
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.close)
        if step == "answer":
            self._table.is_answered(self)
        else:
            self._table.waits(self)


def source_of(client: tuple[str, int] | None) -> str:
    """The network under which a client's connections are counted; empty for the loopback and if unknown."""
    if client is None:
        return ""
    address = ip_address(client[0].partition("%")[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return "" if address.is_loopback else str(int(address) >> 64)
        address = address.ipv4_mapped
    return "" if address.is_loopback else str(address)


async def _probes_alone(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request: a probe normally, any other with 503."""
    scope["headers"].append(CLOSE_HEADER)
    if scope["path"] in PROBE_PATHS:
        await app(scope, receive, send)
        return
    body = {"error": {"code": "busy", "message": "too many connections are open; try again"}}
    await JSONResponse(body, 503, {"retry-after": _RETRY_SECONDS})(scope, receive, send)


_BURST = 10
_SECONDS_EACH = 6
_SOURCES_KEPT = 10_000


class WrongTokens:
    """ASGI middleware: after ten responses with 401 to requests with an `Authorization` header, an address gets 429
    instead; one more is permitted every six seconds. Valid tokens are not affected, since all clients of a reverse
    proxy share its address."""

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._allowances: OrderedDict[str, Allowance] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "authorization" not in Headers(scope=scope):
            await self._app(scope, receive, send)
            return
        is_refused = False

        async def send_or_refuse(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 401:
                is_refused = not self._allowance(source_of(scope["client"])).take()
                if is_refused:
                    body = {"error": {"code": "too_many", "message": "too many wrong tokens"}}
                    await JSONResponse(body, 429, {"retry-after": str(_SECONDS_EACH)})(scope, receive, send)
            if not is_refused:
                await send(message)

        await self._app(scope, receive, send_or_refuse)

    def _allowance(self, source: str) -> Allowance:
        allowance = self._allowances.pop(source, None)
        if allowance is None:
            allowance = Allowance(self._clock, burst=_BURST, seconds_each=_SECONDS_EACH)
        self._allowances[source] = allowance
        if len(self._allowances) > _SOURCES_KEPT:
            self._allowances.popitem(last=False)
        return allowance
