"""Who a person on the chat page is: a signed member id that proves itself, and the one-time link to ownership."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from starlette.requests import Request

from bot.platforms.http_callers import PRIVATE_PREFIX, Caller, Speaker
from bot.platforms.http_names import is_visible, skeletons
from bot.platforms.http_wire import PostedSender, Refusal
from services.clock import Clock
from services.refs import Role
from services.store import page_owners
from services.store.port import Conflict, Store

TOKEN_HEADER = "x-rollcall-member"  # noqa: S105 - the name of a header
TOKEN_QUERY = "token"  # noqa: S105 - the name of a query parameter
COOKIE = "rollcall_member"
MAX_NAME_CHARS = 40
_KEY_BYTES = 32


def page_key(folder: Path) -> bytes:
    """The secret in `folder` that page members' ids are signed with; made at the first start, readable by its owner
    alone. Raises OSError, and ValueError when the file is not such a key."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "page_members.key"
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
            new.write(secrets.token_bytes(_KEY_BYTES))
            new.flush()
            os.fsync(new.fileno())
    except FileExistsError:
        pass
    key = file.read_bytes()
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{file}: is not a key of {_KEY_BYTES} bytes; remove it and a new one is made")
    return key


class Signer:
    """Values that only we can have made."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, value: str) -> str:
        """`value` with a signature that holds for `purpose` alone."""
        return f"{value}.{self._signature(purpose, value)}"

    def read(self, purpose: str, signed: str) -> str | None:
        """The value, or None when the signature is not ours for `purpose`."""
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
        """A new link; earlier ones that nobody used are void. Raises StoreError."""
        token = secrets.token_urlsafe(24)
        await store.commit(page_owners.new_link(_hash(token), clock.now_ms()))
        return cls(token)

    def url(self, base: str) -> str:
        """The link, for a page at `base`, such as `http://127.0.0.1:8080`."""
        return f"{base.rstrip('/')}/?owner={self._token}"


class Owners:
    """Who owns the bot on the chat page."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._members: set[str] = set()

    async def load(self) -> None:
        """Read them from the store, once at the start. Raises StoreError."""
        self._members = {page_owners.owner_of(row) for row in await self._store.read(page_owners.owners())}

    def role(self, member: str) -> Role:
        """Owner or member."""
        return Role.OWNER if member in self._members else Role.MEMBER

    async def redeem(self, token: str, member: str) -> bool:
        """Make `member` owner by the token of a link; False when it is unknown or used. Raises StoreError."""
        try:
            await self._store.commit(page_owners.use_link(_hash(token), member, self._clock.now_ms()))
        except Conflict:
            return False
        self._members.add(member)
        return True


class PageMembers:
    """The people on the chat page, as callers of the HTTP platform. A name proves nothing: only the token counts."""

    def __init__(
        self, signer: Signer, owners: Owners, *, bot_names: Iterable[str], max_role: Role = Role.OWNER
    ) -> None:
        """`bot_names`: nobody may have a name that looks like one of these."""
        self._signer = signer
        self._owners = owners
        self._bot_names = frozenset(form for name in bot_names for form in skeletons(name))
        self._max_role = max_role

    def check_name(self, field: str, name: str) -> None:
        """Return when a person may go by `name`. Raises Refusal (400) that names the field."""
        if len(name) > MAX_NAME_CHARS or not is_visible(name):
            rule = f"{field}: is 1 to {MAX_NAME_CHARS} characters, not only invisible ones"
            raise Refusal(400, "bad_request", rule, field=field)
        if not self._bot_names.isdisjoint(skeletons(name)):
            raise Refusal(400, "name_taken", f"{field}: is the bot's, or looks like it", field=field)

    def new_id(self) -> str:
        """An id that nobody has."""
        return secrets.token_hex(8)

    def token(self, member: str) -> str:
        """What proves, in a header or a stream's address, that its bearer is `member`."""
        return self._signer.sign("token", member)

    def cookie(self, member: str) -> str:
        """The same in a cookie; of use only to get a token."""
        return self._signer.sign("cookie", member)

    def member_of_cookie(self, request: Request) -> str | None:
        """The member whose cookie the request bears."""
        return self._signer.read("cookie", request.cookies.get(COOKIE, ""))

    def member_of_token(self, request: Request) -> str | None:
        """The member whose token the request bears."""
        token = request.headers.get(TOKEN_HEADER) or request.query_params.get(TOKEN_QUERY, "")
        return self._signer.read("token", token)

    def claims(self, request: Request) -> bool:
        return TOKEN_HEADER in request.headers or TOKEN_QUERY in request.query_params

    def identify(self, request: Request) -> Caller:
        member = self.member_of_token(request)
        if member is None:
            raise Refusal(401, "unauthorized", "this needs a member's token from POST /api/v1/members")
        return Caller(member)

    def enter(self, caller: Caller, chat: str) -> None:
        if chat.startswith(PRIVATE_PREFIX) and chat != f"{PRIVATE_PREFIX}{caller.member}":
            raise Refusal(403, "forbidden", "this is somebody else's private chat")

    def speaker(self, caller: Caller, chat: str, posted: PostedSender) -> Speaker:
        member = caller.member or ""
        if posted.id not in (None, member):
            raise Refusal(403, "forbidden", "sender.id: is not the member of the token", field="sender.id")
        self.check_name("sender.name", posted.name)
        return Speaker(member, posted.name, self.role(chat, member))

    def role(self, _chat: str, member: str) -> Role:
        return self._owners.role(member).capped(self._max_role)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
