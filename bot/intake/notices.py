"""Notices about messages that start no turn, once per chat and reason, and a limit on loops between two bots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from bot.chats.chats import Chats
from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import OutboundMessage, outbox_row
from bot.intake.gate import GateDecision
from bot.platforms.base import Outgoing
from function_calls.context import Kind, MessageContext
from services.clock import Clock
from services.recent import Recent
from services.refs import ChatRef, MemberRef, ReasonCode
from services.store.ids import Ids
from services.store.port import Store, Write
from services.store.turns import outbox

_log = structlog.get_logger("gate")
_QUIET_SECONDS = 60.0
_MOST_CHATS = 10_000
# Normal in a group, so not worth a warning.
_USUAL = frozenset(
    {
        ReasonCode.NOT_ADDRESSED,
        ReasonCode.NOT_CHIMED_IN,
        ReasonCode.MUTED,
        ReasonCode.NOT_A_MESSAGE,
        ReasonCode.EMPTY,
        ReasonCode.QUESTION_CLOSED,
    }
)


class Notices:
    """Logs and counts dropped messages, and sends rate-limited notices about them."""

    def __init__(self, store: Store, delivery: Delivery, chats: Chats, clock: Clock, ids: Ids, epoch: int) -> None:
        self._store = store
        self._delivery = delivery
        self._chats = chats
        self._clock = clock
        self._ids = ids
        self._epoch = epoch
        self._seen: set[tuple[str, ReasonCode]] = set()
        self._notified_at = Recent[tuple[str, str], float](_MOST_CHATS)
        self.dropped: Counter[str] = Counter()
        """Number of messages that ended without a turn, by reason code."""

    def count(self, context: MessageContext, decision: GateDecision) -> None:
        """Count a message that ended without a turn, or that was rejected with an error to its sender."""
        reason, chat = decision.reason, context.chat.key
        self.dropped[reason.value] += 1
        if reason not in _USUAL and (chat, reason) not in self._seen:
            self._warn(chat, decision)

    def note(self, context: MessageContext, decision: GateDecision) -> None:
        """Count a message that ended without a turn, and send its notice if it has one."""
        self.count(context, decision)
        if decision.reason is ReasonCode.QUEUE_FULL:
            self._send_rarely(context.chat, "failures.queue_full")
        if decision.reason is ReasonCode.BACKFILLED and decision.detail and context.calls_bot:
            self._send_rarely(context.chat, "intake.too_old")
        if decision.notice_key:
            self._answer(context, decision)

    def _answer(self, context: MessageContext, decision: GateDecision) -> None:
        """Send the notice to the chat of the message, in private if the message was private."""
        chat = context.chat
        if not self.reaches(chat):
            return
        write, outbound = self.notice(
            chat,
            decision.notice_text or self._text(decision.notice_key, chat),
            private_to=context.sender.ref if context.private else None,
            reply_to=context.key.native_id if context.is_group and context.kind is not Kind.ADDED else None,
            closes=decision.closes,
            asked_by=context.sender.ref.key,
        )
        self._store.post([write])
        self.send([outbound])
        if decision.leaves:
            self._delivery.leave_after(chat)

    def _text(self, key: str, chat: ChatRef) -> str:
        """The notice `key` in the chat's language."""
        served = self._chats.of(chat)
        return served.profile.texts.say(key, name=served.settings.bot_name, chat=chat.key)

    def _warn(self, chat: str, decision: GateDecision) -> None:
        """Log once per chat and reason, up to `_MOST_CHATS` pairs; further drops are only counted."""
        if len(self._seen) >= _MOST_CHATS:
            return
        self._seen.add((chat, decision.reason))
        # The detail of an unknown command is a word of the message, and those stay out of the log.
        because = "" if decision.reason is ReasonCode.UNKNOWN_COMMAND else decision.detail
        facts = {"because": because} if because else {}
        _log.warning("message_not_answered", chat=chat, reason=decision.reason.value, **facts)
        if len(self._seen) >= _MOST_CHATS:
            _log.warning("further_drops_are_only_counted", kept=_MOST_CHATS)

    def _send_rarely(self, chat: ChatRef, key: str) -> None:
        """Send the text `key` to the chat, at most once a minute."""
        now, one = self._clock.monotonic(), (chat.key, key)
        if not self.reaches(chat) or now - self._notified_at.get(one, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        self._notified_at[one] = now
        self.send_text(chat, self._chats.profile(chat).texts.say(key))

    def send_text(self, chat: ChatRef, text: str, reply_to: str | None = None) -> None:
        """Send a text outside of a turn, cut to one message; nothing if the bot has no platform for the chat."""
        platform = self._delivery.platform(chat)
        if platform is not None:
            write, outbound = self.notice(chat, text[: platform.limits.text_chars], reply_to=reply_to)
            self._store.post([write])
            self.send([outbound])

    def notice(
        self,
        chat: ChatRef,
        text: str,
        private_to: MemberRef | None = None,
        *,
        reply_to: str | None = None,
        closes: tuple[str, ...] = (),
        asked_by: str = "",
    ) -> tuple[Write, OutboundMessage]:
        """A message outside of a turn, perhaps to the member `asked_by`, and the write of its outbox row. Call `send`
        after the write is posted."""
        row_id, now_ms = self._ids.next(), self._clock.now_ms()
        outgoing = Outgoing(
            chat=chat, key=f"notice:{row_id}", text=text, reply_to=reply_to, private_to=private_to, closes=closes
        )
        message = OutboundMessage(row_id, outgoing, None, claimed=True, created_ms=now_ms, asked_by=asked_by)
        epoch = self._epoch if self._delivery.is_here(chat) else outbox.NOBODY
        return outbox_row(message, epoch), message

    def reaches(self, chat: ChatRef) -> bool:
        """Whether the bot has a platform for that chat."""
        return self._delivery.platform(chat) is not None

    def send(self, outbound: Sequence[OutboundMessage]) -> None:
        """Hand notices to the delivery."""
        self._delivery.hand_over(outbound)


SETTING = "limits.bot_alternations"
QUICK_SECONDS = 2.0
"""People do not repeatedly read a reply and type the next message faster than this."""
PAUSE_SECONDS = 600.0
_MOST_STREAKS = 10_000


@dataclass(slots=True)
class _Streak:
    """Number of consecutive quick replies by one member to the bot."""

    member: MemberRef
    count: int
    last_at: float


class BotLoopLimit:
    """Counts group messages to the bot that come within two seconds of its last message. Commands, buttons and answers
    to questions are not counted: people are quick with those too. Counts are lost on restart."""

    def __init__(self, last_sent: Callable[[ChatRef], float | None], clock: Clock, most: int) -> None:
        """`last_sent` returns the time of the bot's last message in a chat, on the monotonic clock. `most`: number of
        consecutive quick replies that mark a bot; 0 disables the check."""
        self._last_sent = last_sent
        self._clock = clock
        self._streaks = Recent[ChatRef, _Streak](_MOST_STREAKS)
        self._paused = Recent[tuple[ChatRef, MemberRef], float](_MOST_STREAKS)
        self.use(most)

    def use(self, most: int) -> None:
        """Apply the limit from the next message on."""
        self._most = most
        if not most:
            self._streaks.clear()
            self._paused.clear()

    def judge(self, context: MessageContext, decision: GateDecision) -> GateDecision | None:
        """The decision that drops a message that `decision` accepts; None to leave it. The first drop of a pause sends
        a notice."""
        if not self._most or not context.is_group or not decision.starts_turn:
            return None
        if decision.is_command or decision.question is not None or context.kind is not Kind.MESSAGE:
            self._streaks.pop(context.chat, None)
            return None
        now, member = self._clock.monotonic(), context.sender.ref
        if self._is_paused(context.chat, member, now):
            return GateDecision(ReasonCode.LIKE_A_BOT, SETTING)
        if not self._continues(context.chat, member, now):
            self._streaks[context.chat] = _Streak(member, 0, now)
            return None
        streak = self._streaks[context.chat]
        streak.count, streak.last_at = streak.count + 1, now
        if streak.count < self._most:
            return None
        del self._streaks[context.chat]
        self._paused[context.chat, member] = now + PAUSE_SECONDS
        return GateDecision(ReasonCode.LIKE_A_BOT, SETTING, notice_key="alternations.pause")

    def _is_paused(self, chat: ChatRef, member: MemberRef, now: float) -> bool:
        until = self._paused.get((chat, member)) if self._paused else None
        if until is not None and until <= now:
            del self._paused[chat, member]
        return until is not None and until > now

    def _continues(self, chat: ChatRef, member: MemberRef, now: float) -> bool:
        """Whether the member replies quickly to a bot message that is newer than their last message."""
        streak, sent_at = self._streaks.get(chat), self._last_sent(chat)
        if streak is None or streak.member != member or sent_at is None:
            return False
        return streak.last_at <= sent_at and now - sent_at <= QUICK_SECONDS
