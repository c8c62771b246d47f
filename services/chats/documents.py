"""Typed state of a chat that many members change: read, change and write as one step. For small state with rules that
would need a statement each in tables, such as places that move up. Each kind limits its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, TypeVar

from pydantic import BaseModel, Field

from services.chats.members import KnownMember, KnownMembers
from services.clock import Clock
from services.patterns import one_line
from services.refs import ChatRef
from services.store.chats import documents
from services.store.port import Conflict, Store

_ATTEMPTS = 50
_MOST_CALLS = 50


class Document(BaseModel):
    """Base of all kinds of documents. Every field has a default: the state before the first change."""

    kind: ClassVar[str]
    version: int = Field(default=0, exclude=True)
    """Number of changes; set by `Documents`."""
    names: dict[str, str] = {}
    """Names of members by key: the current ones, or the last known ones."""
    calls: dict[str, list[str | int]] = {}
    """Results of the latest changes by the key of their call."""


State = TypeVar("State", bound=Document)


class Documents:
    """The documents of all chats. A change is repeated on the new state if another one was faster, so none is lost. A
    repeated call changes nothing and has the same result."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._members = KnownMembers(store)

    async def read(self, chat: ChatRef, kind: type[State]) -> State:
        """The chat's document of that kind."""
        rows = await self._store.read(documents.one(chat.key, kind.kind))
        state = kind.model_validate_json(rows[0]["body"]) if rows else kind()
        state.version = rows[0]["version"] if rows else 0
        state.names |= {one.ref.key: one_line(one.name) for one in await self._members.of(chat)}
        return state

    async def change(
        self,
        chat: ChatRef,
        kind: type[State],
        change: Callable[[State, int], Sequence[str | int]],
        *,
        by: KnownMember,
        call_key: str,
    ) -> tuple[State, Sequence[str | int]]:
        """Apply `change` to the document and the time in milliseconds; returns the new state and the result of
        `change`, which may run several times, each time on a fresh state. Nothing is written if it raises. Raises
        Conflict if other changes were faster in 50 attempts."""
        for _ in range(_ATTEMPTS):
            state, now_ms = await self.read(chat, kind), self._clock.now_ms()
            state.names[by.ref.key] = one_line(by.name)
            if call_key in state.calls:
                return state, state.calls[call_key]
            result = list(change(state, now_ms))
            state.version += 1
            state.calls = dict([*state.calls.items(), (call_key, result)][-_MOST_CALLS:])
            body = state.model_dump_json()
            with suppress(Conflict):
                await self._store.commit(
                    [documents.put(chat.key, kind.kind, version=state.version, body=body, at_ms=now_ms)]
                )
                return state, result
        raise Conflict(f"{kind.kind} of {chat.key}")
