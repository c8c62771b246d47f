"""One connection to an MCP server: handshake, tool listing, calls and shutdown."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types
import structlog
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ObjectReceiveStream
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCResponse
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from services.clock import Clock, Deadlines
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
from services.mcp.tools import (
    Listing,
    LookUp,
    OnProgress,
    Questions,
    Replies,
    ToolAnswer,
    ToolDefinition,
    definition_of,
)
from services.mcp.web import LOGIN, LOST, NOT_SENT, REFUSED
from services.refs import JsonObject

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams


_NAME_CHARS = 128
_MOST_DETAILS = 20


class Found:
    """Collects listed tools (at most MOST_TOOLS) and notes problems: missing, unusable or repeated names, definitions
    longer than DEFINITION_BYTES, and headers that the protocol forbids."""

    def __init__(self, *, checks_headers: bool = False) -> None:
        """`checks_headers`: the protocol version has `x-mcp-header`, arguments that are repeated in headers."""
        self._checks_headers = checks_headers
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
        elif self._checks_headers and (reason := find_invalid_x_mcp_header(found.content.get("inputSchema"))):
            self._note(f"{shown(name)} wants headers that are not allowed, so it is left out", f"{name!r}: {reason}")
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


class Wire(ObjectReceiveStream[SessionMessage | Exception]):
    """Incoming messages of one connection, without notifications that nobody wants."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the stream ends."""
        self._on_end = on_end
        self._stream: ReadStream[SessionMessage | Exception]
        self._listed: list[Any] = []

    @asynccontextmanager
    async def over(self, transport: Transport) -> AsyncIterator[TransportStreams]:
        """Context manager that yields the streams of `transport`, with this one for reading."""
        async with transport as (self._stream, write):
            yield self, write

    def take_listed(self) -> list[Any]:
        """Return the unmodified tools of the last listed page and clear them; the SDK itself gets only minimal
        forms."""
        listed, self._listed = self._listed, []
        return listed

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

    def _is_passed_on(self, message: JSONRPCMessage) -> bool:
        """Whether to pass on an incoming message: all but unsubscribed notifications. Stores listed tools and replaces
        them by minimal forms."""
        if isinstance(message, JSONRPCNotification):
            return message.method in _SUBSCRIBED_EVENTS
        if isinstance(message, JSONRPCResponse):
            # The SDK requires the type, which by the protocol is `complete` for results without one.
            message.result.setdefault("resultType", "complete")
            tools = message.result.get("tools")
            if isinstance(tools, list):
                self._listed = tools
                message.result["tools"] = [bare for tool in tools if (bare := _bare(tool))]
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


_LISTEN_AGAIN_SECONDS = 5.0
_CALL, _STATE = "call", "state"
_MOST_WAITING = 64
_LONGEST_WAIT_SECONDS = 3600.0
"""A question that is not answered in this time is cancelled."""
_MOST_POLLS = 20
_POLL_SECONDS = 0.25
_SDK_STREAM_ERROR = "SSE stream "
"""Start of the SDK's message for a response stream that broke off."""
_log = structlog.get_logger("mcp")


class Connection:
    """Connection to an MCP server. A dedicated task holds it, since one task must enter and leave the client."""

    def __init__(self, clock: Clock, *, may_ask: bool = True) -> None:
        """`may_ask`: the server may ask questions during calls."""
        self._clock = clock
        self._may_ask = may_ask
        self._deadlines = Deadlines(clock)
        self._running: list[_RunningCall] = []
        self._waiting: dict[str, _RunningCall] = {}
        self._client: Client | None = None
        self._end = asyncio.Event()
        self._wire = Wire(self._end.set)
        self._opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._is_over = False

    async def open(self, streams: Transport) -> None:
        """Connect and complete the handshake. Raises Unreachable. After any exception, call `close`."""
        self._holder = asyncio.create_task(self._run_client(streams))
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
        client = self._usable()
        found = Found(checks_headers=client.protocol_version in MODERN_PROTOCOL_VERSIONS)
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = mcp_types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self._asked(client.session.list_tools(params=params))
            for tool in self._wire.take_listed():
                if not found.take(tool):
                    return found.listing()
            if page.next_cursor is None or page.next_cursor == cursor:
                return found.listing()
            cursor = page.next_cursor
        found.cut(f"its list of tools has more than {MOST_PAGES} pages; the others are left out")
        return found.listing()

    @property
    def has_waiting_calls(self) -> bool:
        """Whether calls wait on the server for answers to its questions."""
        return bool(self._waiting)

    async def call(
        self, tool: str, arguments: JsonObject, on_progress: OnProgress, replies: Replies | None = None
    ) -> ToolAnswer | Questions:
        """Call `tool`, or continue a call with `replies`; cancelling the caller notifies the server. Raises
        ServerError: NotSent if the request did not reach the server, ConnectionLost if its outcome is unknown,
        BadAnswer or CallRefused for an unusable response."""
        client = self._usable()
        if replies is not None and _CALL in replies.token:
            call = self._waiting.pop(replies.token[_CALL], None)
            if call is None:
                raise ConnectionLost("the call that waited for the answer has ended")
            call.on_progress = on_progress
            call.reply(_result_of(replies.answers.get("", {})))
            return await self._outcome(call)
        state: str | None = None
        answers: dict[str, mcp_types.InputResponse] | None = None
        if replies is not None:
            state = replies.token.get(_STATE)
            answers = {key: _result_of(one) for key, one in replies.answers.items()}
        for _ in range(_MOST_POLLS):
            call = _RunningCall(on_progress)
            call.task = asyncio.create_task(
                self._asked(
                    client.session.call_tool(
                        tool,
                        arguments,
                        progress_callback=call.report,
                        input_responses=answers,
                        request_state=state,
                        allow_input_required=True,
                    )
                )
            )
            self._running.append(call)
            call.task.add_done_callback(partial(self._ended, call))
            outcome = await self._outcome(call)
            if not isinstance(outcome, Questions) or outcome.requests:
                return outcome
            # Without questions, the server only asks to be called again.
            state, answers = outcome.token.get(_STATE), None
            await self._clock.sleep(_POLL_SECONDS)
        raise CallRefused("it asks too often to be called again")

    async def _outcome(self, call: _RunningCall) -> ToolAnswer | Questions:
        """Result of `call`, or its next question."""
        assert call.task is not None
        asked: asyncio.Future[JsonObject] = call.asked
        try:
            await asyncio.wait([call.task, asked], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.task.cancel()
            await asyncio.wait([call.task])
            raise
        if not call.task.done():
            token = secrets.token_urlsafe(16)
            self._waiting[token] = call
            return Questions({"": asked.result()}, {_CALL: token})
        result = call.task.result()
        if isinstance(result, mcp_types.InputRequiredResult):
            asked_for = result.input_requests or {}
            questions = {key: one for key, one in asked_for.items() if isinstance(one, mcp_types.ElicitRequest)}
            if len(questions) < len(asked_for) or (questions and not self._may_ask):
                raise CallRefused("it asks for something in return, which is not given")
            return Questions(
                {key: _plain(one.params) for key, one in questions.items()}, {_STATE: result.request_state}
            )
        return ToolAnswer(tuple(map(_plain, result.content)), result.structured_content, bool(result.is_error))

    def _ended(self, call: _RunningCall, task: asyncio.Task[Any]) -> None:
        self._running.remove(call)
        if not task.cancelled():
            task.exception()

    async def _elicit(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        """Answer a request of a server with an earlier protocol version, which does not say which call it belongs to:
        it is cancelled if that is not certain."""
        calls = [call for call in self._running if call.answer is None]
        if len(calls) != 1 or len(self._waiting) >= _MOST_WAITING:
            _log.info("mcp_question_cancelled", running=len(calls), waiting=len(self._waiting))
            return mcp_types.ElicitResult(action="cancel")
        with suppress(TimeoutError):
            by = self._clock.monotonic() + _LONGEST_WAIT_SECONDS
            return await self._deadlines.run(calls[0].ask(_plain(params)), by)
        return mcp_types.ElicitResult(action="cancel")

    async def look_up(self, request: LookUp) -> ToolAnswer:
        """Resources or prompts of the server as text, and the contents of a named one. Raises ServerError."""
        session = self._usable().session
        if request.kind == "resources" and request.name:
            read = await self._asked(session.read_resource(request.name))
            return ToolAnswer(tuple({"type": "resource", "resource": _plain(one)} for one in read.contents))
        if request.name:
            got = await self._asked(session.get_prompt(request.name, dict(request.arguments)))
            return ToolAnswer(tuple(_plain(one.content) for one in got.messages))
        lines: list[str] = []
        if request.kind == "resources":
            resources = await self._asked(session.list_resources())
            lines += [_line(str(one.uri), one.title or one.name, one.description) for one in resources.resources]
            with suppress(CallRefused):
                templates = await self._asked(session.list_resource_templates())
                lines += [_line(one.uri_template, one.name, one.description) for one in templates.resource_templates]
        else:
            for prompt in (await self._asked(session.list_prompts())).prompts:
                names = ", ".join(one.name for one in prompt.arguments or ())
                lines.append(_line(f"{prompt.name}({names})", prompt.title or "", prompt.description))
        return ToolAnswer(({"type": "text", "text": "\n".join(lines[:MOST_TOOLS])},))

    def _usable(self) -> Client:
        if self._client is None or not self.is_open:
            raise NotSent("the connection is closed")
        return self._client

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

    async def _run_client(self, streams: Transport) -> None:
        """Hold the connection for its whole life: the client must be entered and left in the same task."""
        client = Client(
            self._wire.over(streams),
            cache=None,
            message_handler=self._handle_message,
            elicitation_callback=self._elicit if self._may_ask else None,
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


class _RunningCall:
    """A call in progress, which a server with an earlier protocol version can interrupt with questions."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.task: asyncio.Task[Any] | None = None
        self.asked: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        """The parameters of the next question."""
        self.answer: asyncio.Future[mcp_types.ElicitResult] | None = None
        """The answer for which it waits; None while it does not."""

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        # Progress messages are server text, so chats see only the count.
        await self.on_progress(progress, total)

    async def ask(self, params: JsonObject) -> mcp_types.ElicitResult:
        """Ask, and return the answer."""
        self.answer = asyncio.get_running_loop().create_future()
        self.asked.set_result(params)
        try:
            return await self.answer
        finally:
            self.answer = None

    def reply(self, answer: mcp_types.ElicitResult) -> None:
        """Answer the question, if it is still open."""
        self.asked = asyncio.get_running_loop().create_future()
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(answer)


def _result_of(answer: JsonObject) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult.model_validate(answer or {"action": "cancel"})


def _plain(model: BaseModel) -> JsonObject:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _line(name: str, title: str, description: str | None) -> str:
    return " - ".join(in_one_line(part) for part in (name, title, description) if part)


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
