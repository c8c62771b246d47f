"""Builds every object of the daemon; with bot/parts, the only place that knows all others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bot.daemon import Daemon
from bot.dead_letters import DeadLetters
from bot.gauges import (
    show_backups,
    show_dead_letters,
    show_faults,
    show_links,
    show_models,
    show_shadow,
    show_store,
    show_timers,
    show_turns,
)
from bot.given import Given
from bot.live_parts import (
    budgets_live,
    chats_live,
    consent_live,
    limits_live,
    models_live,
    processes_live,
    sources_live,
    turns_live,
)
from bot.models import model_of
from bot.parts.calling import Calling, calling_of
from bot.parts.consent import Consent, consent_of
from bot.parts.ground import Ground, ground_of
from bot.parts.keeping import Keeping, keeping_of
from bot.parts.leaning import Leaning, leaning_of
from bot.parts.minding import Minding, minding_of
from bot.parts.models import Models, models_of
from bot.parts.offering import Offering, offering_of
from bot.parts.planning import Planning, planning_of
from bot.parts.receiving import Receiving, receiving_of
from bot.parts.routing import Routing, routing_of
from bot.parts.running import Running, running_of
from bot.parts.sending import Sending, sending_of
from bot.platforms.base import ChatPlatform
from bot.script_services import script_services_live
from bot.secret_values import secrets_of
from bot.unknown_names import names_in
from config.settings import Settings
from config.texts import Texts
from services.store.ids import Ids
from services.store.port import Store


def build_daemon(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    ids: Ids,
    texts: Texts,
    given: Given,
) -> Daemon:
    """The daemon on `store`, with `platforms`. Raises DefinitionError for filters and models that cannot be used."""
    # Each part is built of those above it.
    ground = ground_of(settings, store, ids, texts, given)
    consent = consent_of(ground)
    models = models_of(ground)
    planning = planning_of(ground)
    leaning = leaning_of(ground, consent, models, planning)
    calling = calling_of(ground, consent)
    offering = offering_of(ground, leaning, calling)
    sending = sending_of(ground, platforms)
    routing = routing_of(ground, models, planning, calling, sending)
    running = running_of(ground, consent, models, planning, leaning, calling, sending, routing)
    receiving = receiving_of(ground, consent, planning, sending, running)
    minding = minding_of(ground, offering, sending)
    keeping = keeping_of(ground, consent, planning, leaning, offering, sending, receiving, minding)

    _bind(ground, consent, planning, leaning, calling, offering, sending, running, minding)
    _hear_of_dead_letters(keeping.dead_letters, sending, running, receiving)
    _show(ground, models, offering, sending, routing, running, receiving, minding, keeping, platforms)
    _take(ground, consent, models, planning, leaning, calling, offering, routing, running, receiving, minding)
    return Daemon(
        live=minding.live,
        reload=minding.reload,
        names=minding.names,
        news=minding.news,
        backups=minding.backups,
        store=store,
        ids=ids,
        registry=ground.registry,
        functions=offering.sources,
        invoker=calling.invoker,
        router=routing.router,
        direct_calls=running.direct_calls,
        model=models.current,
        model_states=models.current.states,
        chats=ground.chats,
        beginnings=leaning.beginnings,
        questions=consent.questions,
        grants=consent.grants,
        schedules=keeping.schedules,
        script_schedules=keeping.script_schedules,
        script_notes=keeping.script_notes,
        engine=running.engine,
        delivery=sending.delivery,
        summaries=running.summaries,
        intake=receiving.intake,
        timetable=planning.timetable,
        timers=receiving.timers,
        platforms=platforms,
        metrics=ground.metrics,
        logs=(ground.call_log, ground.model_log, ground.shadow_log),
        faults=ground.faults,
        housekeeping=keeping.housekeeping,
        dead_letters=keeping.dead_letters,
        services=[*leaning.held_open, *([routing.shadow] if routing.shadow else [])],
    )


def _bind(
    ground: Ground,
    consent: Consent,
    planning: Planning,
    leaning: Leaning,
    calling: Calling,
    offering: Offering,
    sending: Sending,
    running: Running,
    minding: Minding,
) -> None:
    """What had to wait: handlers ask for these, and they are built of what runs handlers; and who hears of an edit."""
    planning.rehearsal.bind(ground.registry.of, calling.invoker, consent.approvals)
    leaning.actions.bind(running.engine)
    leaning.members.bind(sending.delivery)
    functions = offering.sources
    functions.on_change(lambda: calling.invoker.keep(ground.registry.specs))
    functions.on_change(minding.news.changed)
    functions.on_change(leaning.beginnings.look)
    functions.on_change(minding.names.look)
    minding.names.on_change(minding.news.changed)


def _hear_of_dead_letters(dead: DeadLetters, sending: Sending, running: Running, receiving: Receiving) -> None:
    """Who gives up what."""
    running.closing.on_given_up.append(dead.turn)
    sending.delivery.on_given_up.append(dead.message)
    receiving.timers.on_undeliverable.append(dead.moment)


def _show(
    ground: Ground,
    models: Models,
    offering: Offering,
    sending: Sending,
    routing: Routing,
    running: Running,
    receiving: Receiving,
    minding: Minding,
    keeping: Keeping,
    platforms: Sequence[ChatPlatform],
) -> None:
    """What /metrics tells of the parts."""
    metrics = ground.metrics
    show_turns(metrics, running.engine, sending.delivery, sending.notices)
    show_dead_letters(metrics, keeping.dead_letters)
    show_store(metrics, ground.store)
    show_links(metrics, platforms)
    show_timers(metrics, receiving.timers)
    if routing.shadow is not None:
        show_shadow(metrics, routing.shadow)
    show_models(metrics, models.current)
    show_faults(metrics, offering.sources, minding.reload)
    show_backups(metrics, minding.backups)


def _take(
    ground: Ground,
    consent: Consent,
    models: Models,
    planning: Planning,
    leaning: Leaning,
    calling: Calling,
    offering: Offering,
    routing: Routing,
    running: Running,
    receiving: Receiving,
    minding: Minding,
) -> None:
    """Which part takes which settings while the daemon runs, in this order."""
    live, functions = minding.live, offering.sources
    chats_live(live, ground.chats)
    consent_live(live, consent.approvals, consent.questions)
    budgets_live(live, models.requests, calling.units)
    processes_live(live, leaning.services)
    script_services_live(live, leaning.services)
    limits_live(live, running.engine, receiving.intake, planning.schedules)
    turns_live(
        live,
        calling.filters_of,
        routing.router_of,
        calling.invoker,
        functions,
        running.turns,
        running.summaries,
    )
    if ground.given.model is None:
        texts, clock, deadlines = ground.texts, ground.clock, ground.deadlines
        models_live(live, models.current, lambda fresh: model_of(fresh, texts, clock, deadlines), models.outages)
    sources_live(live, functions, offering.wanted)
    live.take("operators", prepare=lambda fresh: partial(minding.news.use, fresh.operators))
    live.take(prepare=lambda fresh: partial(ground.redact.learn, secrets_of(fresh)), hears_of=secrets_of)
    # Behind all others: by then the sources are those of the new settings.
    live.take(prepare=lambda fresh: minding.names.look, hears_of=names_in)
