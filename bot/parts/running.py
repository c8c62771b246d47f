"""What runs: turns in their chats, and calls that come without a message."""

from __future__ import annotations

from dataclasses import dataclass

from bot.closing import Closing
from bot.direct_calls import DirectCalls
from bot.engine.embedded import EmbeddedEngine
from bot.parts.calling import Calling
from bot.parts.consent import Consent
from bot.parts.ground import Ground
from bot.parts.leaning import Leaning
from bot.parts.models import Models
from bot.parts.planning import Planning
from bot.parts.routing import Routing
from bot.parts.sending import Sending
from bot.summaries import Summaries
from bot.turns import Turns


@dataclass(frozen=True, slots=True)
class Running:
    """The engine, with what it runs."""

    engine: EmbeddedEngine
    turns: Turns
    closing: Closing
    summaries: Summaries
    direct_calls: DirectCalls


def running_of(
    ground: Ground,
    consent: Consent,
    models: Models,
    planning: Planning,
    leaning: Leaning,
    calling: Calling,
    sending: Sending,
    routing: Routing,
) -> Running:
    """By the settings at the start; nothing runs yet."""
    settings = ground.settings
    summaries = Summaries(ground.store, models.paid, settings.router, settings.memory, ground.clock)
    closing = Closing(
        chats=ground.chats,
        questions=consent.questions,
        beginnings=leaning.beginnings,
        store=ground.store,
        delivery=sending.delivery,
        metrics=ground.metrics,
        clock=ground.clock,
        ids=ground.ids,
        epoch=ground.epoch,
        faults=ground.faults,
        after=routing.shadow.turn_ended if routing.shadow else None,
    )
    turns = Turns(
        router=routing.router,
        functions=ground.registry.of,
        chats=ground.chats,
        members=leaning.members,
        questions=consent.questions,
        decisions=consent.decisions,
        beginnings=leaning.beginnings,
        closing=closing,
        store=ground.store,
        show=sending.delivery.typing,
        summaries=summaries,
        deadlines=ground.deadlines,
        settings=settings.router,
        attempts=settings.limits.attempts_per_turn,
        clock=ground.clock,
        epoch=ground.epoch,
        faults=ground.faults,
    )
    direct_calls = DirectCalls(
        registry=ground.registry,
        chats=ground.chats,
        invoker=calling.invoker,
        store=ground.store,
        delivery=sending.delivery,
        timetable=planning.timetable,
        timeout_seconds=settings.router.turn_timeout_seconds,
        wait_seconds=consent.questions.seconds_for,
        deadlines=ground.deadlines,
        clock=ground.clock,
        ids=ground.ids,
        epoch=ground.epoch,
        faults=ground.faults,
    )
    return Running(EmbeddedEngine(turns.run, settings.limits), turns, closing, summaries, direct_calls)
