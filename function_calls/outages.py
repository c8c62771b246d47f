"""What chats hear of an outage: one sentence each, until a model answers again."""

from __future__ import annotations

from services.clock import Clock
from services.llm.model import ModelError
from services.refs import ChatRef, Trouble

_NOBODY_TO_ASK = frozenset({Trouble.OUTAGE, Trouble.BUSY, Trouble.KEY, Trouble.QUOTA, Trouble.MISSING})
"""The same for every message; other errors are about one message, and each is told."""
_CHATS_KEPT = 10_000


class Outages:
    """Remembers which chats know. An outage begins with a message for which there was no model to ask and ends with the
    next answer of one; a restart forgets it."""

    def __init__(self, clock: Clock, say_again_seconds: float = 600.0) -> None:
        self._clock = clock
        self._say_again_seconds = say_again_seconds
        self._told_at: dict[ChatRef, float] = {}

    def is_told(self, chat: ChatRef, error: ModelError) -> bool:
        """Whether `chat` was told of this outage not long ago."""
        if error.trouble not in _NOBODY_TO_ASK:
            return False
        told_at = self._told_at.get(chat)
        return told_at is not None and self._clock.monotonic() - told_at < self._say_again_seconds

    def tell(self, chat: ChatRef, error: ModelError) -> None:
        """`chat` is being told."""
        if error.trouble not in _NOBODY_TO_ASK:
            return
        if len(self._told_at) >= _CHATS_KEPT:
            # Forgetting one makes no more of it than a sentence too many.
            self._told_at.pop(next(iter(self._told_at)))
        self._told_at[chat] = self._clock.monotonic()

    def end(self) -> None:
        """A model answered."""
        if self._told_at:
            self._told_at.clear()
