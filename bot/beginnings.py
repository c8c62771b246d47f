"""The beginning of a chat: the function that its bot has for that runs once, before the first message is answered."""

from __future__ import annotations

from dataclasses import replace

import structlog

from function_calls.context import Kind, MessageContext
from function_calls.router import FunctionCallRouter
from function_calls.turn import OutcomeKind, Turn, TurnOutcome
from services.clock import Clock
from services.store import chat_notes
from services.store.port import Store, Write

_log = structlog.get_logger("beginnings")


class Beginnings:
    """Knows which chats have had their beginning."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._begun: set[tuple[str, str]] = set()

    async def load(self) -> None:
        """Read which chats have begun."""
        self._begun = {(row["chat"], row["bot"]) for row in await self._store.read(chat_notes.begun())}

    def is_due(self, context: MessageContext, turn: Turn) -> bool:
        """Whether this is the first message of its chat that the bot answers, and it has something for that."""
        return (
            turn.functions.beginning is not None
            and context.kind is Kind.MESSAGE
            and turn.addressed
            and turn.answering is None
            and (context.chat.key, context.bot) not in self._begun
        )

    async def begin(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome | None:
        """How it ended; None where it failed, which the log tells: whoever speaks first has asked for none of it."""
        spec = turn.functions.beginning
        if spec is None:
            return None
        turn.begins = True
        outcome = await router.begin(context, turn, spec)
        if outcome.error is not None:
            _log.error("beginning_failed", chat=context.chat.key, function=spec.name, code=outcome.error.value)
            return None
        return outcome

    def note(self, context: MessageContext) -> Write:
        """What notes that the chat has begun: it belongs into the unit that ends the turn."""
        return chat_notes.begin(context.chat.key, context.bot, self._clock.now_ms())

    def is_noted(self, context: MessageContext) -> None:
        """That is kept now."""
        self._begun.add((context.chat.key, context.bot))


def with_beginning(begun: TurnOutcome | None, outcome: TurnOutcome) -> TurnOutcome:
    """`outcome` of the first message, behind what the beginning said; its question waits where the answer asks none."""
    if begun is None or not (begun.messages or begun.question):
        return outcome
    return replace(
        outcome,
        kind=OutcomeKind.SENT,
        messages=(*begun.messages, *outcome.messages),
        question=outcome.question or begun.question,
    )
