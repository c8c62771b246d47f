"""One connection to a server of tools, from its handshake to its end. Nothing is offered to the server in return: it
cannot ask a model, a person or for folders."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any

import mcp_types
import structlog
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from services.clock import Clock
from services.json_values import JsonObject
from services.mcp.limits import MOST_PAGES
from services.mcp.link import OnProgress
from services.mcp.listing import Found
from services.mcp.problems import (
    BadAnswer,
    CallRefused,
    ConnectionLost,
    NotSent,
    ServerProblem,
    Unreachable,
    in_one_line,
)
from services.mcp.tools import Listing, Progress, ToolAnswer
from services.mcp.web import LOST, NOT_SENT, REFUSED
from services.mcp.wire import Wire

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_LISTEN_AGAIN_SECONDS = 5.0
_OF_THE_SDK = "SSE stream "
"""What it says of an answer that broke off begins so."""
_log = structlog.get_logger("mcp")


class Connection:
    """Held by a task of its own, since whoever opens it is the one who has to close it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._client: Client | None = None
        self._wire: Wire | None = None
        self._end = asyncio.Event()
        self._opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._is_over = False

    async def open(self, streams: AbstractAsyncContextManager[TransportStreams]) -> None:
        """Shake hands over `streams`. Raises Unreachable. Where it does not return, `close` has to be called."""
        wire = self._wire = Wire(streams, self._end.set)
        self._holder = asyncio.create_task(self._hold(wire))
        opened = asyncio.create_task(self._opened.wait())
        try:
            await asyncio.wait([opened, self._holder], return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
        if not self.is_open:
            raise _unreachable(self._failure)

    @property
    def is_open(self) -> bool:
        """Whether a call may be tried."""
        return self._client is not None and not self._end.is_set() and not self._is_over

    @property
    def changed(self) -> asyncio.Event:
        """Set when the server says that its tools have changed; for the listener to clear."""
        return self._changed

    async def ended(self) -> None:
        """Return when it has ended, by whichever side."""
        await self._end.wait()

    async def close(self) -> None:
        """End it, the server's process too where there is one."""
        self._end.set()
        if self._holder is not None:
            if not self._opened.is_set():
                self._holder.cancel()
            await asyncio.wait([self._holder])

    async def list_tools(self) -> Listing:
        """All tools, page after page. Raises ServerProblem."""
        client, wire = self._parts()
        found = Found()
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = mcp_types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self._asked(client.session.list_tools(params=params))
            for tool in wire.take_listed():
                if not found.take(tool):
                    return found.listing()
            if page.next_cursor is None or page.next_cursor == cursor:
                return found.listing()
            cursor = page.next_cursor
        found.cut(f"its list of tools has more than {MOST_PAGES} pages; the others are left out")
        return found.listing()

    async def call(self, tool: str, arguments: JsonObject, on_progress: OnProgress) -> ToolAnswer:
        """What `tool` gives for `arguments`. When the caller is cancelled the server is told so. Raises ServerProblem:
        NotSent where the server has not heard of it, ConnectionLost where nobody knows."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            # What the server says about it stays with us: a chat is shown the count alone.
            await on_progress(Progress(progress, total))

        client, _ = self._parts()
        result = await self._asked(
            client.session.call_tool(tool, arguments, progress_callback=report, allow_input_required=True)
        )
        if not isinstance(result, mcp_types.CallToolResult):
            raise CallRefused("it asks for something in return, which is not given")
        blocks = tuple(one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in result.content)
        return ToolAnswer(blocks, result.structured_content, bool(result.is_error))

    def _parts(self) -> tuple[Client, Wire]:
        if self._client is None or self._wire is None or not self.is_open:
            raise NotSent("the connection is closed")
        return self._client, self._wire

    async def _asked(self, request: Awaitable[Any]) -> Any:
        """What `request` gives. Raises ServerProblem for whatever else comes of it."""
        try:
            return await request
        except MCPError as error:
            raise self._problem(error) from error
        except ValidationError as error:
            raise BadAnswer(f"its answer is not what the protocol allows ({error.error_count()} faults)") from error
        except RuntimeError as error:
            # What the SDK raises where it is called too late.
            raise ConnectionLost(str(error)) from error

    def _problem(self, error: MCPError) -> ServerProblem:
        text = error.message
        if error.code == NOT_SENT:
            self._is_over = True
            return NotSent(text)
        # Servers use the SDK's code for a closed connection as well, for any failure of theirs.
        is_closed = error.code == mcp_types.CONNECTION_CLOSED and (not self.is_open or text.startswith(_OF_THE_SDK))
        if is_closed or error.code in (LOST, mcp_types.REQUEST_TIMEOUT):
            return ConnectionLost(text)
        if error.code == mcp_types.HEADER_MISMATCH:
            self._changed.set()
        return CallRefused(text)

    async def _hold(self, wire: Wire) -> None:
        """The whole life of the connection: within this task alone it may be entered and left."""
        client = Client(
            wire,
            cache=None,
            message_handler=self._hear,
            client_info=mcp_types.Implementation(name="rollcall", version="1"),
        )
        listener: asyncio.Task[None] | None = None
        try:
            async with client:
                self._client = client
                self._opened.set()
                listener = asyncio.create_task(self._listen(client))
                await self._end.wait()
                listener.cancel()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server brings about is a problem of that server
            self._failure = error
            if self._opened.is_set():
                _log.warning("mcp_connection_failed", problem=_reason(error))
        finally:
            self._client = None
            self._end.set()
            if listener is not None:
                listener.cancel()
                await asyncio.wait([listener])

    async def _hear(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Hear of changes from a server of the newer kind, which tells those alone who ask for it."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        while self.is_open:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self._changed.set()
            await self._clock.sleep(_LISTEN_AGAIN_SECONDS)
            # Something may have changed while nobody listened.
            self._changed.set()


def _unreachable(failure: BaseException | None) -> Unreachable:
    """The problem of a connection that could not be opened."""
    failure = _innermost(failure)
    match failure:
        case None:
            return Unreachable(said="it ended before it answered")
        case FileNotFoundError():
            return Unreachable(said=f"there is no {failure.filename}")
        case PermissionError():
            return Unreachable(said=f"{failure.filename} may not be started by this user")
        case MCPError(code=code) if code == LOST:
            return Unreachable(_reason(failure), said=ConnectionLost.said)
        case MCPError(code=code) if code == REFUSED:
            # The number alone: what stands behind it are the server's words.
            status = re.match(r"HTTP \d{3}\b", failure.message)
            return Unreachable(_reason(failure), said=f"it answers {status[0]}" if status else CallRefused.said)
        case MCPError(code=code) if code not in (NOT_SENT, mcp_types.CONNECTION_CLOSED):
            return Unreachable(_reason(failure), said=CallRefused.said)
    return Unreachable(_reason(failure))


def _innermost(error: BaseException | None) -> BaseException | None:
    """Failures of connections come in groups, within groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException | None) -> str:
    """What went wrong, in one line."""
    error = _innermost(error)
    if isinstance(error, MCPError):
        return in_one_line(error.message)
    return in_one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
