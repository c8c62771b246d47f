"""A to-do list for each chat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from services.clock import Clock
from services.patterns import one_line
from services.refs import ChatRef, ErrorCode, MemberRef, RequestProblem
from services.store.chats import todos
from services.store.chats.todos import Todo
from services.store.port import Store, Write

MOST_OPEN = 200
REMEMBERED_MS = 30 * 86_400_000
_ATTEMPTS = 5
_NUMBER = re.compile(r"(?:#|no\.?\s*|number\s+|item\s+|第)?\s*(\d{1,9})\s*(?:项|个|条|号)?", re.IGNORECASE)


class Priority(StrEnum):
    """Priority of an entry, lowest first."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """The stored number: 0 for low, 1 for normal, 2 for high."""
        return list(Priority).index(self)


class Show(StrEnum):
    """Filter for the entries of a list: open, done or all."""

    OPEN = "open"
    DONE = "done"
    ALL = "all"


class State(StrEnum):
    """State that `TodoLists.update` sets: open or done."""

    OPEN = "open"
    DONE = "done"


class SeveralTodos(LookupError):
    """More than one entry has such a text: `candidates`."""

    def __init__(self, candidates: Sequence[Todo]) -> None:
        super().__init__(len(candidates))
        self.candidates = tuple(candidates)


class TodoLists:
    """The lists of all chats. Every change has the key of its call; a repeated call changes nothing and returns the
    same result. Done and removed entries are deleted after 30 days."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add(
        self, chat: ChatRef, text: str, priority: Priority, *, author: MemberRef, author_name: str, call_key: str
    ) -> Todo:
        """Add an open entry with a new number and return it. Raises RequestProblem if 200 are open."""
        now = self._clock.now_ms()
        addition = todos.add(
            chat=chat.key,
            call_key=call_key,
            author=author.key,
            author_name=one_line(author_name),
            text=one_line(text),
            priority=priority.rank,
            created_ms=now,
            most_open=MOST_OPEN,
        )
        for _ in range(_ATTEMPTS):  # another process may take the number between reading and writing
            await self._store.commit([todos.forget(chat.key, now - REMEMBERED_MS), addition])
            entries = await self._all(chat)
            added = next((entry for entry in entries if entry.call_key == call_key), None)
            if added is not None:
                return added
            if sum(not entry.is_done and not entry.is_removed for entry in entries) >= MOST_OPEN:
                break
        raise _full()

    async def entries(self, chat: ChatRef, show: Show) -> Sequence[Todo]:
        """The chat's entries, highest priority first, then by number."""
        present = [entry for entry in await self._all(chat) if not entry.is_removed]
        if show is not Show.ALL:
            present = [entry for entry in present if entry.is_done is (show is Show.DONE)]
        return sorted(present, key=lambda entry: (entry.is_done, -entry.priority, entry.number))

    async def finish(self, chat: ChatRef, which: str, *, call_key: str) -> tuple[Todo, bool]:
        """Mark and return the entry that `which` (a number or words of its text) selects as done; and whether this call
        did it. Raises RequestProblem if there is none, and SeveralTodos."""
        entries = await self._all(chat)
        ended = _ended_by(entries, call_key)
        if ended is not None:
            return ended, True
        entry = _meant(entries, which)
        if entry.is_done:
            return entry, False
        await self._store.commit([todos.finish(chat.key, entry.number, call_key=call_key, at_ms=self._clock.now_ms())])
        return entry, True

    async def update(
        self,
        chat: ChatRef,
        number: int,
        *,
        text: str | None,
        state: State | None,
        by: MemberRef,
        may_reword_any: bool,
        call_key: str,
    ) -> Todo:
        """Change the text and the state of the entry with that number; None does not change them. Raises RequestProblem
        for an unknown entry, for the text of another member's, and if it cannot be opened again."""
        entry = _numbered(await self._all(chat), number)
        changes: list[Write] = []
        if text is not None:
            if entry.author != by.key and not may_reword_any:
                raise RequestProblem("todo.not_yours_to_change", number=entry.number, author=entry.author_name)
            changes.append(todos.reword(chat.key, entry.number, one_line(text)))
        if state is State.DONE:
            changes.append(todos.finish(chat.key, entry.number, call_key=call_key, at_ms=self._clock.now_ms()))
        elif state is State.OPEN:
            changes.append(todos.reopen(chat.key, entry.number, most_open=MOST_OPEN))
        await self._store.commit(changes)
        changed = _numbered(await self._all(chat), number)
        if state is State.OPEN and changed.is_done:
            raise _full()
        return changed

    async def remove(self, chat: ChatRef, which: str, *, by: MemberRef, may_remove_any: bool, call_key: str) -> Todo:
        """Remove the entry that `which` selects and return it with its text, which is empty if this call removed it
        earlier. Raises RequestProblem for an unknown entry and that of another member, and SeveralTodos."""
        entries = await self._all(chat)
        ended = _ended_by(entries, call_key)
        if ended is not None:
            return ended
        entry = _meant(entries, which)
        if entry.author != by.key and not may_remove_any:
            raise RequestProblem("todo.not_yours", number=entry.number, author=entry.author_name)
        await self._store.commit([todos.remove(chat.key, entry.number, call_key=call_key, at_ms=self._clock.now_ms())])
        return entry

    async def _all(self, chat: ChatRef) -> list[Todo]:
        return [todos.todo(row) for row in await self._store.read(todos.everything(chat.key))]


def _ended_by(entries: Sequence[Todo], call_key: str) -> Todo | None:
    return next((entry for entry in entries if entry.ended_by == call_key), None)


def _numbered(entries: Sequence[Todo], number: int) -> Todo:
    found = [entry for entry in entries if entry.number == number and not entry.is_removed]
    if not found:
        raise _unknown(f"#{number}")
    return found[0]


def _meant(entries: Sequence[Todo], which: str) -> Todo:
    """The only entry that `matching` finds. Raises RequestProblem for none, and SeveralTodos."""
    candidates = matching(entries, which)
    if not candidates:
        raise _unknown(which)
    if len(candidates) > 1:
        raise SeveralTodos(candidates)
    return candidates[0]


def _unknown(item: str) -> RequestProblem:
    return RequestProblem("todo.not_found", ErrorCode.NOT_FOUND, fields=["item"], item=item)


def _full() -> RequestProblem:
    return RequestProblem("todo.full", most=MOST_OPEN)


class ListEntry(Protocol):
    """Entry of a list, as `matching` needs it."""

    @property
    def number(self) -> int: ...

    @property
    def text(self) -> str: ...

    @property
    def is_done(self) -> bool: ...

    @property
    def is_removed(self) -> bool: ...


Entry = TypeVar("Entry", bound=ListEntry)


def matching(entries: Sequence[Entry], which: str) -> Sequence[Entry]:
    """The entry with that number, else those with that text, else with a text containing it; open entries have
    precedence. Removed entries are left out."""
    present = [entry for entry in entries if not entry.is_removed]
    numbered = _NUMBER.fullmatch(which.strip())
    if numbered:
        found = [entry for entry in present if entry.number == int(numbered[1])]
        if found:
            return found
    wanted = one_line(which).casefold()
    same = [entry for entry in present if entry.text.casefold() == wanted]
    like = same or [entry for entry in present if wanted and wanted in entry.text.casefold()]
    return [entry for entry in like if not entry.is_done] or like
