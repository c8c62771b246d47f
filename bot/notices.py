"""What a chat or the operator hears about messages that are not answered: once, then it is only counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import orjson
import structlog

from bot.chats import Chats
from bot.delivery import Delivery, Parcel
from bot.gate import Verdict
from bot.outgoing import outgoing_to_json
from bot.platforms.base import Outgoing
from function_calls.context import MessageContext
from services.clock import Clock
from services.refs import ChatRef, MemberRef, ReasonCode
from services.store import outbox
from services.store.ids import Ids
from services.store.port import Store, Write

_log = structlog.get_logger("gate")
_QUIET_SECONDS = 60.0
_CHATS_KEPT = 10_000
# What is usual in a group is no warning.
_USUAL = frozenset({ReasonCode.NOT_ADDRESSED, ReasonCode.NOT_A_MESSAGE, ReasonCode.EMPTY, ReasonCode.QUESTION_CLOSED})


class Notices:
    """Speaks up about drops without flooding anybody."""

    def __init__(self, store: Store, delivery: Delivery, chats: Chats, clock: Clock, ids: Ids, epoch: int) -> None:
        self._store = store
        self._delivery = delivery
        self._chats = chats
        self._clock = clock
        self._ids = ids
        self._epoch = epoch
        self._seen: set[tuple[str, ReasonCode]] = set()
        self._told_at: dict[str, float] = {}
        self.dropped: Counter[str] = Counter()
        """How many messages ended without a turn, by reason code."""

    def count(self, context: MessageContext, verdict: Verdict) -> None:
        """A message ended without a turn, or was not accepted, and whoever sent it knows."""
        reason, chat = verdict.reason, context.chat.key
        self.dropped[reason.value] += 1
        if reason not in _USUAL and (chat, reason) not in self._seen:
            self._warn(chat, verdict)

    def note(self, context: MessageContext, verdict: Verdict) -> None:
        """A message ended without a turn."""
        self.count(context, verdict)
        if verdict.reason is ReasonCode.QUEUE_FULL:
            self._tell(context)
        if verdict.told:
            self._answer(context, verdict)

    def _answer(self, context: MessageContext, verdict: Verdict) -> None:
        """One sentence to whoever wrote, where they wrote it."""
        chat = context.chat
        if not self.reaches(chat):
            return
        write, parcel = self.notice(
            chat,
            verdict.says or self._chats.profile(chat).texts.say(verdict.told),
            private_to=context.sender.ref if context.private else None,
            reply_to=context.key.native_id if context.is_group else None,
            closes=verdict.closes,
            asked_by=context.sender.ref.key,
        )
        self._store.post([write])
        self.send([parcel])

    def _warn(self, chat: str, verdict: Verdict) -> None:
        """Once for each chat and reason. Beyond as many as are kept apart, drops are counted and no more."""
        if len(self._seen) >= _CHATS_KEPT:
            return
        self._seen.add((chat, verdict.reason))
        # The detail of an unknown command is a word of the message, and those stay out of logs.
        because = "" if verdict.reason is ReasonCode.UNKNOWN_COMMAND else verdict.detail
        facts = {"because": because} if because else {}
        _log.warning("message_not_answered", chat=chat, reason=verdict.reason.value, **facts)
        if len(self._seen) >= _CHATS_KEPT:
            _log.warning("further_drops_are_only_counted", kept=_CHATS_KEPT)

    def _tell(self, context: MessageContext) -> None:
        """One sentence to the chat, at most once a minute."""
        chat, now = context.chat, self._clock.monotonic()
        platform = self._delivery.platform(chat)
        if platform is None or now - self._told_at.get(chat.key, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return
        if len(self._told_at) >= _CHATS_KEPT:
            self._told_at = {key: at for key, at in self._told_at.items() if now - at < _QUIET_SECONDS}
        self._told_at[chat.key] = now
        write, parcel = self.notice(chat, self._chats.profile(chat).texts.say("failures.queue_full"))
        self._store.post([write])
        self.send([parcel])

    def notice(
        self,
        chat: ChatRef,
        text: str,
        private_to: MemberRef | None = None,
        *,
        reply_to: str | None = None,
        closes: tuple[str, ...] = (),
        asked_by: str = "",
    ) -> tuple[Write, Parcel]:
        """Something to say outside of all turns, perhaps to the member `asked_by`. `send` it once the write is on its
        way."""
        row_id, now_ms = self._ids.next(), self._clock.now_ms()
        outgoing = Outgoing(
            chat=chat, key=f"notice:{row_id}", text=text, reply_to=reply_to, private_to=private_to, closes=closes
        )
        write = outbox.put(
            id=row_id,
            key=outgoing.key,
            turn_id=0,
            history_id=None,
            chat=chat.key,
            body=orjson.dumps(outgoing_to_json(outgoing, asked_by=asked_by)).decode(),
            state="sending",
            epoch=self._epoch,
            at_ms=now_ms,
        )
        return write, Parcel(row_id, outgoing, None, claimed=True, said_at_ms=now_ms, asked_by=asked_by)

    def reaches(self, chat: ChatRef) -> bool:
        """Whether the bot is on the network of that chat."""
        return self._delivery.platform(chat) is not None

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Hand notices to delivery."""
        self._delivery.hand_over(parcels)
