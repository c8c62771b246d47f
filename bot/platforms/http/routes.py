"""Routes of the HTTP platform and server-sent event streams."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.platforms.base import Accepted
from bot.platforms.http.platform import Caller, HttpPlatform, StoredFile
from bot.platforms.http.wire import MAX_BODY_BYTES, RequestError, read_posted, status_body, with_cursor
from services.media.pictures import picture_of
from services.refs import JsonValue
from services.store.port import StoreError
from services.store.turns.http_events import Event, Viewer

PAGE = 100
# A client that does not know the event obeys `retry`; reconnecting at once would end another stream of its member.
_CLOSED = b'retry: 60000\n\ndata: {"type":"closed","reason":"too_many_streams"}\n\n'
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """The response to one stream request. Ends when the client disconnects or stalls, when the platform closes, and
    when the store fails; the client reconnects with its cursor."""

    def __init__(self, platform: HttpPlatform, chat: str, viewer: Viewer, after: int, first: list[Event]) -> None:
        """`first` are events to send before those after the cursor `after`."""
        self._platform = platform
        self._chat = chat
        self._viewer = viewer
        self._cursor = after
        self._first = first

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        streaming = asyncio.create_task(self._stream(send))
        disconnected = asyncio.create_task(_until_disconnected(receive))
        try:
            await asyncio.wait((streaming, disconnected), return_when=asyncio.FIRST_COMPLETED)
        finally:
            streaming.cancel()
            disconnected.cancel()
            results = await asyncio.gather(streaming, disconnected, return_exceptions=True)
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
        sent_status = ""
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
                if status != sent_status and len(events) < PAGE:
                    chunk += f"data: {status_body(status)}\n\n".encode()
                    sent_status = status
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


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


_MAX_CHAT_CHARS = 100
_MAX_CURSOR = 2**63 - 1
_MAX_WAIT_SECONDS = 60
_BODY_SECONDS, _UPLOAD_SECONDS = 15.0, 90.0
_UPLOADS_AT_ONCE = 16
_SOUNDS = frozenset(f"audio/{kind}" for kind in ("ogg", "opus", "mpeg", "mp4", "wav", "x-wav", "webm", "aac", "flac"))


def authenticate(platforms: Sequence[HttpPlatform], request: Request) -> tuple[HttpPlatform, Caller]:
    """The platform for the request's kind of credentials, and the caller. Raises RequestError (401)."""
    for platform in platforms:
        if platform.callers.claims(request):
            return platform, platform.callers.identify(request)
    raise RequestError(401, "unauthorized", "this needs a token")


def chat_routes(platforms: Sequence[HttpPlatform]) -> list[Route]:
    """The routes of all HTTP platforms; the kind of credentials selects the platform."""

    uploading = asyncio.Semaphore(_UPLOADS_AT_ONCE)

    async def post_message(request: Request) -> Response:
        platform, caller = authenticate(platforms, request)
        chat = _chat_of(request)
        most = platform.upload_bytes
        if not most or _has_small_body(request):
            body = await body_of(request)
        elif uploading.locked():
            raise RequestError(503, "unavailable", "too many files are being uploaded", retry_after_seconds=2)
        else:
            async with uploading:
                body = await body_of(request, MAX_BODY_BYTES + most * 4 // 3, _UPLOAD_SECONDS)
        accepted = await platform.receive(caller, chat, read_posted(body, most))
        return json_response({"accepted": True, "duplicate": accepted is Accepted.DUPLICATE}, 202)

    async def get_events(request: Request) -> ASGIApp:
        platform, caller = authenticate(platforms, request)
        chat = _chat_of(request)
        platform.callers.enter(caller, chat)
        viewer = platform.viewer(caller)
        wait = request.query_params.get("wait")
        seconds = None if wait is None else _number("wait", wait, 0, _MAX_WAIT_SECONDS)
        _check_room(platform, viewer.member, seconds)
        try:
            cursor, first = await _start(request, platform, chat, viewer)
            if seconds is None:
                return EventStream(platform, chat, viewer, cursor, first)
            return json_response(await _poll(platform, chat, viewer, cursor, first, seconds))
        except StoreError as error:
            raise RequestError(503, "unavailable", "the events cannot be read now", retry_after_seconds=2) from error

    async def get_file(request: Request) -> Response:
        platform, caller = authenticate(platforms, request)
        chat = _chat_of(request)
        platform.callers.enter(caller, chat)
        file_id = _number("file", str(request.path_params["file"]), 0, _MAX_CURSOR)
        try:
            return _file_response(await platform.file(chat, file_id, platform.viewer(caller)))
        except StoreError as error:
            raise RequestError(503, "unavailable", "the file cannot be read now", retry_after_seconds=2) from error

    return [
        Route("/api/v1/chats/{chat}/messages", post_message, methods=["POST"]),
        Route("/api/v1/chats/{chat}/files/{file}", get_file, methods=["GET"]),
        Route("/api/v1/chats/{chat}/events", get_events, methods=["GET"]),
    ]


def _check_room(platform: HttpPlatform, member: str, seconds: int | None) -> None:
    """Return if a stream, or a poll of `seconds`, may start. Raises RequestError (429, 503)."""
    feed, limits = platform.feed, platform.stream_limits
    if seconds and member and feed.listeners.of(member) >= limits.streams_per_member:
        raise RequestError(429, "too_many_streams", "too many streams of this member are open", retry_after_seconds=5)
    if feed.ended or (seconds != 0 and not feed.listeners.make_room(member, limits.streams)):
        raise RequestError(503, "unavailable", "too many streams are open", retry_after_seconds=5)


async def _start(request: Request, platform: HttpPlatform, chat: str, viewer: Viewer) -> tuple[int, list[Event]]:
    """The cursor where a reader starts, and the events to send first: the `last` newest, or none if the request has a
    cursor. Raises RequestError (400) for numbers out of range."""
    cursor = request.headers.get("last-event-id") or request.query_params.get("after")
    last = request.query_params.get("last")
    count = None if last is None else _number("last", last, 1, 1000)
    if cursor is not None or count is None:
        return _number("after", cursor or "0", 0, _MAX_CURSOR), []
    newest = await platform.feed.newest(chat, count, viewer)
    return (newest[-1].id if newest else 0), newest


async def _poll(
    platform: HttpPlatform, chat: str, viewer: Viewer, cursor: int, first: list[Event], seconds: int
) -> JsonValue:
    """The events after `cursor`, waiting up to `seconds` for the first: `events`, the new `cursor`, `more` if a page is
    full, `status`. Raises RequestError (401) if the token was changed meanwhile."""
    until = time.monotonic() + seconds
    with platform.feed.listen(chat, viewer.member) as listener:
        while True:
            listener.forget()
            events = first + await platform.feed.after(chat, cursor, PAGE, viewer)
            remaining = until - time.monotonic()
            if listener.is_superseded:
                break
            if listener.is_dismissed():
                raise RequestError(401, "unauthorized", "the token was changed meanwhile")
            if events or remaining <= 0 or platform.feed.ended:
                break
            await listener.wait(min(remaining, platform.stream_limits.poll_seconds))
    return {
        "events": [orjson.Fragment(with_cursor(event.body, event.id)) for event in events],
        "cursor": str(events[-1].id if events else cursor),
        "more": len(events) - len(first) == PAGE,
        "status": platform.feed.status(chat),
    }


def _has_small_body(request: Request) -> bool:
    """Whether the request declares a body that is no upload."""
    length = request.headers.get("content-length", "")
    return length.isdecimal() and len(length) < 19 and int(length) <= MAX_BODY_BYTES


def _file_response(file: StoredFile | None) -> Response:
    """A stored file. Only pictures and sounds are shown in a browser; other files are downloaded. Raises RequestError
    (404) for None."""
    if file is None:
        raise RequestError(404, "not_found", "there is no such file here")
    picture, media_type = picture_of(file.content), file.media_type.lower()
    if picture is not None:
        media_type = picture.media_type
    elif media_type not in _SOUNDS:
        media_type = "application/octet-stream"
    shown = "inline" if picture is not None or media_type in _SOUNDS else "attachment"
    headers = {
        "cache-control": "private, max-age=3600",
        "content-security-policy": "default-src 'none'; sandbox",
        "content-disposition": f"{shown}; filename*=UTF-8''{quote(file.name, safe='')}",
    }
    return Response(file.content, headers=headers, media_type=media_type)


async def body_of(request: Request, most_bytes: int = MAX_BODY_BYTES, seconds: float = _BODY_SECONDS) -> bytes:
    """The body of a request. Raises RequestError if it has more than `most_bytes`, or takes more than `seconds`."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > most_bytes:
                    raise RequestError(413, "too_large", f"the body is larger than {most_bytes} bytes")
    except TimeoutError as error:
        raise RequestError(408, "too_slow", f"the body did not arrive within {seconds:.0f} seconds") from error
    except ClientDisconnect as error:
        raise RequestError(400, "bad_request", "the body ended early") from error
    return bytes(body)


def json_response(value: JsonValue, status: int = 200) -> Response:
    """`value` as JSON with caching disabled."""
    return Response(orjson.dumps(value), status, headers={"cache-control": "no-store"}, media_type="application/json")


async def answer_refusal(_request: Request, refusal: Exception) -> Response:
    """Exception handler that answers a RequestError with its status and headers; re-raises other exceptions."""
    if not isinstance(refusal, RequestError):
        raise refusal
    response = json_response(refusal.as_json(), refusal.status)
    if refusal.retry_after_seconds is not None:
        response.headers["retry-after"] = str(refusal.retry_after_seconds)
    if refusal.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def _chat_of(request: Request) -> str:
    chat = unicodedata.normalize("NFC", str(request.path_params["chat"]))
    if not chat.strip() or len(chat) > _MAX_CHAT_CHARS or not chat.isprintable():
        rule = f"is 1 to {_MAX_CHAT_CHARS} characters without control characters"
        raise RequestError(400, "bad_request", f"chat: {rule}", field="chat")
    return chat


def _number(field: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
        raise RequestError(400, "bad_request", f"{field}: is a number from {least} to {most}", field=field)
    return int(text)
