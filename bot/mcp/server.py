"""MCP server for the bot's functions: listing, calls and progress."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_args

import anyio
import structlog
from mcp.server.connection import allowed_log_levels
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot import VERSION
from bot.direct_calls import Called, DirectCalls, Status, stopped
from bot.mcp.callers import McpCaller
from bot.mcp.content import resource_contents, tool_definition, tool_error, tool_result
from bot.mcp.documents import Documents, HelpPages, KnowledgeDocuments, filled_prompt, prompt_of
from bot.mcp.questions import (
    MultiRequestCall,
    MultiRequestCalls,
    StreamQuestions,
    WaitingCalls,
    can_be_asked,
    comes_in_rounds,
    is_intact,
    lends_its_model,
)
from config.texts import Phrases
from function_calls.spec import FunctionSpec
from services.knowledge import KnowledgeBases
from services.refs import ErrorCode, JsonObject
from services.store.port import StoreError

Context = ServerRequestContext[Any, Any]
V = TypeVar("V")
_LEVEL: LoggingLevel = "info"
_LEVELS: tuple[str, ...] = get_args(LoggingLevel)
"""In ascending order."""
_MOST_REMEMBERED = 1024
"""Several times the limit of open sessions, because sessions that expire when idle are not reported."""


class ProgressLevels:
    """Log levels of sessions. In current protocol versions each request has its level, by default none; in older ones a
    session without a level gets everything."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, str] = OrderedDict()

    async def set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        """Set the level of the session."""
        _remember(self._levels, session_of(context), params.level, _MOST_REMEMBERED)
        return EmptyResult()

    def forget(self, session_id: str) -> None:
        """Forget the level of the session; unknown ones are ignored."""
        self._levels.pop(session_id, None)

    async def notify(self, context: Context, function: str, step: int, text: str) -> None:
        """Send progress on `function` to its caller; `step` counts from 1. The text is also logged to clients that want
        log messages."""
        await context.session.report_progress(step, None, text)
        if not self._wants(context):
            return
        message = LoggingMessageNotificationParams(level=_LEVEL, logger=function, data=text)
        await context.session.send_notification(LoggingMessageNotification(params=message), context.request_id)

    def _wants(self, context: Context) -> bool:
        if _LEVEL not in allowed_log_levels(context.protocol_version, context.meta):
            return False
        least = self._levels.get(session_of(context), _LEVEL)
        return _LEVELS.index(least) <= _LEVELS.index(_LEVEL)


def _remember(entries: OrderedDict[str, V], key: str, value: V, most: int) -> None:
    """Set the newest of `entries`, and remove the oldest beyond `most`."""
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > most:
        entries.popitem(last=False)


def session_of(context: Context) -> str:
    """The session id of a request; empty over a pipe."""
    return context.request.headers.get("mcp-session-id", "") if context.request is not None else ""


SESSION = "mcp-session-id"
_CLOSED = "rollcall.mcp_gone"


class Credential(NamedTuple):
    """Authenticated identity of a request."""

    name: str
    token: bytes


class OpenSessions:
    """Active requests and sessions of all programs."""

    def __init__(self) -> None:
        self._exchanges: dict[int, _Exchange] = {}
        self._sessions: OrderedDict[str, Credential] = OrderedDict()

    async def serve(
        self, by: Credential, app: ASGIApp, refusal: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let `app` answer. If the credential is withdrawn meanwhile, the response is cut off, or is `refusal` if it
        has not started."""
        exchange = _Exchange(by, send)
        self._exchanges[id(exchange)] = exchange
        try:
            with exchange.running:
                await app(
                    {**scope, _CLOSED: exchange.closed}, receive, lambda message: self._pass_on(exchange, message)
                )
        finally:
            exchange.closed.set()
            del self._exchanges[id(exchange)]
        if not exchange.running.cancelled_caught:
            return
        if not exchange.has_started:
            await refusal(scope, receive, send)
        elif not exchange.has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def forget(self, session: str) -> None:
        """Remove a session that has ended."""
        self._sessions.pop(session, None)

    def beyond_share(self, by: Credential) -> list[tuple[str, Credential]]:
        """The oldest sessions of a program that has more than its share; they are forgotten, and the caller has to end
        them."""
        own = [session for session, owner in self._sessions.items() if owner == by]
        excess = own[: max(0, len(own) - SESSION_SHARE)]
        for session in excess:
            self.forget(session)
        return [(session, by) for session in excess]

    def withdraw(self, those: Collection[Credential]) -> list[tuple[str, Credential]]:
        """End the active requests of these credentials. Returns their sessions, which the caller has to end too."""
        for exchange in self._exchanges.values():
            if exchange.by in those:
                exchange.running.cancel()
        started = [(session, by) for session, by in self._sessions.items() if by in those]
        for session, _ in started:
            self.forget(session)
        return started

    async def _pass_on(self, exchange: _Exchange, message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.has_started = True
            session = Headers(raw=message["headers"]).get(SESSION, "")
            if session and message["status"] < 400:
                _remember(self._sessions, session, exchange.by, _MOST_REMEMBERED)
        elif message["type"] == "http.response.body":
            exchange.has_ended = not message.get("more_body", False)
        await exchange.send(message)


@dataclass(slots=True)
class _Exchange:
    """An active request."""

    by: Credential
    send: Send
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    has_started: bool = False
    has_ended: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the response has ended or the client has disconnected."""


def closed_event(context: ServerRequestContext[Any, Any]) -> asyncio.Event | None:
    """Event that is set when the client of a request has disconnected; None over a pipe."""
    scope = context.request.scope if context.request is not None else {}
    closed: asyncio.Event | None = scope.get(_CLOSED)
    return closed


NAME = "rollcall"
MOST_SESSIONS = 64
"""Limit of sessions and open streams."""
SESSION_SHARE = MOST_SESSIONS // 4
"""Sessions of one program; its oldest is ended for a further one."""
_MOST_CALLS = 64
_TOOLS_ON_A_PAGE = 100
_LONGEST_NAME_SHOWN = 100
_MOST_RESOURCES = 1000
_NOT_FOUND = -32002
"""Code for an unknown resource in earlier protocol versions."""
_EXPIRED = "expired"
_log = structlog.get_logger("mcp")

Whose = Callable[[Context], McpCaller]
"""Returns the caller of a request."""
_Stops = anyio.CancelScope | asyncio.Task[Called]


class McpServer:
    """Serves one kind of callers, over any transport."""

    def __init__(
        self, calls: DirectCalls, knowledge: KnowledgeBases, caller_of: Whose, texts: Phrases, bot_name: str
    ) -> None:
        """`texts` and `bot_name` are for the server's description in the handshake."""
        self._calls = calls
        self._caller_of = caller_of
        self.documents: list[Documents] = [HelpPages(calls), KnowledgeDocuments(calls, knowledge)]
        """Resources for programs, in the order of their lists."""
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=MOST_SESSIONS)
        self._notified: OrderedDict[str, ServerSession] = OrderedDict()
        """Sessions to notify of changes, by id: those that have listed functions."""
        self._telling: asyncio.Task[None] | None = None
        self._pending = False
        self._running: set[_Stops] = set()
        self._waiting = WaitingCalls()
        self._rounds = MultiRequestCalls(self._waiting)
        self._closed = asyncio.Event()
        self._statuses = ProgressLevels()
        self._idle = asyncio.Event()
        self._idle.set()
        self.server: Server[Any] = Server(
            NAME,
            version=VERSION,
            title=bot_name,
            instructions=texts.say("mcp.instructions", name=bot_name),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listening,
        )
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._statuses.set_level)
        self.server.middleware.append(self._guarded)

    @property
    def options(self) -> Any:
        """Options of a session over a pipe."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    def functions_changed(self) -> None:
        """Notify clients that the functions have changed. Call it on the event loop, after each publish."""
        self._pending = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._notify_changes())

    def forget(self, session_id: str) -> None:
        """Remove a session that has ended."""
        self._notified.pop(session_id, None)
        self._statuses.forget(session_id)

    def hang_up(self) -> None:
        """End all waits for answers, since none will come. Results are still sent."""
        self._closed.set()
        self._rounds.expire()

    async def drain(self, seconds: float) -> None:
        """End the streams that wait for changes, and wait for running calls; after `seconds` the rest is cancelled,
        with a result for its caller."""
        self._listening.close()
        self.hang_up()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        if self._telling is not None:
            self._telling.cancel()
        for running in list(self._running):
            running.cancel()
        await self._idle.wait()
        await self._calls.settled()

    async def _notify_changes(self) -> None:
        while self._pending:
            # Several changes in the same iteration are sent as one notification.
            await asyncio.sleep(0)
            self._pending = False
            await self._bus.publish(ToolsListChanged())
            for session in list(self._notified.values()):
                await session.send_tool_list_changed()

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        _remember(self._notified, session_of(context), context.session, MOST_SESSIONS)
        page, next_cursor = self._page(context, params)
        return ListToolsResult(tools=[tool_definition(spec, name) for name, spec in page], next_cursor=next_cursor)

    def _page(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> tuple[list[tuple[str, FunctionSpec]], str | None]:
        """A page of the functions that the caller may call, with the names under which they are offered, and the cursor
        of the next page."""
        mcp_caller = self._caller_of(context)
        if mcp_caller.unserved(self._calls.chats) is not None:
            return [], None
        caller = mcp_caller.now
        functions = self._calls.functions(caller.chat)
        specs = [spec for spec in self._calls.callable_by(caller) if mcp_caller.may_name(spec)]
        begin = _place(specs, params.cursor if params is not None else None)
        page, rest = specs[begin : begin + _TOOLS_ON_A_PAGE], specs[begin + _TOOLS_ON_A_PAGE :]
        return [(functions.offered_name(spec.name), spec) for spec in page], rest[0].name if rest else None

    async def _list_prompts(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        texts = self._texts(context)
        page, next_cursor = self._page(context, params)
        prompts = [prompt for name, spec in page if (prompt := prompt_of(spec, name, texts)) is not None]
        return ListPromptsResult(prompts=prompts, next_cursor=next_cursor)

    async def _get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        mcp_caller = self._caller_of(context)
        caller, texts = mcp_caller.now, self._texts(context)
        spec = self._calls.functions(caller.chat).find(params.name)
        is_known = mcp_caller.unserved(self._calls.chats) is None and spec is not None and mcp_caller.may_name(spec)
        if spec is None or not is_known or spec.name not in {one.name for one in self._calls.callable_by(caller)}:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:_LONGEST_NAME_SHOWN]}")
        filled = filled_prompt(spec, params.arguments or {}, texts)
        if filled is None:
            raise MCPError(INVALID_PARAMS, "An argument of the prompt is missing or too long")
        return filled

    async def _list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        caller = self._reader(context)
        found = [one for each in self.documents for one in await each.listed(caller)] if caller is not None else []
        return ListResourcesResult(resources=found[:_MOST_RESOURCES])

    async def _list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        caller = self._reader(context)
        found = [one for each in self.documents for one in await each.templates(caller)] if caller is not None else []
        return ListResourceTemplatesResult(resource_templates=found[:_MOST_RESOURCES])

    async def _read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        caller, uri = self._reader(context), str(params.uri)
        for documents in self.documents if caller is not None else ():
            found = await documents.read(uri, caller) if caller is not None else None
            if found is not None:
                return ReadResourceResult(contents=[resource_contents(uri, found.content, found.media_type)])
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(INVALID_PARAMS if is_modern else _NOT_FOUND, "Resource not found", {"uri": uri})

    def _reader(self, context: Context) -> McpCaller | None:
        """The caller; None if its chat is not served."""
        mcp_caller = self._caller_of(context)
        return mcp_caller if mcp_caller.unserved(self._calls.chats) is None else None

    def _texts(self, context: Context) -> Phrases:
        return self._calls.chats.profile(self._caller_of(context).caller.chat).texts

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        mcp_caller = self._caller_of(context)
        caller = mcp_caller.now
        texts = self._calls.chats.profile(caller.chat).texts
        unserved = mcp_caller.unserved(self._calls.chats)
        if unserved is not None:
            text = texts.say("mcp.not_served", chat=unserved.chat, detail=unserved.setting)
            return tool_error(ErrorCode.REFUSED.value, text)
        spec = self._calls.functions(caller.chat).find(params.name)
        if spec is None or not mcp_caller.may_name(spec):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:_LONGEST_NAME_SHOWN]}")
        if len(self._running) - len(self._waiting) >= _MOST_CALLS and params.request_state is None:
            return tool_error(ErrorCode.TRANSIENT.value, texts.say("mcp.busy"))
        asks, lends = _opens(context, mcp_caller)
        if (asks or lends) and comes_in_rounds(context):
            return await self._call_in_rounds(context, params, mcp_caller, spec, texts)
        status = self._status(spec, lambda: context)
        closed = [one for one in (self._closed, closed_event(context)) if one is not None]
        questions = StreamQuestions(context, mcp_caller, texts, self._waiting, closed)
        running = anyio.CancelScope()
        called = None
        self._began(running)
        try:
            with running:
                called = await self._calls.call(
                    caller,
                    spec.name,
                    params.arguments or {},
                    status=status,
                    person=questions if asks else None,
                    model=questions if lends else None,
                )
        except StoreError as error:
            return _not_storable(spec, error, texts)
        finally:
            self._ended(running)
        return tool_result(called or Called(stopped(spec, texts)), spec, caller.chat, texts)

    async def _call_in_rounds(
        self, context: Context, params: CallToolRequestParams, mcp_caller: McpCaller, spec: FunctionSpec, texts: Phrases
    ) -> CallToolResult | InputRequiredResult:
        """The result of a call, or the request that its client has to answer first."""
        caller = mcp_caller.now
        if params.request_state is None:
            one = MultiRequestCall(self._rounds, context, mcp_caller, texts, params)
            status = self._status(spec, lambda: one.context)
            asks, lends = _opens(context, mcp_caller)
            call = self._calls.call(
                caller,
                spec.name,
                params.arguments or {},
                status=status,
                person=one if asks else None,
                model=one if lends else None,
            )
            running = one.begin(call)
            self._began(running)
            running.add_done_callback(self._ended)
        elif not is_intact(params.request_state):
            raise MCPError(INVALID_PARAMS, "Invalid requestState")
        else:
            known = self._rounds.take(params.request_state, mcp_caller, params)
            if known is None:
                return tool_error(_EXPIRED, texts.say("mcp.expired"))
            one = known
            one.resume(context, mcp_caller, params)
        asked = await one.next()
        if asked is not None:
            return asked
        try:
            called = one.called or Called(stopped(spec, texts))
        except StoreError as error:
            return _not_storable(spec, error, texts)
        return tool_result(called, spec, caller.chat, texts)

    def _status(self, spec: FunctionSpec, context: Callable[[], Context]) -> Status:
        """Returns a callback that sends progress to the caller. `context` returns the latest request."""
        steps = 0

        async def tell(text: str) -> None:
            nonlocal steps
            steps += 1
            await self._statuses.notify(context(), spec.name, steps, text)

        return tell

    def _began(self, running: _Stops) -> None:
        self._running.add(running)
        self._idle.clear()

    def _ended(self, running: _Stops) -> None:
        self._running.discard(running)
        if not self._running:
            self._idle.set()

    def _input_schema(self, name: str) -> JsonObject | None:
        """The schema with which the SDK compares a call's headers: that of the first bot with a function `name`; None
        if there is no such function."""
        for bot in self._calls.chats.bots:
            spec = self._calls.functions_of(bot).find(name)
            if spec is not None:
                return spec.parameters
        return None

    async def _guarded(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: declares change notifications in the handshake. Raises MCPError with an error id in place of
        unexpected exceptions, which are logged."""
        try:
            result = await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:  # noqa: BLE001 - boundary: the SDK would send the exception's text
            short_id = uuid.uuid4().hex[:8]
            _log.error("mcp_request_failed", method=ctx.method, id=short_id, exc_info=error)
            raise MCPError(INTERNAL_ERROR, f"Internal error {short_id}") from None
        if ctx.method in ("initialize", "server/discover") and isinstance(result, dict):
            # The SDK omits the first over HTTP, and declares changes of the others as soon as clients can subscribe.
            result["capabilities"].update(tools={"listChanged": True}, resources={}, prompts={})
        return result


def _opens(context: Context, mcp_caller: McpCaller) -> tuple[bool, bool]:
    """Whether the client's user may be asked, and whether its model may be."""
    return mcp_caller.may_be_asked and can_be_asked(context), mcp_caller.may_lend and lends_its_model(context)


def _not_storable(spec: FunctionSpec, error: StoreError, texts: Phrases) -> CallToolResult:
    _log.error("call_not_kept", function=spec.name, problem=str(error))
    return tool_error(ErrorCode.UNKNOWN_OUTCOME.value, texts.say("mcp.not_kept"))


def _place(specs: Sequence[FunctionSpec], cursor: str | None) -> int:
    """Index of the page that starts with the function `cursor`; 0 without a cursor. Raises MCPError if there is no such
    function."""
    if cursor is None:
        return 0
    for place, spec in enumerate(specs):
        if spec.name == cursor:
            return place
    raise MCPError(INVALID_PARAMS, "This page is not there any more; list from the beginning")
