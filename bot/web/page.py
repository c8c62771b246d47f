"""The routes of the chat page beside its chats: the files, who is here, rooms, commands, the owner's link."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.platforms.http_routes import body_of, json_response
from bot.platforms.http_wire import Name, Refusal, read_body
from bot.web.identity import COOKIE, Owners, PageMembers
from services.clock import Clock
from services.store.port import StoreError

STATIC = Path(__file__).parent / "static"
_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css"}
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_YEAR_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Room:
    """A room that everybody sees in the list."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class CommandHint:
    """A command as the page completes it."""

    word: str
    """With the slash."""
    usage: str
    description: str


CommandHints = Callable[[str], Sequence[CommandHint]]
"""The commands that a member may type, described in a language (`en`, `zh-CN`)."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """What the page shows of the settings."""

    bot_name: str
    bot_aliases: tuple[str, ...] = ()
    rooms: tuple[Room, ...] = (Room("lobby", "Lobby"),)


class Allowance:
    """So many at once, and one more every few seconds."""

    def __init__(self, clock: Clock, *, burst: int, seconds_each: float) -> None:
        self._clock = clock
        self._burst = burst
        self._seconds_each = seconds_each
        self._left = float(burst)
        self._at = clock.monotonic()

    def take(self) -> bool:
        """Whether one more is allowed now."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) / self._seconds_each)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _NewMember(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    fresh: bool = False


class _OwnerToken(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ChatPage:
    """The page and what it asks for by itself."""

    def __init__(
        self,
        settings: PageSettings,
        members: PageMembers,
        owners: Owners,
        commands: CommandHints,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._members = members
        self._owners = owners
        self._commands = commands
        self._new_members = Allowance(clock, burst=60, seconds_each=1.0)
        self._owner_tries = Allowance(clock, burst=10, seconds_each=10.0)

    def routes(self, check_commands: Callable[[Request], object] | None = None) -> list[Route]:
        """All of them; the files are read now. `check_commands` raises Refusal where a request may not list the
        commands."""

        async def list_commands(request: Request) -> Response:
            if check_commands is not None:
                check_commands(request)
            return await self._list_commands(request)

        files = [Route(path, _file_route(STATIC / name), methods=["GET"]) for path, name in _FILES.items()]
        return [
            *files,
            Route("/api/v1/page", self._describe, methods=["GET"]),
            Route("/api/v1/commands", list_commands, methods=["GET"]),
            Route("/api/v1/members", self._join, methods=["POST"]),
            Route("/api/v1/owner", self._become_owner, methods=["POST"]),
        ]

    async def _describe(self, _request: Request) -> Response:
        settings = self._settings
        return json_response(
            {
                "bot": {"name": settings.bot_name, "aliases": settings.bot_aliases},
                "rooms": [{"id": room.id, "title": room.title} for room in settings.rooms],
            }
        )

    async def _list_commands(self, request: Request) -> Response:
        hints = self._commands(request.query_params.get("language", "en")[:20])
        commands = [{"word": hint.word, "usage": hint.usage, "description": hint.description} for hint in hints]
        return json_response({"commands": commands})

    async def _join(self, request: Request) -> Response:
        """An id and a token: those of the request's token (a member takes another name), the cookie's, or new ones.
        `fresh` is for a tab with a member of its own."""
        wanted = read_body(_NewMember, await body_of(request))
        self._members.check_name("name", wanted.name)
        member = self._members.member_of_token(request)
        if member is None and not wanted.fresh:
            member = self._members.member_of_cookie(request)
        if member is None:
            if not self._new_members.take():
                raise Refusal(429, "too_many", "too many new members at once", retry_after_seconds=2)
            member = self._members.new_id()
        role = self._members.role("", member)
        response = json_response({"id": member, "token": self._members.token(member), "role": role.value}, 201)
        if not wanted.fresh:
            response.set_cookie(
                COOKIE,
                self._members.cookie(member),
                max_age=_YEAR_SECONDS,
                httponly=True,
                samesite="strict",
                # A proxy ends TLS, so only the browser knows the scheme; the guard has checked the origin.
                secure=request.headers.get("origin", "").startswith("https://"),
            )
        return response

    async def _become_owner(self, request: Request) -> Response:
        member = self._members.identify(request).member or ""
        token = read_body(_OwnerToken, await body_of(request)).token
        if not self._owner_tries.take():
            raise Refusal(429, "too_many", "too many tries", retry_after_seconds=10)
        try:
            if not await self._owners.redeem(token, member):
                raise Refusal(403, "link_used", "this link is unknown or was used already", field="token")
        except StoreError as error:
            raise Refusal(503, "unavailable", "nothing was changed; try again", retry_after_seconds=2) from error
        return json_response({"role": self._members.role("", member).value})


def _file_route(file: Path) -> Callable[[Request], Awaitable[Response]]:
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=_MEDIA_TYPES[file.suffix])

    return serve
