"""Events as a stream (server-sent events) that cannot outgrow memory and notices when nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive, Scope, Send

from bot.platforms.http import HttpPlatform
from bot.platforms.http_wire import status_body, with_cursor
from services.store.http_events import Event, Viewer
from services.store.port import StoreError

PAGE = 100
# A client that does not know the event obeys `retry`: to come back at once would end another stream of its member's.
_CLOSED = b'retry: 60000\n\ndata: {"type":"closed","reason":"too_many_streams"}\n\n'
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """The answer to one stream request. It ends when the client goes away or stalls, when the platform closes, and
    when the store fails; a client then comes back with its cursor."""

    def __init__(self, platform: HttpPlatform, chat: str, viewer: Viewer, after: int, first: list[Event]) -> None:
        """`first` are events that come before those after the cursor `after`."""
        self._platform = platform
        self._chat = chat
        self._viewer = viewer
        self._cursor = after
        self._first = first

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        streaming = asyncio.create_task(self._stream(send))
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await asyncio.wait((streaming, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            streaming.cancel()
            gone.cancel()
            results = await asyncio.gather(streaming, gone, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, (TimeoutError, StoreError)):
                raise result

    async def _stream(self, send: Send) -> None:
        stalled_seconds = self._platform.stream_limits.stalled_seconds
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async for chunk in self._chunks():
            async with asyncio.timeout(stalled_seconds):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self) -> AsyncIterator[bytes]:
        feed, limits = self._platform.feed, self._platform.stream_limits
        yield b"retry: 1000\n\n" + _as_chunk(self._first)
        told_status = ""
        silent_seconds = 0.0
        member = self._viewer.member
        with feed.listen(self._chat, member, limits.streams_per_member if member else 0) as listener:
            while not feed.ended and not listener.is_dismissed():
                listener.forget()
                events = await feed.after(self._chat, self._cursor, PAGE, self._viewer)
                if listener.is_dismissed():
                    break
                status = feed.status(self._chat)
                chunk = _as_chunk(events)
                if status != told_status and len(events) < PAGE:
                    chunk += f"data: {status_body(status)}\n\n".encode()
                    told_status = status
                if events:
                    self._cursor = events[-1].id
                if chunk or silent_seconds >= limits.heartbeat_seconds:
                    yield chunk or b": still here\n\n"
                    silent_seconds = 0.0
                if len(events) < PAGE and not await listener.wait(limits.poll_seconds):
                    silent_seconds += limits.poll_seconds
        if listener.is_superseded:
            yield _CLOSED


def _as_chunk(events: list[Event]) -> bytes:
    return "".join(f"id: {event.id}\ndata: {with_cursor(event.body, event.id)}\n\n" for event in events).encode()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
