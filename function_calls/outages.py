"""What chats hear of an outage: one sentence each, until a model answers again."""

from __future__ import annotations

from function_calls.context import MessageContext
from services.clock import Clock
from services.llm.model import ModelError
from services.refs import ChatRef, MemberRef, Trouble

_NOBODY_TO_ASK = frozenset({Trouble.OUTAGE, Trouble.BUSY, Trouble.KEY, Trouble.QUOTA, Trouble.MISSING})
"""The same for every message; other errors are about one message, and each is told."""
_CHATS_KEPT = 10_000


class Outages:
    """Remembers which chats know, and which members were told in private. An outage begins with a message for which
    there was no model to ask and ends with the next answer of one; a restart forgets it."""

    def __init__(self, clock: Clock, say_again_seconds: float = 600.0) -> None:
        self._clock = clock
        self._say_again_seconds = say_again_seconds
        self._told_at: dict[tuple[ChatRef, MemberRef | None], float] = {}

    def use(self, say_again_seconds: float) -> None:
        """From now on a chat hears of an outage that lasts once in this time."""
        self._say_again_seconds = say_again_seconds

    def is_told(self, context: MessageContext, error: ModelError) -> bool:
        """Whether those who would read an answer to `context` were told of this outage not long ago."""
        if error.trouble not in _NOBODY_TO_ASK:
            return False
        told_at = self._told_at.get(_readers(context))
        return told_at is not None and self._clock.monotonic() - told_at < self._say_again_seconds

    def tell(self, context: MessageContext, error: ModelError) -> None:
        """They are being told."""
        if error.trouble not in _NOBODY_TO_ASK:
            return
        if len(self._told_at) >= _CHATS_KEPT:
            # Forgetting one makes no more of it than a sentence too many.
            self._told_at.pop(next(iter(self._told_at)))
        self._told_at[_readers(context)] = self._clock.monotonic()

    def end(self) -> None:
        """A model answered."""
        if self._told_at:
            self._told_at.clear()


def _readers(context: MessageContext) -> tuple[ChatRef, MemberRef | None]:
    return context.chat, context.sender.ref if context.private else None
