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
    ListToolsResult,
    PaginatedRequestParams,
)
from pydantic import ValidationError

from bot.direct_calls import Called, DirectCalls, stopped
from bot.mcp_callers import McpCaller
from bot.mcp_content import tool_definition, tool_error, tool_result
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
_log = structlog.get_logger("mcp")

Context = ServerRequestContext[Any, Any]
Whose = Callable[[Context], McpCaller]
"""Who sent a request."""


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
        self._running: set[anyio.CancelScope] = set()
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

    async def drain(self, seconds: float) -> None:
        """End the streams that wait for changes, and return when no call runs any more; what still does after `seconds`
        is stopped, and its caller told."""
        self._listening.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        if self._telling is not None:
            self._telling.cancel()
        for running in self._running:
            running.cancel()
        await self._idle.wait()

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

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
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
        if len(self._running) >= _MOST_CALLS:
            return tool_error(ErrorCode.TRANSIENT.value, texts.say("mcp.busy"))
        steps = 0

        async def progress(text: str) -> None:
            nonlocal steps
            steps += 1
            await context.session.report_progress(steps, None, text)

        running = anyio.CancelScope()
        self._running.add(running)
        self._idle.clear()
        called = None
        try:
            with running:
                called = await self._calls.call(caller, spec.name, params.arguments or {}, status=progress)
        except StoreError as error:
            _log.error("call_not_kept", function=spec.name, problem=str(error))
            return tool_error(ErrorCode.UNKNOWN_OUTCOME.value, texts.say("mcp.not_kept"))
        finally:
            self._running.discard(running)
            if not self._running:
                self._idle.set()
        if called is None:
            called = Called(stopped(spec, texts))
        return tool_result(called, spec, caller.chat, texts)

    def _remember(self, context: Context) -> None:
        session_id = context.request.headers.get("mcp-session-id", "") if context.request is not None else ""
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


def _place(specs: Sequence[FunctionSpec], cursor: str | None) -> int:
    """Where the page begins that `cursor`, the name of its first function, asks for."""
    if cursor is None:
        return 0
    for place, spec in enumerate(specs):
        if spec.name == cursor:
            return place
    raise MCPError(INVALID_PARAMS, "This page is not there any more; list from the beginning")
