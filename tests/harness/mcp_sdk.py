"""An MCP server written with the SDK, for the protocol of 2026: over HTTP in the test's event loop, or as a program
over standard input and output."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from starlette.types import ASGIApp, Receive, Scope, Send

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Played:
    """Tools of the server and the recorded requests. `tools` may be changed at any time; `changed` notifies
    subscribers."""

    def __init__(self) -> None:
        self.tools = [
            types.Tool(name="echo", description="Says it again.", input_schema=NOTHING),
            types.Tool(name="count", description="Counts to four.", input_schema=NOTHING),
            types.Tool(name="sleep", description="Takes long.", input_schema=NOTHING),
            types.Tool(name="ask", description="Wants a model.", input_schema=NOTHING),
            types.Tool(name="form", description="Asks its user.", input_schema=NOTHING),
            types.Tool(name="form_twice", description="Asks its user twice.", input_schema=NOTHING),
        ]
        self.says = ""
        """Text of every tool result; empty: the arguments of the call."""
        self.calls: list[str] = []
        self.answers: list[tuple[str | None, dict[str, Any]]] = []
        """State and answers of the calls of `form` and `form_twice`."""
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            "played",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    @property
    def listeners(self) -> int:
        """Number of clients that subscribe to changes."""
        return len(self._bus._listeners)

    async def changed(self) -> None:
        """Notify subscribers that the tools have changed."""
        await self._bus.publish(ToolsListChanged())

    async def _list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools)

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> Any:
        self.calls.append(params.name)
        self.begun.set()
        match params.name:
            case "sleep":
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case "count":
                for number in range(1, 5):
                    await context.session.report_progress(number, 4, "words of the server")
            case "form" | "form_twice":
                return self._ask(params)
            case "ask":
                asked = types.CreateMessageRequestParams(messages=[], max_tokens=10)
                return types.InputRequiredResult(input_requests={"one": types.CreateMessageRequest(params=asked)})
        text = types.TextContent(type="text", text=self.says or json.dumps(params.arguments))
        return types.CallToolResult(content=[text])

    def _ask(self, params: types.CallToolRequestParams) -> Any:
        """Result of a call that asks its user for a name; `form_twice` asks again with another state."""
        answers = {key: one.model_dump(exclude_none=True) for key, one in (params.input_responses or {}).items()}
        self.answers.append((params.request_state, answers))
        if len(self.answers) > (2 if params.name == "form_twice" else 1):
            return types.CallToolResult(content=[types.TextContent(text=json.dumps(answers))])
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        form = types.ElicitRequestFormParams(message="Who are you?", requested_schema=schema)
        requests: types.InputRequests = {"who": types.ElicitRequest(params=form)}
        return types.InputRequiredResult(input_requests=requests, request_state=f"state {len(self.answers)}")


class Asked:
    """An ASGI app that records the headers of all requests. The app `instead`, if set, answers them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.headers: list[dict[str, str]] = []
        self.instead: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
            if self.instead is not None:
                await self.instead(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Served(uvicorn.Server):
    """A server without signal handlers that reports when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.answering.set()


@asynccontextmanager
async def over_http(played: Played, *, port: int = 0, json_response: bool = False) -> AsyncIterator[tuple[str, Asked]]:
    """URL of the server on 127.0.0.1, and the recorder of its requests."""
    app = Asked(played.server.streamable_http_app(json_response=json_response))
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1)
    server = _Served(config)
    serving = asyncio.create_task(server.serve())
    try:
        await server.answering.wait()
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp", app
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving


async def main() -> None:
    """Run as a program."""
    server = Played().server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
