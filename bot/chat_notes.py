"""What scripts want models to know in chats: kept with who caused it, and in force at once."""

from __future__ import annotations

from collections.abc import Sequence

from bot.chats import Chats
from function_calls.profile import ChatNote
from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.store import changes, chat_notes
from services.store.port import Store, Write

_MOST_NOTES = 20
_MOST_CHARS = 8000


class StoredChatNotes:
    """Writes the notes of chats."""

    def __init__(self, chats: Chats, store: Store, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock

    def of(self, chat: ChatRef) -> Sequence[ChatNote]:
        """What models are told in `chat`, the oldest first."""
        return self._chats.notes(chat)

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Tell it, in the place of what was told under its name. Nothing where it is told already. Raises ValueError,
        which says why, where it is more than a chat may have."""
        before = self._chats.notes(chat)
        if note in before:
            return
        notes = [*(one for one in before if one.name != note.name), note]
        if len(notes) > _MOST_NOTES:
            raise ValueError(f"a chat has {_MOST_NOTES} notes for models at most")
        if sum(len(one.words) for one in notes) > _MOST_CHARS:
            raise ValueError(f"all that models are told in a chat has {_MOST_CHARS} characters at most")
        write = chat_notes.put(
            chat.key,
            note.name,
            note.words,
            is_instruction=note.is_instruction,
            set_by=by.key,
            at_ms=self._clock.now_ms(),
        )
        await self._change(chat, [write], notes)

    async def clear(self, chat: ChatRef, name: str = "") -> None:
        """Tell no more what stands under that name; without one nothing at all."""
        before = self._chats.notes(chat)
        left = [one for one in before if name and one.name != name]
        if len(left) != len(before):
            write = chat_notes.remove(chat.key, name) if name else chat_notes.clear(chat.key)
            await self._change(chat, [write], left)

    async def _change(self, chat: ChatRef, writes: Sequence[Write], notes: Sequence[ChatNote]) -> None:
        await self._store.commit([*writes, changes.touch("chat_notes")])
        self._chats.has_notes(chat, notes)
