"""Our functions for other programs, by the Model Context Protocol: which there are, and calls of them. Whoever calls
goes through the same `invoke` as everybody else; this is only another way to it."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import structlog
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
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SetLevelRequestParams,
)
from pydantic import ValidationError

from bot.direct_calls import Called, DirectCalls, Status, stopped
from bot.mcp_callers import McpCaller
from bot.mcp_content import tool_definition, tool_error, tool_result
from bot.mcp_questions import OverTheStream, Waiting, can_be_asked, comes_in_rounds
from bot.mcp_rounds import CallInRounds, Rounds
from bot.mcp_sessions import gone_from
from bot.mcp_status import Statuses, session_of
from bot.mcp_words import ModelOverTheStream, lends_its_model
from bot.version import VERSION
from config.texts import Phrases
from function_calls.spec import FunctionSpec
from services.json_values import JsonObject
from services.refs import ErrorCode
from services.store.port import StoreError

NAME = "rollcall"
MOST_SESSIONS = 64
"""Conversations and open streams of programs at a time."""
_MOST_CALLS = 64
_TOOLS_ON_A_PAGE = 100
_LONGEST_NAME_SHOWN = 100
_EXPIRED = "expired"
_log = structlog.get_logger("mcp")

Context = ServerRequestContext[Any, Any]
Whose = Callable[[Context], McpCaller]
"""Who sent a request."""
_Stops = anyio.CancelScope | asyncio.Task[Called]


class McpServer:
    """Serves one kind of callers, over any transport."""

    def __init__(self, calls: DirectCalls, whose: Whose, texts: Phrases, bot_name: str) -> None:
        """`texts` and `bot_name` are for what is said of the server before anybody has called."""
        self._calls = calls
        self._whose = whose
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus, max_subscriptions=MOST_SESSIONS)
        self._told: OrderedDict[str, ServerSession] = OrderedDict()
        """Whom to tell of changes, by their sessions: those that have asked what there is."""
        self._telling: asyncio.Task[None] | None = None
        self._untold = False
        self._running: set[_Stops] = set()
        self._waiting = Waiting()
        self._rounds = Rounds(self._waiting)
        self._gone = asyncio.Event()
        self._statuses = Statuses()
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
            on_subscriptions_listen=self._listening,
        )
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._statuses.set_level)
        self.server.middleware.append(self._guarded)

    @property
    def options(self) -> Any:
        """How a conversation over a pipe begins."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    def functions_changed(self) -> None:
        """Tell programs that there are other functions now. To be called in the event loop, after each publish."""
        self._untold = True
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    def forget(self, session_id: str) -> None:
        """That session has ended."""
        self._told.pop(session_id, None)
        self._statuses.forget(session_id)

    def hang_up(self) -> None:
        """Nobody answers any more what functions ask; who is at the other end of a pipe still hears what comes."""
        self._gone.set()
        self._rounds.expire()

    async def drain(self, seconds: float) -> None:
        """End the streams that wait for changes, and return when no call runs any more; what still does after `seconds`
        is stopped, and its caller told."""
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

    async def _tell(self) -> None:
        while self._untold:
            # What is published in one go is told once.
            await asyncio.sleep(0)
            self._untold = False
            await self._bus.publish(ToolsListChanged())
            for session in list(self._told.values()):
                await session.send_tool_list_changed()

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        whose = self._whose(context)
        self._remember(context)
        if whose.unserved(self._calls.chats) is not None:
            return ListToolsResult(tools=[])
        caller = whose.now
        functions = self._calls.functions(caller.chat)
        specs = [spec for spec in self._calls.callable_by(caller) if whose.may_name(spec)]
        begin = _place(specs, params.cursor if params is not None else None)
        page, rest = specs[begin : begin + _TOOLS_ON_A_PAGE], specs[begin + _TOOLS_ON_A_PAGE :]
        return ListToolsResult(
            tools=[tool_definition(spec, functions.offered_name(spec.name)) for spec in page],
            next_cursor=rest[0].name if rest else None,
        )

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        whose = self._whose(context)
        caller = whose.now
        texts = self._calls.chats.profile(caller.chat).texts
        unserved = whose.unserved(self._calls.chats)
        if unserved is not None:
            text = texts.say("mcp.not_served", chat=unserved.chat, detail=unserved.setting)
            return tool_error(ErrorCode.REFUSED.value, text)
        spec = self._calls.functions(caller.chat).find(params.name)
        if spec is None or not whose.may_name(spec):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:_LONGEST_NAME_SHOWN]}")
        if len(self._running) - len(self._waiting) >= _MOST_CALLS and params.request_state is None:
            return tool_error(ErrorCode.TRANSIENT.value, texts.say("mcp.busy"))
        asks, lends = _opens(context, whose)
        if (asks or lends) and comes_in_rounds(context):
            return await self._call_in_rounds(context, params, whose, spec, texts)
        status = self._status(spec, lambda: context)
        gone = [one for one in (self._gone, gone_from(context)) if one is not None]
        person = OverTheStream(context, whose, texts, self._waiting, gone) if asks else None
        model = ModelOverTheStream(context, whose, self._waiting, gone) if lends else None
        running = anyio.CancelScope()
        called = None
        self._began(running)
        try:
            with running:
                called = await self._calls.call(
                    caller, spec.name, params.arguments or {}, status=status, person=person, model=model
                )
        except StoreError as error:
            return _not_kept(spec, error, texts)
        finally:
            self._ended(running)
        return tool_result(called or Called(stopped(spec, texts)), spec, caller.chat, texts)

    async def _call_in_rounds(
        self, context: Context, params: CallToolRequestParams, whose: McpCaller, spec: FunctionSpec, texts: Phrases
    ) -> CallToolResult | InputRequiredResult:
        """What a call gave, or what its client has to ask first: it comes back with the answer."""
        caller = whose.now
        if params.request_state is None:
            one = CallInRounds(self._rounds, context, whose, texts, params)
            status = self._status(spec, lambda: one.context)
            asks, lends = _opens(context, whose)
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
        else:
            known = self._rounds.take(params.request_state, whose, params)
            if known is None:
                return tool_error(_EXPIRED, texts.say("mcp.expired"))
            one = known
            one.go_on(context, whose, params)
        asked = await one.next()
        if asked is not None:
            return asked
        try:
            called = one.called or Called(stopped(spec, texts))
        except StoreError as error:
            return _not_kept(spec, error, texts)
        return tool_result(called, spec, caller.chat, texts)

    def _status(self, spec: FunctionSpec, context: Callable[[], Context]) -> Status:
        """Tells whoever waits what goes on. `context`: of the request that waits now."""
        steps = 0

        async def tell(text: str) -> None:
            nonlocal steps
            steps += 1
            await self._statuses.tell(context(), spec.name, steps, text)

        return tell

    def _began(self, running: _Stops) -> None:
        self._running.add(running)
        self._idle.clear()

    def _ended(self, running: _Stops) -> None:
        self._running.discard(running)
        if not self._running:
            self._idle.set()

    def _remember(self, context: Context) -> None:
        session_id = session_of(context)
        self._told[session_id] = context.session
        self._told.move_to_end(session_id)
        if len(self._told) > MOST_SESSIONS:
            self._told.popitem(last=False)

    def _input_schema(self, name: str) -> JsonObject | None:
        """What the library compares a call's headers with."""
        for bot in self._calls.chats.bots:
            spec = self._calls.functions_of(bot).find(name)
            if spec is not None:
                return spec.parameters
        return None

    async def _guarded(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A failure of ours reaches nobody in its own words. And a conversation that begins is told of changes."""
        try:
            result = await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception as error:  # noqa: BLE001 - the border of the protocol: the library would pass its text on
            short_id = uuid.uuid4().hex[:8]
            _log.error("mcp_request_failed", method=ctx.method, id=short_id, exc_info=error)
            raise MCPError(INTERNAL_ERROR, f"Internal error {short_id}") from None
        if ctx.method == "initialize" and isinstance(result, dict):
            # The HTTP transport makes its own options, without this.
            result["capabilities"]["tools"]["listChanged"] = True
        return result


def _opens(context: Context, whose: McpCaller) -> tuple[bool, bool]:
    """Whether the client's user may be asked, and its model."""
    return whose.may_be_asked and can_be_asked(context), whose.may_lend and lends_its_model(context)


def _not_kept(spec: FunctionSpec, error: StoreError, texts: Phrases) -> CallToolResult:
    _log.error("call_not_kept", function=spec.name, problem=str(error))
    return tool_error(ErrorCode.UNKNOWN_OUTCOME.value, texts.say("mcp.not_kept"))


def _place(specs: Sequence[FunctionSpec], cursor: str | None) -> int:
    """Where the page begins that `cursor`, the name of its first function, asks for."""
    if cursor is None:
        return 0
    for place, spec in enumerate(specs):
        if spec.name == cursor:
            return place
    raise MCPError(INVALID_PARAMS, "This page is not there any more; list from the beginning")
