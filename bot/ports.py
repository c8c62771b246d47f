"""The daemon's side of what handlers may ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.chats import Chats
from bot.delivery import Delivery
from bot.engine.embedded import EmbeddedEngine
from bot.open_questions import OpenQuestions
from function_calls.ports import Speaker
from services.clock import Clock
from services.deadlines import Deadlines
from services.refs import ChatRef, MemberRef, Role
from services.schedules import OPERATORS_PLATFORM
from services.store import history
from services.store.port import Store, StoreError

_ANSWER_SECONDS = 3.0
_NEWEST = 2**62
_SPEAKERS = 20


class EngineActions:
    """Acts on a chat through its engine, which exists only after the functions do."""

    def __init__(self, store: Store, questions: OpenQuestions) -> None:
        self._store = store
        self._questions = questions
        self._engine: EmbeddedEngine | None = None

    def bind(self, engine: EmbeddedEngine) -> None:
        """Say which engine it is."""
        self._engine = engine

    async def stop(self, chat: ChatRef, by: MemberRef, role: Role) -> bool:
        """End the turn that runs in `chat`; whether there was one that `by` may end."""
        return self._engine is not None and self._engine.stop(chat, by, role)

    async def ask_no_more(self, chat: ChatRef, member: MemberRef) -> bool:
        """Let what `member` was asked wait no longer; whether anything did. Raises StoreError."""
        taken = self._questions.take(chat.key, member.key)
        if taken is None:
            return False
        try:
            await self._store.commit([self._questions.unanswered(taken)])
        except StoreError:
            self._questions.put_back(chat.key, member.key, taken)
            raise
        self._questions.left(taken)
        return True


class PlatformMembers:
    """Who is in a chat, as the platform and the history tell."""

    def __init__(self, store: Store, chats: Chats, deadlines: Deadlines, clock: Clock) -> None:
        self._store = store
        self._chats = chats
        self._deadlines = deadlines
        self._clock = clock
        self._delivery: Delivery | None = None

    def bind(self, delivery: Delivery) -> None:
        """Say who knows the platforms."""
        self._delivery = delivery

    async def role(self, chat: ChatRef, member: MemberRef) -> Role | None:
        """The member's role now; None when the platform does not tell within three seconds. An entry of the settings'
        schedules has the role that it is given there now."""
        if member.platform == OPERATORS_PLATFORM:
            entry = self._chats.schedules.get(member.native)
            return Role(entry.as_role) if entry is not None and entry.chat == chat.key else None
        platform = self._delivery.platform(chat) if self._delivery else None
        if platform is None:
            return None
        deadline = self._clock.monotonic() + _ANSWER_SECONDS
        try:
            said = await self._deadlines.run(platform.role(chat, member), deadline)
        except TimeoutError:
            return None
        return None if said is None else self._chats.role(member.key, said)

    async def names(self, chat: ChatRef) -> Sequence[str]:
        """Display names of members who spoke lately, latest first; at most 50."""
        rows = await self._store.read(history.recent(chat.key, _NEWEST, 200))
        return list(dict.fromkeys(row["sender_name"] for row in rows if not row["from_bot"]))[:50]

    async def speakers(self, chat: ChatRef) -> Sequence[Speaker]:
        """Members who spoke lately, latest first, with their roles; at most 20."""
        names: dict[str, str] = {}
        for row in await self._store.read(history.recent(chat.key, _NEWEST, 200)):
            if not row["from_bot"]:
                names.setdefault(row["sender"], row["sender_name"])
        members = list(names)[:_SPEAKERS]
        roles = await asyncio.gather(*(self.role(chat, MemberRef.parse(member)) for member in members))
        return [Speaker(names[member], role) for member, role in zip(members, roles, strict=True)]
