"""Messages on their way in, and the edits and deletions that meet them there or come before them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.engine.job import Job

MessageId = tuple[str, str]
"""The chat's key, and the network's id of the message."""
_CHANGES_KEPT = 1000


class Arrivals:
    """Between the first sight of a message and its place in the queue, for both orders of a message and its change."""

    def __init__(self) -> None:
        self.accepting: dict[MessageId, Job] = {}
        """Messages that are being made durable and are submitted next."""
        self._early: OrderedDict[MessageId, str | None] = OrderedDict()
        self._changing: dict[MessageId, asyncio.Event] = {}

    @property
    def any_changing(self) -> bool:
        """Whether a change of any message is being made."""
        return bool(self._changing)

    async def unchanging(self, message: MessageId) -> None:
        """Return when no change of `message` is being made: at once where none is."""
        while message in self._changing:
            await self._changing[message].wait()

    @asynccontextmanager
    async def change(self, message: MessageId) -> AsyncIterator[None]:
        """While one change of `message` is made, others wait, and the message itself is neither accepted nor queued."""
        await self.unchanging(message)
        done = self._changing[message] = asyncio.Event()
        try:
            yield
        finally:
            del self._changing[message]
            done.set()

    def remember_early(self, message: MessageId, text: str | None) -> None:
        """A change came before its message: the new text, or None for a deletion. Kept until that arrives."""
        self._early[message] = text
        while len(self._early) > _CHANGES_KEPT:
            self._early.popitem(last=False)

    def is_deleted(self, message: MessageId) -> bool:
        """Whether its deletion came before it."""
        return self._early.get(message, "") is None

    def edited(self, message: MessageId) -> str | None:
        """Its text, where an edit came before it."""
        return self._early.get(message)

    def forget_early(self, message: MessageId) -> None:
        """The message has arrived."""
        self._early.pop(message, None)
