"""Accounts of the desk: roles, password hashes and sessions."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum

from services.clock import Clock
from services.refs import MemberRef
from services.store.chats import desk_accounts
from services.store.ids import Ids
from services.store.port import Store, Write
from services.store.turns import audit
from services.timers.schedules import OPERATORS_PLATFORM

SESSION_SECONDS = 7 * 24 * 3600
_SALT_BYTES = 16
_COST, _BLOCKS = 1 << 14, 8
"""Parameters of scrypt: 16 MB and some 50 ms for each password."""


class DeskRole(StrEnum):
    """Role of an account, lowest first; each includes the rights of those before it."""

    VIEWER = "viewer"
    """Sees how the bot works, but no texts of members."""
    OPERATOR = "operator"
    """Sees chats, and changes what the bot does in them."""
    OWNER = "owner"
    """Changes settings and accounts."""

    def includes(self, role: DeskRole) -> bool:
        """Whether this role has the rights of `role`."""
        order = list(DeskRole)
        return order.index(self) >= order.index(role)


@dataclass(frozen=True, slots=True)
class Account:
    """A person who uses the desk."""

    name: str
    role: DeskRole

    @property
    def actor(self) -> str:
        """Name of the person in the audit log."""
        return f"desk:{self.name}"

    @property
    def member(self) -> MemberRef:
        """The person as a member of chats, who may answer approvals."""
        return MemberRef(OPERATORS_PLATFORM, desk_accounts.DESK, self.name)


class Accounts:
    """Accounts and sessions in the store. All methods raise StoreError."""

    def __init__(self, store: Store, ids: Ids, clock: Clock) -> None:
        self._store = store
        self._ids = ids
        self._clock = clock
        self._one_password_at_a_time = asyncio.Lock()

    async def everyone(self) -> list[Account]:
        """All accounts by name."""
        rows = await self._store.read(desk_accounts.EVERYTHING)
        return [Account(row["name"], DeskRole(row["role"])) for row in rows]

    async def put(self, account: Account, password: str, actor: str) -> None:
        """Add the account, or replace its role and password and end its sessions."""
        hashed = await self._hash(password, secrets.token_bytes(_SALT_BYTES))
        await self._store.commit(
            [
                desk_accounts.put(account.name, account.role.value, hashed, self._clock.now_ms()),
                desk_accounts.end_all(account.name),
                self.note(actor, "desk account", f"{account.name}: {account.role.value}"),
            ]
        )

    async def remove(self, name: str, actor: str) -> bool:
        """Remove an account and its sessions; False if it does not exist or is the last owner."""
        note = self.note(actor, "desk account removed", name)
        removed, *_ = await self._store.commit([desk_accounts.remove(name)])
        if removed:
            await self._store.commit([desk_accounts.end_all(name), note])
        return bool(removed)

    async def log_in(self, name: str, password: str) -> str | None:
        """The token of a new session; None for an unknown name or a wrong password, which take the same time."""
        rows = await self._store.read(desk_accounts.of_name(name))
        stored = rows[0]["password"] if rows else f"{'00' * _SALT_BYTES}:"
        hashed = await self._hash(password, bytes.fromhex(stored.partition(":")[0]))
        if not hmac.compare_digest(hashed, stored):
            return None
        token, now_ms = secrets.token_urlsafe(32), self._clock.now_ms()
        await self._store.commit(
            [
                desk_accounts.forget(now_ms),
                desk_accounts.begin(_token_hash(token), name, now_ms + SESSION_SECONDS * 1000),
                self.note(f"desk:{name}", "desk login", ""),
            ]
        )
        return token

    async def of_session(self, token: str) -> Account | None:
        """The account whose session has that token; None if there is none or it has ended."""
        if not token:
            return None
        rows = await self._store.read(desk_accounts.session(_token_hash(token), self._clock.now_ms()))
        return Account(rows[0]["name"], DeskRole(rows[0]["role"])) if rows else None

    async def log_out(self, token: str) -> None:
        """End the session with that token."""
        await self._store.commit([desk_accounts.end(_token_hash(token))])

    def note(self, actor: str, action: str, detail: str, chat: str = "") -> Write:
        """The write of an audit row, for the unit that makes the change."""
        return audit.note(
            id=self._ids.next(), at_ms=self._clock.now_ms(), actor=actor, chat=chat, action=action, detail=detail
        )

    async def _hash(self, password: str, salt: bytes) -> str:
        """Salt and hash as hexadecimal text, computed in a thread, one at a time to bound memory."""
        async with self._one_password_at_a_time:
            hashed = await asyncio.to_thread(
                hashlib.scrypt, password.encode(), salt=salt, n=_COST, r=_BLOCKS, p=1, maxmem=64 * 1024 * 1024
            )
        return f"{salt.hex()}:{hashed.hex()}"


def csrf_token(session: str) -> str:
    """The value that forms of a session have to send; known only to pages of that session."""
    return hmac.digest(session.encode(), b"desk forms", hashlib.sha256).hex()


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
