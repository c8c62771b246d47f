"""What goes out to chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.delivery import Delivery
from bot.lateness import late_note
from bot.notices import Notices
from bot.outgoing import Due
from bot.parts.ground import Ground
from bot.platforms.base import ChatPlatform
from services.refs import ChatRef


@dataclass(frozen=True, slots=True)
class Sending:
    """The one sender, and what it sends beside the messages of turns."""

    delivery: Delivery
    notices: Notices


def sending_of(ground: Ground, platforms: Sequence[ChatPlatform]) -> Sending:
    """Over these platforms."""
    settings, chats, clock = ground.settings, ground.chats, ground.clock

    def late(chat: ChatRef, due: Due) -> str:
        seconds = (clock.now_ms() - due.at_ms) // 1000
        if seconds < settings.timers.late_after_seconds:
            return ""
        return late_note(seconds, chats.profile(chat).texts, was_away=due.was_away)

    delivery = Delivery(
        {(one.name, one.account): one for one in platforms},
        ground.store,
        settings.delivery,
        clock,
        ground.epoch,
        ground.faults,
        resent=lambda chat: chats.profile(chat).texts.say("delivery.resent"),
        late=late,
        dropped=lambda chat, lines: chats.profile(chat).texts.say("delivery.dropped", count=f"{lines:,}"),
        lead=ground.given.lead,
    )
    return Sending(delivery, Notices(ground.store, delivery, chats, clock, ground.ids, ground.epoch))
