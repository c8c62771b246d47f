"""Typed state of a chat that many members change: read, change and write as one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, TypeVar

from pydantic import BaseModel, Field

from services.chats.members import KnownMember
from services.clock import Clock
from services.patterns import one_line
from services.refs import ChatRef
from services.store.chats import documents
from services.store.port import Conflict, Store

_ATTEMPTS = 50
_MOST_CALLS = 50


class Document(BaseModel):
    """Base of the kinds of documents. Every field of a kind has a default, so that an empty one is valid."""

    kind: ClassVar[str]
    version: int = Field(default=0, exclude=True)
    """Number of changes so far; set by `Documents`."""
    names: dict[str, str] = {}
    """Names of members by key when they last made a change, for those who are no longer known."""
    calls: dict[str, list[str | int]] = {}
    """Results of the latest changes by the key of their call."""


State = TypeVar("State", bound=Document)


class Documents:
    """The documents of all chats. Changes are repeated on the new state if somebody else was faster, so none is lost;
    a repeated call changes nothing and has the same result."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def now_ms(self) -> int:
        """The current time in milliseconds since 1970."""
        return self._clock.now_ms()

    async def read(self, chat: ChatRef, kind: type[State]) -> State:
        """The chat's document of that kind; an empty one before the first change."""
        rows = await self._store.read(documents.one(chat.key, kind.kind))
        state = kind.model_validate_json(rows[0]["body"]) if rows else kind()
        state.version = rows[0]["version"] if rows else 0
        return state

    async def change(
        self,
        chat: ChatRef,
        kind: type[State],
        by: Sequence[KnownMember],
        call_key: str,
        change: Callable[[State], Sequence[str | int]],
    ) -> tuple[State, Sequence[str | int]]:
        """Apply `change` to the document and return its new state, with what `change` returned. `change` may be run
        several times, each time on a fresh state, and writes nothing if it raises. `by`: the members whose names are
        kept. Raises Conflict if others are faster in every attempt."""
        for _ in range(_ATTEMPTS):
            state = await self.read(chat, kind)
            if call_key in state.calls:
                return state, state.calls[call_key]
            result, before = list(change(state)), state.version
            state.names |= {one.ref.key: one.name for one in by}
            state.calls = dict([*state.calls.items(), (call_key, result)][-_MOST_CALLS:])
            write = documents.put(
                chat.key, kind.kind, before=before, body=state.model_dump_json(), at_ms=self._clock.now_ms()
            )
            with suppress(Conflict):
                await self._store.commit([write])
                state.version = before + 1
                return state, result
        raise Conflict(f"{kind.kind} of {chat.key}")


def current_names(state: Document, members: Sequence[KnownMember]) -> Mapping[str, str]:
    """Names of members by key: the current ones of `members`, else those in the document."""
    return {key: one_line(name) for key, name in (state.names | {one.ref.key: one.name for one in members}).items()}
