"""The beginning of a chat: the function that its bot has for that runs once, before the first message is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import structlog

from function_calls.context import Kind, MessageContext
from function_calls.outcome import OutcomeKind, TurnOutcome
from function_calls.registry import BotFunctions
from function_calls.router import FunctionCallRouter
from function_calls.turn import Turn
from services.clock import Clock
from services.refs import ChatRef, ErrorCode
from services.store import chat_notes
from services.store.port import Store, Write

_HINT = "chats that have begun keep what it did then; an admin of each says /begin again"
_log = structlog.get_logger("beginnings")


class Beginnings:
    """Knows which chats have had their beginning."""

    def __init__(self, store: Store, clock: Clock, functions: Callable[[str], BotFunctions]) -> None:
        self._store = store
        self._clock = clock
        self._functions = functions
        self._known: dict[str, str] = {}
        """Of what begins the chats of each bot, which version it is."""
        self._begun: set[tuple[str, str]] = set()
        self._claims: dict[tuple[str, str], str] = {}
        """The turns that are about to begin chats."""

    async def load(self) -> None:
        """Read which chats have begun."""
        self._begun = {(row["chat"], row["bot"]) for row in await self._store.read(chat_notes.begun())}
        self.look()

    async def again(self, chat: ChatRef, bot: str) -> bool:
        """Let the next message that `bot` answers in `chat` begin it anew; False where the bot has nothing for that.
        Raises StoreError."""
        if self._functions(bot).beginning is None:
            return False
        await self._store.commit([chat_notes.forget_begun(chat.key, bot)])
        self._begun.discard((chat.key, bot))
        return True

    def look(self) -> None:
        """Tell the log where what begins chats has changed: those that have begun keep what it did then."""
        counts = Counter(bot for _, bot in self._begun)
        for bot, chats in counts.items():
            spec = self._functions(bot).beginning
            before = self._known.get(bot)
            if spec is None:
                continue
            self._known[bot] = spec.version
            if before is not None and before != spec.version:
                _log.warning("beginning_changed", bot=bot, script=spec.name, chats_begun_before=chats, hint=_HINT)

    def is_due(self, context: MessageContext, turn: Turn, *, is_aside: bool) -> bool:
        """Whether this may be the first message of its chat that the bot answers, and it has something for that.
        `is_aside`: the turn runs beside those of its chat, and so begins nothing."""
        return (
            turn.functions.beginning is not None
            and not is_aside
            and context.kind is Kind.MESSAGE
            and turn.addressed
            and turn.answering is None
            and (context.chat.key, context.bot) not in self._begun
        )

    def claim(self, context: MessageContext, turn: Turn, *, is_aside: bool) -> bool:
        """Whether it is due and this turn does it: no other one begins the chat then. One that is tried again has it
        still."""
        if not self.is_due(context, turn, is_aside=is_aside):
            return False
        return self._claims.setdefault((context.chat.key, context.bot), turn.id) == turn.id

    async def begin(self, context: MessageContext, turn: Turn, router: FunctionCallRouter) -> TurnOutcome | None:
        """How it ended. Why it failed tells the log alone, since whoever speaks first has asked for none of it; what it
        had said before is said, and that nobody knows what became of an effect."""
        spec = turn.functions.beginning
        if spec is None:
            return None
        turn.begins = True
        outcome = await router.begin(context, turn, spec)
        if outcome.error is not None:
            _log.error("beginning_failed", chat=context.chat.key, function=spec.name, code=outcome.error.value)
            is_unknown = outcome.error is ErrorCode.UNKNOWN_OUTCOME
            return outcome if is_unknown else replace(outcome, messages=outcome.messages[:-1])
        return outcome

    async def give_way(
        self, context: MessageContext, turn: Turn, begun: TurnOutcome, router: FunctionCallRouter
    ) -> TurnOutcome:
        """`begun` without its question, where what was asked for asks something too: nobody can answer both at once.
        The run comes to its end, as if nobody had answered; what it had said before it asked is said."""
        if begun.question is None:
            return begun
        _log.warning("beginning_not_answered", chat=context.chat.key, function=begun.detail)
        ended = await router.end_run(context, turn, begun.question)
        return replace(begun, messages=(*begun.messages[:-1], *ended), question=None)

    def note(self, context: MessageContext) -> Write:
        """What notes that the chat has begun: it belongs into the unit that ends the turn."""
        return chat_notes.begin(context.chat.key, context.bot, self._clock.now_ms())

    def is_noted(self, context: MessageContext) -> None:
        """That is kept now."""
        key = (context.chat.key, context.bot)
        self._begun.add(key)
        self.look()
        self._claims.pop(key, None)


def with_beginning(begun: TurnOutcome | None, outcome: TurnOutcome) -> TurnOutcome:
    """`outcome` of the first message, behind what the beginning said; one of them asks at most."""
    if begun is None or not (begun.messages or begun.question):
        return outcome
    return replace(
        outcome,
        kind=OutcomeKind.SENT,
        messages=(*begun.messages, *outcome.messages),
        question=outcome.question or begun.question,
    )
