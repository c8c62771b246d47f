"""Permanent grants of chats: cached in memory, stored in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.store.chats import chat_settings
from services.store.ids import Ids
from services.store.port import Row, Store, Write
from services.store.turns import audit

COUNTER = "grants"
"""Change counter of the grants."""
CODE_CHARS = 6
"""Length of the digest's prefix that identifies a grant in its chat."""


class Grant(NamedTuple):
    """One exact run that a chat permits without asking."""

    digest: str
    function: str
    arguments: str
    """As shown to people."""
    granted_by: str
    """Display name of the member who granted it."""
    granted_ms: int
    """Milliseconds since 1970 UTC."""

    @property
    def code(self) -> str:
        """Short code for use by members."""
        return self.digest[:CODE_CHARS]


class Grants:
    """The permanent grants of all chats. Call `load` first."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._holding: set[tuple[str, str]] = set()
        self._revocations = 0

    async def load(self) -> None:
        """Load the active grants; before that none is active."""
        before: int | None = None
        # Rows that were read during a revocation may be older than it.
        while before != self._revocations:
            before, rows = self._revocations, await self._store.read(chat_settings.HOLDING)
        self._holding = {(row["chat"], row["digest"]) for row in rows}

    def holds(self, chat: ChatRef, digest: str) -> bool:
        """Whether the chat permits the run with that digest without asking; from memory."""
        return (chat.key, digest) in self._holding

    def give(
        self, chat: ChatRef, digest: str, *, function: str, arguments: str, by: MemberRef, by_name: str
    ) -> list[Write]:
        """Grant the run with that digest now, in memory; the returned writes (grant, audit row and change
        counter), which the caller commits, make it durable."""
        self._holding.add((chat.key, digest))
        now_ms = self._clock.now_ms()
        return [
            chat_settings.give(
                id=self._ids.next(),
                chat=chat.key,
                digest=digest,
                function=function,
                arguments=arguments,
                given_by=by.key,
                given_by_name=by_name,
                given_ms=now_ms,
            ),
            self._noted(chat, by, "grant", f"{function} {digest[:CODE_CHARS]}", now_ms),
            audit.touch(COUNTER),
        ]

    async def add(self, chat: ChatRef, digest: str, **facts: Any) -> None:
        """`give` with the same `facts`, and commit; nothing if the chat has the grant."""
        if not self.holds(chat, digest):
            await self._store.commit(self.give(chat, digest, **facts))

    def allowed(self, chat: ChatRef, digest: str, *, function: str, by: MemberRef) -> Write:
        """Audit row of the approval of a single run, for the unit that stores its intent."""
        return self._noted(chat, by, "approve", f"{function} {digest[:CODE_CHARS]}", self._clock.now_ms())

    async def of(self, chat: ChatRef) -> Sequence[Grant]:
        """Active grants of the chat, oldest first."""
        return [_grant(row) for row in await self._store.read(chat_settings.of_chat(chat.key))]

    async def revoke(self, chat: ChatRef, code: str, by: MemberRef) -> Grant | None:
        """Revoke the grant with that code (with or without `#`) or digest, at once and durably, and return it; None if
        the chat has none."""
        wanted = code.casefold().lstrip("#")
        found = next((one for one in await self.of(chat) if wanted in (one.code, one.digest)), None)
        if found is None:
            return None
        now_ms = self._clock.now_ms()
        # Effective at once, even if the disk is slow.
        self._drop(chat, found.digest)
        note = self._noted(chat, by, "revoke", f"{found.function} {found.code}", now_ms)
        revoked = chat_settings.revoke(chat.key, found.digest, by.key, now_ms)
        await self._store.commit([revoked, note, audit.touch(COUNTER)])
        self._drop(chat, found.digest)
        return found

    def _drop(self, chat: ChatRef, digest: str) -> None:
        self._holding.discard((chat.key, digest))
        self._revocations += 1

    def _noted(self, chat: ChatRef, by: MemberRef, action: str, detail: str, now_ms: int) -> Write:
        return audit.note(id=self._ids.next(), at_ms=now_ms, actor=by.key, chat=chat.key, action=action, detail=detail)


def _grant(row: Row) -> Grant:
    return Grant(row["digest"], row["function"], row["arguments"], row["given_by_name"], row["given_ms"])
