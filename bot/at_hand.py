"""What chats have at hand: kept with who took it, and in force at once."""

from __future__ import annotations

from collections.abc import Sequence

from bot.chats import Chats
from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.store import activations, audit, changes
from services.store.ids import Ids
from services.store.port import Store, Write


class StoredAtHand:
    """Writes the activations of chats."""

    def __init__(self, chats: Chats, store: Store, ids: Ids, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._ids = ids
        self._clock = clock

    def of(self, chat: ChatRef) -> Sequence[str]:
        """The names that `chat` has at hand, the oldest first."""
        return self._chats.at_hand(chat)

    async def take(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Have `names` at hand in `chat`. Nothing where it is so already: a repeated run leaves no second mark."""
        before = self._chats.at_hand(chat)
        fresh = [name for name in dict.fromkeys(names) if name not in before]
        now_ms = self._clock.now_ms()
        writes = [activations.activate(chat.key, name, by.key, now_ms) for name in fresh]
        await self._change(chat, writes, [*before, *fresh], by, f"use {' '.join(fresh)}")

    async def put_away(self, chat: ChatRef, names: Sequence[str], by: MemberRef) -> None:
        """Have `names` at hand in `chat` no more. Nothing where it is so already."""
        before = self._chats.at_hand(chat)
        gone = [name for name in dict.fromkeys(names) if name in before]
        writes = [activations.deactivate(chat.key, name) for name in gone]
        left = [name for name in before if name not in gone]
        await self._change(chat, writes, left, by, f"unuse {' '.join(gone)}")

    async def _change(
        self, chat: ChatRef, writes: Sequence[Write], names: Sequence[str], by: MemberRef, detail: str
    ) -> None:
        if not writes:
            return
        note = audit.note(
            id=self._ids.next(),
            at_ms=self._clock.now_ms(),
            actor=by.key,
            chat=chat.key,
            action="at_hand",
            detail=detail,
        )
        await self._store.commit([*writes, changes.touch("activations"), note])
        self._chats.has_at_hand(chat, names)
