"""The chat page: its routes, its members and their signed ids, and the owner link."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.platforms.base import CommandHint
from bot.platforms.http.platform import PRIVATE_PREFIX, Caller, Speaker, is_visible, skeletons
from bot.platforms.http.routes import body_of, json_response
from bot.platforms.http.wire import Name, PostedSender, RequestError, read_body
from config.terms import is_timezone
from services.clock import Clock
from services.refs import Role
from services.store.chats import members
from services.store.port import Conflict, Store, StoreError

TOKEN_HEADER = "x-rollcall-member"  # noqa: S105 - the name of a header
TOKEN_QUERY = "token"  # noqa: S105 - the name of a query parameter
COOKIE = "rollcall_member"
MAX_NAME_CHARS = 40
_KEY_BYTES = 32


def page_key(folder: Path) -> bytes:
    """The secret in `folder` that signs page members' ids; created at the first start, readable by its owner only.
    Raises OSError, and ValueError if the file is no such key."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "page_members.key"
    if not file.exists():
        # Processes of a cluster may start at the same time: each sees the whole key of the first.
        own = folder / f"page_members.{secrets.token_hex(8)}.new"
        with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
            new.write(secrets.token_bytes(_KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())
        with suppress(FileExistsError):
            os.link(own, file)
        own.unlink()
    key = file.read_bytes()
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{file}: is not a key of {_KEY_BYTES} bytes; remove it and a new one is made")
    return key


class Signer:
    """Signs values with the page key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, value: str) -> str:
        """`value` with a signature that is valid for `purpose` only."""
        return f"{value}.{self._signature(purpose, value)}"

    def read(self, purpose: str, signed: str) -> str | None:
        """The value, or None if the signature is not valid for `purpose`."""
        value, _, signature = signed.rpartition(".")
        if not value or not hmac.compare_digest(signature.encode(), self._signature(purpose, value).encode()):
            return None
        return value

    def _signature(self, purpose: str, value: str) -> str:
        digest = hmac.digest(self._key, f"{purpose}\n{value}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class OwnerLink:
    """A link that makes the first person who opens it owner. The store has only its hash."""

    def __init__(self, token: str) -> None:
        self._token = token

    @classmethod
    async def make(cls, store: Store, clock: Clock) -> OwnerLink:
        """A new link, which invalidates earlier unused ones. Raises StoreError."""
        token = secrets.token_urlsafe(24)
        await store.commit(members.new_link(_hash(token), clock.now_ms()))
        return cls(token)

    def url(self, base: str) -> str:
        """The link for a page at `base`, such as `http://127.0.0.1:8080`."""
        return f"{base.rstrip('/')}/?owner={self._token}"


class Owners:
    """Owners of the bot on the chat page."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._members: set[str] = set()

    async def load(self) -> None:
        """Load the owners from the store, once at the start. Raises StoreError."""
        self._members = {row["member"] for row in await self._store.read(members.ALL_OWNERS)}

    def role(self, member: str) -> Role:
        """OWNER if the member has opened an owner link, else MEMBER."""
        return Role.OWNER if member in self._members else Role.MEMBER

    async def redeem(self, token: str, member: str) -> bool:
        """Make `member` owner with the token of a link; False if it is unknown or used. Raises StoreError."""
        try:
            await self._store.commit(members.use_link(_hash(token), member, self._clock.now_ms()))
        except Conflict:
            return False
        self._members.add(member)
        return True


class PageMembers:
    """People on the chat page, as callers of the HTTP platform. Identified by token only, never by name."""

    def __init__(
        self, signer: Signer, owners: Owners, *, bot_names: Iterable[str], max_role: Role = Role.OWNER
    ) -> None:
        """`bot_names`: names that look like one of these are rejected."""
        self._signer = signer
        self._owners = owners
        self._bot_names = frozenset(form for name in bot_names for form in skeletons(name))
        self._max_role = max_role

    def check_name(self, field: str, name: str) -> None:
        """Return if `name` may be used as a display name. Raises RequestError (400) with the field."""
        if len(name) > MAX_NAME_CHARS or not is_visible(name):
            rule = f"{field}: is 1 to {MAX_NAME_CHARS} characters, not only invisible ones"
            raise RequestError(400, "bad_request", rule, field=field)
        if not self._bot_names.isdisjoint(skeletons(name)):
            raise RequestError(400, "name_taken", f"{field}: is the bot's, or looks like it", field=field)

    def new_id(self) -> str:
        """A new unique id: 16 random hexadecimal digits."""
        return secrets.token_hex(8)

    def token(self, member: str) -> str:
        """Token that identifies `member` in a header or a stream's URL."""
        return self._signer.sign("token", member)

    def cookie(self, member: str) -> str:
        """The same in a cookie, which can only be exchanged for a token."""
        return self._signer.sign("cookie", member)

    def member_of_cookie(self, request: Request) -> str | None:
        """The member id in the request's cookie; None without a validly signed one."""
        return self._signer.read("cookie", request.cookies.get(COOKIE, ""))

    def member_of_token(self, request: Request) -> str | None:
        """The member id in the request's token, from the header or the query; None without a validly signed one."""
        token = request.headers.get(TOKEN_HEADER) or request.query_params.get(TOKEN_QUERY, "")
        return self._signer.read("token", token)

    def claims(self, request: Request) -> bool:
        return TOKEN_HEADER in request.headers or TOKEN_QUERY in request.query_params

    def identify(self, request: Request) -> Caller:
        member = self.member_of_token(request)
        if member is None:
            raise RequestError(401, "unauthorized", "this needs a member's token from POST /api/v1/members")
        return Caller(member)

    def enter(self, caller: Caller, chat: str) -> None:
        if chat.startswith(PRIVATE_PREFIX) and chat != f"{PRIVATE_PREFIX}{caller.member}":
            raise RequestError(403, "forbidden", "this is somebody else's private chat")

    def speaker(self, caller: Caller, chat: str, posted: PostedSender) -> Speaker:
        member = caller.member or ""
        if posted.id not in (None, member):
            raise RequestError(403, "forbidden", "sender.id: is not the member of the token", field="sender.id")
        self.check_name("sender.name", posted.name)
        return Speaker(member, posted.name, self.role(chat, member))

    def role(self, _chat: str, member: str) -> Role:
        return self._owners.role(member).capped(self._max_role)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


STATIC = Path(__file__).parent / "static"
_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css"}
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_YEAR_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Room:
    """A room in the list that everybody sees."""

    id: str
    title: str


CommandHints = Callable[[str, Role], Sequence[CommandHint]]
"""Returns the commands that a role may type, described in a language (`en`, `zh-CN`)."""
SuggestZone = Callable[[str, str], Awaitable[None]]
"""Stores the IANA time zone of a page member, by id, unless the member has set one. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The settings that the page shows."""

    bot_name: str
    bot_aliases: tuple[str, ...] = ()
    rooms: tuple[Room, ...] = (Room("lobby", "Lobby"),)


class Allowance:
    """Token bucket: `burst` at once, and one more every `seconds_each`."""

    def __init__(self, clock: Clock, *, burst: int, seconds_each: float) -> None:
        self._clock = clock
        self._burst = burst
        self._seconds_each = seconds_each
        self._left = float(burst)
        self._at = clock.monotonic()

    def take(self) -> bool:
        """Whether one more is permitted now; if so, it is counted (a token bucket)."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) / self._seconds_each)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class NewMember(BaseModel):
    """Body of `POST /api/v1/members`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    fresh: bool = False
    timezone: Annotated[str, StringConstraints(max_length=64)] = ""
    """IANA name of the browser's time zone; ignored if this machine does not know it."""


class OwnerToken(BaseModel):
    """Body of `POST /api/v1/owner`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


@dataclass(eq=False, repr=False)
class ChatPage:
    """The page and its own API."""

    settings: PageSettings
    members: PageMembers
    owners: Owners
    commands: CommandHints
    clock: InitVar[Clock]
    suggest_zone: SuggestZone | None = None
    """Receives the ids of members and the time zones of their browsers."""
    upload_bytes: Callable[[], int] = lambda: 0
    """The maximum size of the files of a message; 0: none are accepted."""

    def __post_init__(self, clock: Clock) -> None:
        self._new_members = Allowance(clock, burst=60, seconds_each=1.0)
        self._owner_tries = Allowance(clock, burst=10, seconds_each=10.0)

    def routes(self, check_commands: Callable[[Request], object] | None = None) -> list[Route]:
        """All routes; the files are read now. `check_commands` raises RequestError if a request may not list the
        commands."""

        async def list_commands(request: Request) -> Response:
            if check_commands is not None:
                check_commands(request)
            return await self._list_commands(request)

        files = [Route(path, file_route(STATIC / name), methods=["GET"]) for path, name in _FILES.items()]
        return [
            *files,
            Route("/api/v1/page", self._describe, methods=["GET"]),
            Route("/api/v1/commands", list_commands, methods=["GET"]),
            Route("/api/v1/members", self._join, methods=["POST"]),
            Route("/api/v1/owner", self._become_owner, methods=["POST"]),
        ]

    async def _describe(self, _request: Request) -> Response:
        settings = self.settings
        return json_response(
            {
                "bot": {"name": settings.bot_name, "aliases": settings.bot_aliases},
                "rooms": [{"id": room.id, "title": room.title} for room in settings.rooms],
                "upload_bytes": self.upload_bytes(),
            }
        )

    async def _list_commands(self, request: Request) -> Response:
        role = self.members.role("", self.members.member_of_token(request) or "")
        hints = self.commands(request.query_params.get("language", "en")[:20], role)
        commands = [{"word": hint.word, "usage": hint.usage, "description": hint.about} for hint in hints]
        return json_response({"commands": commands})

    async def _join(self, request: Request) -> Response:
        """An id and a token: those of the request's token (to change the name), of the cookie, or new ones. `fresh`
        creates a separate member for a tab. Raises RequestError for an invalid or reserved name, and 429 for too many
        new members."""
        wanted = read_body(NewMember, await body_of(request))
        self.members.check_name("name", wanted.name)
        member = self.members.member_of_token(request)
        if member is None and not wanted.fresh:
            member = self.members.member_of_cookie(request)
        if member is None:
            if not self._new_members.take():
                raise RequestError(429, "too_many", "too many new members at once", retry_after_seconds=2)
            member = self.members.new_id()
        if self.suggest_zone is not None and is_timezone(wanted.timezone):
            with suppress(StoreError):  # the member can still set it
                await self.suggest_zone(member, wanted.timezone)
        role = self.members.role("", member)
        response = json_response({"id": member, "token": self.members.token(member), "role": role.value}, 201)
        if not wanted.fresh:
            response.set_cookie(
                COOKIE,
                self.members.cookie(member),
                max_age=_YEAR_SECONDS,
                httponly=True,
                samesite="strict",
                # A proxy terminates TLS, so only the browser knows the scheme; the guard has checked the origin.
                secure=request.headers.get("origin", "").startswith("https://"),
            )
        return response

    async def _become_owner(self, request: Request) -> Response:
        member = self.members.identify(request).member or ""
        token = read_body(OwnerToken, await body_of(request)).token
        if not self._owner_tries.take():
            raise RequestError(429, "too_many", "too many tries", retry_after_seconds=10)
        try:
            if not await self.owners.redeem(token, member):
                raise RequestError(403, "link_used", "this link is unknown or was used already", field="token")
        except StoreError as error:
            raise RequestError(503, "unavailable", "nothing was changed; try again", retry_after_seconds=2) from error
        return json_response({"role": self.members.role("", member).value})


def file_route(file: Path) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that serves the content that `file` has now, with an ETag."""
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=_MEDIA_TYPES[file.suffix])

    return serve
