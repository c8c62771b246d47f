"""Who is calling the HTTP platform, and as whom they may speak and listen."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr
from starlette.requests import Request

from bot.platforms.http_wire import PostedSender, Refusal
from services.refs import Role

_ROLES_KEPT = 5000
PRIVATE_PREFIX = "dm-"
"""Begins the names of private chats: `dm-` and the member's id."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A request's author, as its credentials prove it."""

    member: str | None
    """The member's id; None for a program, which speaks for anybody."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The sender of one message."""

    id: str
    name: str
    role: Role


def bears(request: Request, token: SecretStr | None) -> bool:
    """Whether `token` is the request's bearer token; never, where it is empty. Every wrong one takes the same time."""
    scheme, _, offered = request.headers.get("authorization", "").partition(" ")
    expected = "" if token is None else token.get_secret_value()
    is_same = hmac.compare_digest(offered.strip().encode(), expected.encode())
    return is_same and bool(expected) and scheme.lower() == "bearer"


class Callers(Protocol):
    """The two kinds of callers, programs and people on the page, differ only in this."""

    def claims(self, request: Request) -> bool:
        """Whether the request bears this kind of credentials, valid or not."""

    def identify(self, request: Request) -> Caller:
        """Who calls. Raises Refusal (401)."""

    def enter(self, caller: Caller, chat: str, /) -> None:
        """Return when the caller may read and write in `chat`. Raises Refusal (403)."""

    def speaker(self, caller: Caller, chat: str, posted: PostedSender, /) -> Speaker:
        """Whose message it is. Raises Refusal (400, 403)."""

    def role(self, chat: str, member: str, /) -> Role | None:
        """The member's role now; None when nobody can tell."""


class Programs:
    """Programs with the bearer token of the settings. They vouch for the senders they name, up to a role."""

    def __init__(self, token: SecretStr, max_role: Role = Role.MEMBER) -> None:
        if not token.get_secret_value():
            raise ValueError("platforms.http.token: an empty token would let everybody in")
        self._token: SecretStr | None = token
        self._max_role = max_role
        self._roles: OrderedDict[tuple[str, str], Role] = OrderedDict()

    def use(self, token: SecretStr | None, max_role: Role) -> bool:
        """From the next request on only `token` is taken, and senders have at most that role. None: nobody is let
        in. Returns whether those who came with the token before have to come again."""
        is_other, self._token = token != self._token, token
        self._max_role = max_role
        self._roles = OrderedDict((key, role.capped(max_role)) for key, role in self._roles.items())
        return is_other

    def claims(self, request: Request) -> bool:
        return "authorization" in request.headers

    def identify(self, request: Request) -> Caller:
        if not bears(request, self._token):
            raise Refusal(401, "unauthorized", "this needs the header `Authorization: Bearer <platforms.http.token>`")
        return Caller(member=None)

    def enter(self, _caller: Caller, _chat: str) -> None:
        return None

    def speaker(self, _caller: Caller, chat: str, posted: PostedSender) -> Speaker:
        if posted.id is None:
            raise Refusal(400, "bad_request", "sender.id: is required", field="sender.id")
        role = posted.role.capped(self._max_role)
        self._roles[chat, posted.id] = role
        self._roles.move_to_end((chat, posted.id))
        if len(self._roles) > _ROLES_KEPT:
            self._roles.popitem(last=False)
        return Speaker(posted.id, posted.name or posted.id, role)

    def role(self, chat: str, member: str) -> Role | None:
        return self._roles.get((chat, member))
