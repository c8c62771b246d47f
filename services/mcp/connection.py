"""One connection to an MCP server: handshake, tool listing, calls and shutdown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import mcp_types
import structlog
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from services.clock import Clock
from services.mcp.link import OnProgress
from services.mcp.problems import (
    DEFINITION_BYTES,
    MOST_PAGES,
    MOST_TOOLS,
    BadAnswer,
    CallRefused,
    ConnectionLost,
    LoginRequired,
    NotSent,
    ServerError,
    Unreachable,
    in_one_line,
    shown,
)
from services.mcp.tools import Listing, Progress, ToolAnswer, ToolDefinition, definition_of
from services.mcp.web import LOGIN, LOST, NOT_SENT, REFUSED
from services.refs import JsonObject

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream


_NAME_CHARS = 128
_MOST_DETAILS = 20


class Found:
    """Collects listed tools (at most MOST_TOOLS) and notes problems: missing, unusable or repeated names, and
    definitions longer than DEFINITION_BYTES."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._problems: dict[str, None] = {}
        self._details: list[str] = []
        self._is_whole = True

    def take(self, tool: object) -> bool:
        """Add a listed tool, or note why it cannot be used. Returns False once the limit is reached."""
        if len(self._tools) >= MOST_TOOLS:
            self.cut(f"it has more than {MOST_TOOLS} tools; those after them are left out")
            return False
        self._take(tool)
        return True

    def cut(self, problem: str) -> None:
        """Mark the listing as incomplete and note `problem`, the reason."""
        self._is_whole = False
        self._note(problem)

    def listing(self) -> Listing:
        """The tools and problems collected so far."""
        return Listing(tuple(self._tools.values()), tuple(self._problems), tuple(self._details), self._is_whole)

    def _take(self, tool: object) -> None:
        try:
            found = definition_of(tool if isinstance(tool, dict) else {})
            size = len(found.canonical)
        except (ValueError, RecursionError):
            self._note("it lists a tool that has no name or cannot be read")
            return
        name = found.name
        if not name.isprintable() or " " in name or len(name) > _NAME_CHARS:
            self._note("it lists a tool whose name cannot be used", f"{name!r} is no name of a tool")
        elif _is_task_only(tool):
            self._note(f"{shown(name)} can only run as a task, which is not supported", f"{name!r} needs a task")
        elif name in self._tools:
            self._note(f"it lists {shown(name)} twice; the first one counts", f"{name!r} is listed twice")
        elif size > DEFINITION_BYTES:
            problem = f"the definition of {shown(name)} is longer than {DEFINITION_BYTES} bytes, so it is not read"
            self._note(problem, f"the definition of {name!r} has {size} bytes")
        else:
            self._tools[name] = found

    def _note(self, problem: str, details: str = "") -> None:
        self._problems.setdefault(problem)
        if details and len(self._details) < _MOST_DETAILS:
            self._details.append(in_one_line(details))


def _is_task_only(tool: object) -> bool:
    """Whether a listed tool rejects calls that are no tasks (`execution.taskSupport`)."""
    execution = tool.get("execution") if isinstance(tool, Mapping) else None
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


_SUBSCRIBED_EVENTS = frozenset(
    {
        "notifications/cancelled",
        "notifications/progress",
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    }
)
"""Notifications passed on to the session. All others are dropped: servers may send many log messages."""


class Wire:
    """Transport wrapper that observes messages in both directions. Serves one connection."""

    def __init__(self, transport: Transport, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the incoming stream ends."""
        self._transport = transport
        self._on_end = on_end
        self._listings: set[str | int] = set()
        self._listed: list[Any] = []

    def take_listed(self) -> list[Any]:
        """Return the unmodified tools of the last listed page and clear them; the SDK itself gets only minimal
        forms."""
        listed, self._listed = self._listed, []
        return listed

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self._is_passed_on, self._on_end), _Writing(write, self._note)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)

    def _note(self, message: JSONRPCMessage) -> None:
        """Remember the id of an outgoing `tools/list` request, to recognise its response."""
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            self._listings.add(message.id)

    def _is_passed_on(self, message: JSONRPCMessage) -> bool:
        """Whether to pass on an incoming message: all but unsubscribed notifications. Stores listed tools and replaces
        them by minimal forms."""
        if isinstance(message, JSONRPCNotification):
            return message.method in _SUBSCRIBED_EVENTS
        if isinstance(message, JSONRPCResponse) and message.id in self._listings:
            self._listings.discard(message.id)
            tools = message.result.get("tools")
            if isinstance(tools, list):
                self._listed = tools
                message.result = {**message.result, "tools": [one for tool in tools if (one := _bare(tool))]}
        return True


def _bare(tool: object) -> JsonObject | None:
    """Minimal valid form of a listed tool for the SDK, where one malformed tool would fail the whole page; results are
    checked against their schema elsewhere. None if it has no name."""
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return None
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    known = properties.items() if isinstance(properties, Mapping) else ()
    schemas = {name: one for name, one in known if isinstance(one, Mapping)}
    return {"name": tool["name"], "inputSchema": {"type": "object", "properties": schemas}}


class _Reading(AbstractAsyncContextManager["_Reading"]):
    """Incoming stream without the messages that `is_passed_on` rejects; calls `on_end` when the stream ends."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        is_passed_on: Callable[[JSONRPCMessage], bool],
        on_end: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._is_passed_on = is_passed_on
        self._on_end = on_end

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._stream.receive()
            except (EndOfStream, ClosedResourceError, BrokenResourceError):
                self._on_end()
                raise
            if isinstance(item, Exception) or self._is_passed_on(item.message):
                return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Writing(AbstractAsyncContextManager["_Writing"]):
    """Outgoing stream that passes each message to `note` before sending it."""

    def __init__(self, stream: WriteStream[SessionMessage], note: Callable[[JSONRPCMessage], None]) -> None:
        self._stream = stream
        self._note = note

    async def send(self, item: SessionMessage, /) -> None:
        self._note(item.message)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


_LISTEN_AGAIN_SECONDS = 5.0
_SDK_STREAM_ERROR = "SSE stream "
"""Start of the SDK's message for a response stream that broke off."""
_log = structlog.get_logger("mcp")


class Connection:
    """Connection to an MCP server. A dedicated task holds it, since one task must enter and leave the client."""

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
        """Connect and complete the handshake. Raises Unreachable. After any exception, call `close`."""
        wire = self._wire = Wire(streams, self._end.set)
        self._holder = asyncio.create_task(self._run_client(wire))
        opened = asyncio.create_task(self._opened.wait())
        try:
            await asyncio.wait([opened, self._holder], return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
        if not self.is_open:
            raise _unreachable(self._failure)

    @property
    def is_open(self) -> bool:
        """Whether calls are possible: the handshake is complete and neither side has closed the connection."""
        return self._client is not None and not self._end.is_set() and not self._is_over

    @property
    def changed(self) -> asyncio.Event:
        """Set when the server reports changed tools; the listener clears it."""
        return self._changed

    async def ended(self) -> None:
        """Wait until either side has closed the connection."""
        await self._end.wait()

    async def close(self) -> None:
        """Close the connection and end the server's process, if there is one; returns when that is done. May be called
        twice."""
        self._end.set()
        if self._holder is not None:
            if not self._opened.is_set():
                self._holder.cancel()
            await asyncio.wait([self._holder])

    async def list_tools(self) -> Listing:
        """List all pages of tools, cut at MOST_TOOLS tools and MOST_PAGES pages. Raises ServerError (NotSent if the
        connection is closed)."""
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
        """Call `tool`; cancelling the caller notifies the server. Raises ServerError: NotSent if the request did not
        reach the server, ConnectionLost if its outcome is unknown, BadAnswer or CallRefused for an unusable
        response."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            # Progress messages are server text, so chats see only the count.
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
        """Await `request` of the SDK and return its result. Raises ServerError instead of the SDK's errors: BadAnswer
        for an invalid response, ConnectionLost for a closed client, else see `_problem`."""
        try:
            return await request
        except MCPError as error:
            raise self._problem(error) from error
        except ValidationError as error:
            raise BadAnswer(f"its response violates the protocol ({error.error_count()} faults)") from error
        except RuntimeError as error:
            # The SDK raises RuntimeError for requests on a closed client.
            raise ConnectionLost(str(error)) from error

    def _problem(self, error: MCPError) -> ServerError:
        text = error.message
        if error.code in (NOT_SENT, LOGIN):
            self._is_over = True
            return NotSent(text)
        # Servers may use the SDK's code for a closed connection for any error.
        is_closed = error.code == mcp_types.CONNECTION_CLOSED and (
            not self.is_open or text.startswith(_SDK_STREAM_ERROR)
        )
        if is_closed or error.code in (LOST, mcp_types.REQUEST_TIMEOUT):
            return ConnectionLost(text)
        if error.code == mcp_types.HEADER_MISMATCH:
            self._changed.set()
        return CallRefused(text)

    async def _run_client(self, wire: Wire) -> None:
        """Hold the connection for its whole life: the client must be entered and left in the same task."""
        client = Client(
            wire,
            cache=None,
            message_handler=self._handle_message,
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
        except Exception as error:  # noqa: BLE001 - every failure of a server is reported as that server's problem
            self._failure = error
            if self._opened.is_set():
                _log.warning("mcp_connection_failed", problem=_reason(error))
        finally:
            self._client = None
            self._end.set()
            if listener is not None:
                listener.cancel()
                await asyncio.wait([listener])

    async def _handle_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Subscribe to tool changes: servers with a modern protocol version notify only subscribers."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        while self.is_open:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self._changed.set()
            await self._clock.sleep(_LISTEN_AGAIN_SECONDS)
            # Changes during the interruption were missed.
            self._changed.set()


def _unreachable(failure: BaseException | None) -> Unreachable:
    """Unreachable for a connection that could not be opened because of `failure` (None: it ended early). Its text for
    members contains no server text."""
    failure = _innermost(failure)
    match failure:
        case None:
            return Unreachable(member_text="it ended before it answered")
        case FileNotFoundError():
            return Unreachable(member_text=f"there is no {failure.filename}")
        case PermissionError():
            return Unreachable(member_text=f"{failure.filename} may not be started by this user")
        case MCPError(code=code) if code == LOST:
            return Unreachable(_reason(failure), member_text=ConnectionLost.member_text)
        case MCPError(code=code) if code == LOGIN:
            return LoginRequired(member_text=_reason(failure))
        case MCPError(code=code) if code == REFUSED:
            # The status code alone: the rest of the message is server text.
            status = re.match(r"HTTP \d{3}\b", failure.message)
            return Unreachable(
                _reason(failure), member_text=f"it answers {status[0]}" if status else CallRefused.member_text
            )
        case MCPError(code=code) if code not in (NOT_SENT, mcp_types.CONNECTION_CLOSED):
            return Unreachable(_reason(failure), member_text=CallRefused.member_text)
    return Unreachable(_reason(failure))


def _innermost(error: BaseException | None) -> BaseException | None:
    """First leaf exception: connection failures arrive in nested groups. None for None."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException | None) -> str:
    """Description of a failure in one line, for the log."""
    error = _innermost(error)
    if isinstance(error, MCPError):
        return in_one_line(error.message)
    return in_one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
