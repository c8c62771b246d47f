"""What comes in: messages of platforms, and moments that come."""

from __future__ import annotations

from dataclasses import dataclass

from bot.alternations import Alternations
from bot.intake import Intake
from bot.parts.consent import Consent
from bot.parts.ground import Ground
from bot.parts.planning import Planning
from bot.parts.running import Running
from bot.parts.sending import Sending
from bot.timers import Timers


@dataclass(frozen=True, slots=True)
class Receiving:
    """The one way in, and the clock that goes through it as well."""

    intake: Intake
    timers: Timers


def receiving_of(ground: Ground, consent: Consent, planning: Planning, sending: Sending, running: Running) -> Receiving:
    """Nothing comes in yet."""
    settings, delivery = ground.settings, sending.delivery
    intake = Intake(
        store=ground.store,
        engine=running.engine,
        chats=ground.chats,
        functions=ground.registry.of,
        questions=consent.questions,
        decisions=consent.decisions,
        alternations=Alternations(delivery.unmarked_bots_said_at, ground.clock, settings.limits.bot_alternations),
        notices=sending.notices,
        senders_retry=delivery.senders_retry,
        limits=settings.limits,
        history_per_chat=settings.store.history_per_chat,
        clock=ground.clock,
        ids=ground.ids,
        epoch=ground.epoch,
        faults=ground.faults,
    )
    timers = Timers(
        store=ground.store,
        intake=intake,
        delivery=delivery,
        timetable=planning.timetable,
        settings=settings.timers,
        clock=ground.clock,
        ids=ground.ids,
        faults=ground.faults,
    )
    return Receiving(intake, timers)
