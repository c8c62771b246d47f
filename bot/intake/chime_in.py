"""Chime-in: decides whether the bot answers a message of a group that is not addressed to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from bot.chats.chats import Chats
from bot.intake.gate import GateDecision
from function_calls.context import Kind, MessageContext
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, ReasonCode
from services.store.chats import outcomes
from services.store.port import Row, Store

_DEFAULTS = {"chance": "2%", "judge": "6"}
_STEPS = 10
"""Eligible messages after a chime-in until the probability is at its cap."""
_ROWS = 60
_MOST_CHATS = 10_000
_HOUR_MS = 3_600_000
_ADDRESSEE = re.compile(r"\s*([^\s:,，：]{1,40})[:,，：]")
_DECIDED = frozenset({ReasonCode.CHIMED_IN.value, ReasonCode.NOT_CHIMED_IN.value})


@lru_cache(maxsize=1000)
def cap_of(rate: float) -> float:
    """The cap of the probability for which the share of answered messages in the long run is `rate`, from 0 to 0.25.
    The probability of the k-th eligible message after an answer is `cap * k / 10`, from the tenth on `cap`."""
    low, high = rate, 1.0 if rate else 0.0
    while high - low > rate / 1e6:
        cap = (low + high) / 2
        # The expected number of messages per answer: the sum of the probabilities that more are needed.
        expected, unanswered = 1.0, 1.0
        for step in range(1, _STEPS):
            unanswered *= 1 - cap * step / _STEPS
            expected += unanswered
        expected += unanswered * (1 - cap) / cap
        low, high = (cap, high) if expected > 1 / rate else (low, cap)
    return high


def drawn(chat: str, native_id: str) -> float:
    """A number from 0 to 1, always the same for a message, so that a redelivery is decided alike."""
    digest = hashlib.sha256(f"{chat}\n{native_id}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:6]) / 2**48


class Conversation(NamedTuple):
    """The latest messages of a chat, newest first, and the number of its latest turn when they were read."""

    rows: Sequence[Row]
    latest_turn: int


class ChimeIn:
    """Decides on unaddressed messages. A decision depends only on stored messages, so it survives restarts."""

    def __init__(self, chats: Chats, store: Store, clock: Clock, has_model: Callable[[], bool]) -> None:
        self._chats = chats
        self._store = store
        self._clock = clock
        self._has_model = has_model
        self._turns = 0
        self._latest_turns = Recent[ChatRef, int](_MOST_CHATS)
        self._judged_ms = Recent[ChatRef, int](_MOST_CHATS)

    async def conversation(self, context: MessageContext) -> Conversation | None:
        """The conversation before the message; None if the bot cannot chime in. To be called if no turn of the chat
        waits or runs. Raises StoreError."""
        chat, is_message = context.chat, context.is_group and context.kind is Kind.MESSAGE and not context.private
        if not is_message or self._chats.of(chat).settings.chime_in == "off" or not self._has_model():
            return None
        latest = self._latest_turns.get(chat, 0)
        return Conversation(await self._store.read(outcomes.conversation(chat.key, _ROWS)), latest)

    def note_turn(self, chat: ChatRef) -> None:
        """Record that a turn starts: conversations that were read before are outdated."""
        if self._chats.of(chat).settings.chime_in != "off":
            self._turns += 1
            self._latest_turns[chat] = self._turns

    def judge(self, context: MessageContext, conversation: Conversation) -> GateDecision:
        """The decision on a message that is not addressed to the bot."""
        chat, rows, now_ms = context.chat, conversation.rows, self._clock.now_ms()
        settings = self._chats.of(chat).settings
        is_current = self._latest_turns.get(chat, 0) == conversation.latest_turn
        is_quiet = self._chats.quiet_until(chat, self._clock.now()) is not None
        if not is_current or is_quiet or not _is_eligible(context, rows):
            return GateDecision(ReasonCode.NOT_ADDRESSED)
        mode, _, number = settings.chime_in.partition(" ")
        number = number or _DEFAULTS[mode]
        if mode == "judge":
            # The budget is spread over the hour, or the first messages of each hour would use it up.
            asked = [row["received_ms"] for row in rows if row["reason"] in _DECIDED]
            if max([self._judged_ms.get(chat, 0), *asked]) > now_ms - _HOUR_MS // int(number):
                return GateDecision(ReasonCode.NOT_ADDRESSED)
            self._judged_ms[chat] = now_ms
        elif drawn(chat.key, context.key.native_id) >= cap_of(float(number.rstrip("%")) / 100) * _step(rows) / _STEPS:
            return GateDecision(ReasonCode.NOT_CHIMED_IN, settings.layers["chime_in"])
        return GateDecision(unasked=mode)


def _is_eligible(context: MessageContext, rows: Sequence[Row]) -> bool:
    """Whether the message is text for nobody in particular, and does not follow directly on a message of the bot."""
    text = context.text
    if not text.strip() or text.startswith("/") or context.addresses_another or (rows and rows[0]["from_bot"]):
        return False
    found = _ADDRESSEE.match(text)
    return found is None or found[1].casefold() not in {row["sender_name"].casefold() for row in rows}


def _step(rows: Sequence[Row]) -> int:
    """Number of this message among the eligible ones since the bot last chimed in, at most ten."""
    reasons = [row["reason"] for row in rows if row["reason"] in _DECIDED]
    since = reasons.index(ReasonCode.CHIMED_IN) if ReasonCode.CHIMED_IN in reasons else _STEPS
    return min(since + 1, _STEPS)
