"""The messages of a connection on their way past: what is listed is kept as it came, and what nobody here wants to hear
goes no further."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from services.json_values import JsonObject

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

_HEARD = frozenset(
    {
        "notifications/cancelled",
        "notifications/progress",
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    }
)
"""The notifications that something comes of. A server may send as many others as it likes, log lines above all."""


class Wire:
    """A transport that is listened to. Serves one connection."""

    def __init__(self, transport: Transport, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the other side says no more."""
        self._transport = transport
        self._on_end = on_end
        self._listings: set[str | int] = set()
        self._listed: list[Any] = []

    def take_listed(self) -> list[Any]:
        """The tools of the last page, as the server gave them."""
        listed, self._listed = self._listed, []
        return listed

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self._goes_on, self._on_end), _Writing(write, self._note)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)

    def _note(self, message: JSONRPCMessage) -> None:
        """See a message go out."""
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            self._listings.add(message.id)

    def _goes_on(self, message: JSONRPCMessage) -> bool:
        """See a message come in; whether anybody is to hear it."""
        if isinstance(message, JSONRPCNotification):
            return message.method in _HEARD
        if isinstance(message, JSONRPCResponse) and message.id in self._listings:
            self._listings.discard(message.id)
            tools = message.result.get("tools")
            if isinstance(tools, list):
                self._listed = tools
                message.result = {**message.result, "tools": [one for tool in tools if (one := _bare(tool))]}
        return True


def _bare(tool: object) -> JsonObject | None:
    """As much of a tool as the connection needs: one that is not as it should be would cost all the others, and results
    are compared with their schema elsewhere. None where there is nothing to call."""
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return None
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    known = properties.items() if isinstance(properties, Mapping) else ()
    kept = {name: one for name, one in known if isinstance(one, Mapping)}
    return {"name": tool["name"], "inputSchema": {"type": "object", "properties": kept}}


class _Reading(AbstractAsyncContextManager["_Reading"]):
    """What comes in."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        goes_on: Callable[[JSONRPCMessage], bool],
        on_end: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._goes_on = goes_on
        self._on_end = on_end

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._stream.receive()
            except (EndOfStream, ClosedResourceError, BrokenResourceError):
                self._on_end()
                raise
            if isinstance(item, Exception) or self._goes_on(item.message):
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
    """What goes out."""

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
