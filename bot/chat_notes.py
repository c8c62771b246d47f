"""What scripts want models to know in chats: kept with who caused it, in force at once, and gone with its script."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import structlog

from bot.chats import Chats
from bot.script_schedules import stands_behind
from function_calls.ports import NotesFull
from function_calls.profile import ChatNote
from function_calls.registry import BotFunctions
from function_calls.scripts.session import NOTING
from services.basic_tools import BasicTools
from services.clock import Clock
from services.refs import ChatRef, MemberRef
from services.store import changes, chat_notes
from services.store.port import Store, Write

_MOST_NOTES = 20
_MOST_CHARS = 8000
_log = structlog.get_logger("notes")


class StoredChatNotes:
    """Writes the notes of chats."""

    def __init__(self, chats: Chats, store: Store, clock: Clock) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock

    def of(self, chat: ChatRef, bot: str) -> Sequence[ChatNote]:
        """What the models of `bot` are told in `chat`, the oldest first."""
        return [note for note in self._chats.notes(chat) if note.bot == bot]

    async def put(self, chat: ChatRef, note: ChatNote, by: MemberRef) -> None:
        """Tell it, in the place of what was told under its name. Nothing where it is told already. Raises NotesFull
        where it is more than a chat may have."""
        before = self._chats.notes(chat)
        if note in before:
            return
        left = [one for one in before if (one.bot, one.name) != (note.bot, note.name)]
        own = [note, *(one for one in left if one.bot == note.bot)]
        if len(own) > _MOST_NOTES or sum(len(one.words) for one in own) > _MOST_CHARS:
            raise NotesFull(_MOST_NOTES, _MOST_CHARS)
        write = chat_notes.put(
            chat.key,
            note.bot,
            note.name,
            note.words,
            is_instruction=note.is_instruction,
            from_outside=note.from_outside,
            from_member=bool(note.of_member),
            script=note.script,
            set_by=by.key,
            at_ms=self._clock.now_ms(),
        )
        await self._change(chat, [write], [*left, note])

    async def clear(self, chat: ChatRef, bot: str, names: Collection[str]) -> None:
        """Tell the models of `bot` no more what stands under these names."""
        before = self._chats.notes(chat)
        gone = [one for one in before if one.bot == bot and one.name in names]
        if gone:
            writes = [chat_notes.remove(chat.key, bot, one.name) for one in gone]
            await self._change(chat, writes, [one for one in before if one not in gone])

    async def _change(self, chat: ChatRef, writes: Sequence[Write], notes: Sequence[ChatNote]) -> None:
        await self._store.commit([*writes, changes.touch("chat_notes")])
        self._chats.has_notes(chat, notes)


class ScriptNotes:
    """Takes away the notes that no script stands behind any more."""

    def __init__(
        self, notes: StoredChatNotes, chats: Chats, functions: Callable[[str], BotFunctions], kept: BasicTools
    ) -> None:
        self._notes = notes
        self._chats = chats
        self._functions = functions
        self._kept = kept
        self._seen: tuple[frozenset[tuple[str, str]], dict[str, BotFunctions]] = frozenset(), {}

    async def keep_in_step(self) -> None:
        """Look through them where they, or the functions of their bots, have changed since the last time."""
        scripts = frozenset((note.bot, note.script) for notes in self._chats.all_notes.values() for note in notes)
        now = {bot: self._functions(bot) for bot, _ in scripts}
        if self._seen[0].issuperset(scripts) and all(self._seen[1].get(bot) is one for bot, one in now.items()):
            return
        active = {(row.bot, row.tool_name) for row in await self._kept.everything() if row.is_active}
        gone = {one for one in scripts if not stands_behind(NOTING, now[one[0]].find(one[1]), is_kept=one in active)}
        for key, notes in list(self._chats.all_notes.items()):
            for bot, script in sorted({(note.bot, note.script) for note in notes} & gone):
                names = [note.name for note in notes if (note.bot, note.script) == (bot, script)]
                await self._notes.clear(ChatRef.parse(key), bot, names)
                _log.info("notes_of_a_script_removed", script=script, bot=bot, chat=key)
        self._seen = scripts - gone, now
