"""The web routes of the HTTP platform."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Sequence

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bot.platforms.base import Accepted
from bot.platforms.http import HttpPlatform
from bot.platforms.http_callers import Caller
from bot.platforms.http_stream import PAGE, EventStream
from bot.platforms.http_wire import MAX_BODY_BYTES, Refusal, read_posted, with_cursor
from services.json_values import JsonValue
from services.store.http_events import Event, Viewer
from services.store.port import StoreError

_MAX_CHAT_CHARS = 100
_MAX_CURSOR = 2**63 - 1
_MAX_WAIT_SECONDS = 60
_BODY_SECONDS = 15.0


def authenticate(platforms: Sequence[HttpPlatform], request: Request) -> tuple[HttpPlatform, Caller]:
    """The platform that knows the request's kind of credentials, and who calls. Raises Refusal (401)."""
    for platform in platforms:
        if platform.callers.claims(request):
            return platform, platform.callers.identify(request)
    raise Refusal(401, "unauthorized", "this needs a token")


def chat_routes(platforms: Sequence[HttpPlatform]) -> list[Route]:
    """The routes of all HTTP platforms: a request belongs to the one that knows its kind of credentials."""

    async def post_message(request: Request) -> Response:
        platform, caller = authenticate(platforms, request)
        chat = _chat_of(request)
        accepted = await platform.receive(caller, chat, read_posted(await body_of(request)))
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
            raise Refusal(503, "unavailable", "the events cannot be read now", retry_after_seconds=2) from error

    return [
        Route("/api/v1/chats/{chat}/messages", post_message, methods=["POST"]),
        Route("/api/v1/chats/{chat}/events", get_events, methods=["GET"]),
    ]


def _check_room(platform: HttpPlatform, member: str, seconds: int | None) -> None:
    """Return when a stream, or a poll that waits so many seconds, may begin. Raises Refusal (429, 503)."""
    feed, limits = platform.feed, platform.stream_limits
    if seconds and member and feed.listeners.of(member) >= limits.streams_per_member:
        raise Refusal(429, "too_many_streams", "too many streams of this member are open", retry_after_seconds=5)
    if feed.ended or (seconds != 0 and not feed.listeners.make_room(member, limits.streams)):
        raise Refusal(503, "unavailable", "too many streams are open", retry_after_seconds=5)


async def _start(request: Request, platform: HttpPlatform, chat: str, viewer: Viewer) -> tuple[int, list[Event]]:
    """Where a reader begins, and what it is told first."""
    cursor = request.headers.get("last-event-id") or request.query_params.get("after")
    last = request.query_params.get("last")
    if cursor is not None or last is None:
        return _number("after", cursor or "0", 0, _MAX_CURSOR), []
    newest = await platform.feed.newest(chat, _number("last", last, 1, 1000), viewer)
    return (newest[-1].id if newest else 0), newest


async def _poll(
    platform: HttpPlatform, chat: str, viewer: Viewer, cursor: int, first: list[Event], seconds: int
) -> JsonValue:
    """The events after `cursor` as one JSON object, waiting up to `seconds` for the first."""
    until = time.monotonic() + seconds
    with platform.feed.listen(chat, viewer.member) as listener:
        while True:
            listener.forget()
            events = first + await platform.feed.after(chat, cursor, PAGE, viewer)
            left = until - time.monotonic()
            if listener.is_superseded:
                break
            if listener.is_dismissed():
                raise Refusal(401, "unauthorized", "the token was changed meanwhile")
            if events or left <= 0 or platform.feed.ended:
                break
            await listener.wait(min(left, platform.stream_limits.poll_seconds))
    return {
        "events": [orjson.Fragment(with_cursor(event.body, event.id)) for event in events],
        "cursor": str(events[-1].id if events else cursor),
        "more": len(events) - len(first) == PAGE,
        "status": platform.feed.status(chat),
    }


async def body_of(request: Request) -> bytes:
    """The body of a request. Raises Refusal when it is too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise Refusal(413, "too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    except TimeoutError as error:
        raise Refusal(408, "too_slow", f"the body did not arrive within {_BODY_SECONDS:.0f} seconds") from error
    except ClientDisconnect as error:
        raise Refusal(400, "bad_request", "the body ended early") from error
    return bytes(body)


def json_response(value: JsonValue, status: int = 200) -> Response:
    """`value` as JSON that no cache keeps."""
    return Response(orjson.dumps(value), status, headers={"cache-control": "no-store"}, media_type="application/json")


async def answer_refusal(_request: Request, refusal: Exception) -> Response:
    """The answer to a request that raised Refusal: an exception handler for Starlette."""
    if not isinstance(refusal, Refusal):
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
        raise Refusal(400, "bad_request", f"chat: {rule}", field="chat")
    return chat


def _number(field: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
        raise Refusal(400, "bad_request", f"{field}: is a number from {least} to {most}", field=field)
    return int(text)
