"""A brake for two bots that answer each other: neither may be marked as one, and neither would ever stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.gate import Verdict
from function_calls.context import Kind, MessageContext
from services.clock import Clock
from services.refs import ChatRef, MemberRef, ReasonCode

SETTING = "limits.bot_alternations"
QUICK_SECONDS = 2.0
"""Nobody reads an answer and types the next message in less, again and again."""
PAUSE_SECONDS = 600.0
_KEPT = 10_000


@dataclass(slots=True)
class _Streak:
    """How often one member has answered the bot at once, with no word of others to the bot between."""

    member: MemberRef
    count: int
    heard_at: float


class Alternations:
    """Counts, in groups, messages to the bot that come within two seconds of its own. Commands, buttons and answers to
    its questions are quick with people too, and are not counted. A restart forgets what was counted."""

    def __init__(self, last_sent: Callable[[ChatRef], float | None], clock: Clock, most: int) -> None:
        """`last_sent` gives when the bot last said something in a chat, on the monotonic clock. `most`: so many quick
        answers in a row are a bot's; 0: none are."""
        self._last_sent = last_sent
        self._clock = clock
        self._streaks: dict[ChatRef, _Streak] = {}
        self._paused: dict[tuple[ChatRef, MemberRef], float] = {}
        self.use(most)

    def use(self, most: int) -> None:
        """From the next message on this holds."""
        self._most = most
        if not most:
            self._streaks.clear()
            self._paused.clear()

    def judge(self, context: MessageContext, verdict: Verdict) -> Verdict | None:
        """Why a message that `verdict` says is for us gets no answer; None where it does. The first of a pause says
        so."""
        if not self._most or not context.is_group or not verdict.is_for_us:
            return None
        if verdict.is_command or verdict.question is not None or context.kind is not Kind.MESSAGE:
            self._streaks.pop(context.chat, None)
            return None
        now, member = self._clock.monotonic(), context.sender.ref
        if self._is_paused(context.chat, member, now):
            return Verdict(ReasonCode.LIKE_A_BOT, SETTING)
        if not self._continues(context.chat, member, now):
            self._streaks.pop(context.chat, None)
            self._keep(context.chat, _Streak(member, 0, now))
            return None
        streak = self._streaks[context.chat]
        streak.count, streak.heard_at = streak.count + 1, now
        if streak.count < self._most:
            return None
        del self._streaks[context.chat]
        if len(self._paused) >= _KEPT:
            self._paused = {key: until for key, until in self._paused.items() if until > now}
        self._paused[context.chat, member] = now + PAUSE_SECONDS
        return Verdict(ReasonCode.LIKE_A_BOT, SETTING, told="alternations.pause")

    def _is_paused(self, chat: ChatRef, member: MemberRef, now: float) -> bool:
        until = self._paused.get((chat, member)) if self._paused else None
        if until is not None and until <= now:
            del self._paused[chat, member]
        return until is not None and until > now

    def _continues(self, chat: ChatRef, member: MemberRef, now: float) -> bool:
        """Whether the member answers at once what the bot has said since it last heard them."""
        streak, sent_at = self._streaks.get(chat), self._last_sent(chat)
        if streak is None or streak.member != member or sent_at is None:
            return False
        return streak.heard_at <= sent_at and now - sent_at <= QUICK_SECONDS

    def _keep(self, chat: ChatRef, streak: _Streak) -> None:
        if len(self._streaks) >= _KEPT:
            self._streaks.pop(next(iter(self._streaks)))
        self._streaks[chat] = streak
