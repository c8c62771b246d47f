"""Construction of the daemon: every object, in the order of construction."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from functools import partial
from pathlib import Path
from random import Random
from typing import cast

from bot.chats.chat_changes import StoredActivations, StoredOwnSettings
from bot.chats.chat_notes import ScriptNotes, ScriptSchedules, StartScripts, StoredChatNotes
from bot.chats.chats import Chats
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import ModelWriter, PaidRequests, Summaries
from bot.daemon import Daemon
from bot.database.opening import database_of
from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import Due
from bot.direct_calls import DirectCalls
from bot.engine.embedded import EmbeddedEngine
from bot.housekeeping import Backups, Expiry, Housekeeping
from bot.intake.gate import Decisions
from bot.intake.intake import Intake
from bot.intake.notices import Alternations, Notices
from bot.live.operator_notices import DeadLetters, OperatorNews
from bot.live.settings import LiveSettings, Reload, secrets_of
from bot.overrides import Given
from bot.platforms.base import ChatPlatform, Linked
from bot.reconfiguration import (
    BuildRouter,
    budgets_live,
    chats_live,
    consent_live,
    limits_live,
    models_live,
    processes_live,
    sources_live,
    turns_live,
)
from bot.registration.basic_scripts import script_services_live, script_services_of
from bot.registration.filters import FilterFactory
from bot.registration.function_sources import FunctionSources, WantedSource
from bot.registration.functions import made_of, mcp_sources, sources_of
from bot.registration.models import CurrentModel, model_of, shadow_of
from bot.registration.services import EngineActions, PlatformMembers, TextModels, services_of
from bot.registration.unknown_names import UnknownNames, names_in
from bot.telemetry.metrics import Metrics
from bot.telemetry.records import FILE as SHADOW_LOG
from bot.telemetry.records import CallRecords, ModelRecords, ShadowRecords
from bot.timers.schedules import ScheduleEnds, SchedulePlans, SettingsSchedules
from bot.timers.timer_dispatch import Timers, late_note
from bot.turns.closing import Closing
from bot.turns.turn_log import StoredExplanations
from bot.turns.turns import Turns
from config.settings import Settings
from config.texts import Texts
from function_calls.checks.approvals import Approvals, Taint
from function_calls.checks.budgets import FunctionBudgets, RequestBudgets
from function_calls.checks.permissions import Policies
from function_calls.filters import Filters
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.ports import (
    ActiveFunctions,
    ChatActions,
    ChatNotes,
    ChatWriter,
    Explanations,
    Members,
    OwnSettings,
    StartFunctions,
    TextModel,
)
from function_calls.registry import FunctionRegistry
from function_calls.rounds.model_requests import Outages
from function_calls.rounds.shadow import Shadow
from function_calls.rounds.shortlist import ChatLists
from function_calls.router import FunctionCallRouter
from function_calls.schedule_check import ScheduleCheck
from services.call_log import JsonLines
from services.chats.grants import Grants
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.mcp.opening import SandboxedStart
from services.mcp.tools import COUNTER as PINS
from services.mcp.tools import Pins
from services.redaction import Redactor
from services.refs import ChatRef
from services.sandbox.sandbox import Sandbox
from services.scripts.basic_tools import COUNTER as SCRIPTS
from services.scripts.basic_tools import BasicTools
from services.store.chats.outcomes import COUNTER as DEAD
from services.store.chats.outcomes import DeadKind
from services.store.ids import Ids
from services.store.port import Store
from services.timers.schedules import Schedules, WhenReader
from services.timers.timetable import Timetable
from services.times import Times
from services.web.http import WebClient
from services.web.news import News
from services.web.search import WebSearch


def show_turns(metrics: Metrics, engine: EmbeddedEngine, delivery: Delivery, notices: Notices) -> None:
    """Metrics on queue lengths and dropped messages."""
    metrics.gauge("rollcall_turns_waiting", "Turns that wait", lambda: engine.waiting)
    metrics.gauge("rollcall_turns_running", "Turns that run", lambda: engine.running)
    metrics.gauge(
        "rollcall_reply_lines_dropped",
        "Lines that were not sent because too many waited",
        lambda: delivery.dropped_lines,
    )
    metrics.gauge("rollcall_messages_given_up", "Messages that no network took", lambda: delivery.failed)
    metrics.counter("rollcall_messages_dropped", "Messages without a turn", "reason", lambda: notices.dropped)


def show_dead_letters(metrics: Metrics, dead: DeadLetters) -> None:
    """Metrics on dead letters."""
    metrics.gauges(
        "rollcall_dead_letters",
        "What was given up and may be retried",
        "kind",
        lambda: {kind.value: dead.counts[kind.value] for kind in DeadKind},
    )


def show_store(metrics: Metrics, store: Store) -> None:
    """Metrics on whether the database is writable, and when its last full check passed."""
    metrics.gauge("rollcall_store_usable", "1: the database can be written", lambda: store.health().problem is None)
    metrics.gauge(
        "rollcall_store_checked_timestamp_seconds",
        "When the last full check found no damage in the database; 0: not yet",
        lambda: (store.health().checked_ms or 0) / 1000,
    )


def show_links(metrics: Metrics, platforms: Sequence[ChatPlatform]) -> None:
    """Metrics on the connections of linked networks."""
    linked = {f"{one.name}:{one.account}": one for one in platforms if isinstance(one, Linked)}
    if not linked:
        return
    metrics.gauges(
        "rollcall_platform_connected",
        "Whether there is a connection to a network",
        "platform",
        lambda: {name: float(one.link().is_up) for name, one in linked.items()},
    )
    metrics.counter(
        "rollcall_platform_losses",
        "Connections to a network that were lost or could not be made",
        "platform",
        lambda: {name: one.link().losses for name, one in linked.items()},
    )


def show_faults(metrics: Metrics, functions: FunctionSources, reload: Reload) -> None:
    """Metrics on errors in function files and the settings file."""
    metrics.gauge("rollcall_functions_unusable", "Faults in files of functions", lambda: len(functions.faults))
    metrics.gauge("rollcall_settings_faulty", "Faults in the settings' file", lambda: len(reload.faults))


def show_backups(metrics: Metrics, backups: Backups) -> None:
    """Metric on the age of the newest backup, if backups are scheduled."""
    if backups.are_scheduled:
        metrics.gauge("rollcall_backup_age_seconds", "Time since the newest backup", backups.age_seconds)


def show_timers(metrics: Metrics, timers: Timers) -> None:
    """Metrics on due timers and their outcomes."""
    metrics.gauge("rollcall_timers_overdue", "Timers that are due and wait", lambda: timers.waiting)
    metrics.gauge("rollcall_timers_held", "1: timers are held back, the clock is in doubt", lambda: timers.is_holding)
    metrics.counter("rollcall_timers_fired", "Moments that came", "outcome", lambda: timers.outcomes)


def show_shadow(metrics: Metrics, shadow: Shadow) -> None:
    """Metrics on requests that the shadow model did not get."""
    dropped = shadow.dropped
    metrics.counter("rollcall_shadow_dropped", "Questions the shadow was not asked", "reason", lambda: dropped)


def show_models(metrics: Metrics, model: CurrentModel) -> None:
    """Metrics on model failures."""
    metrics.gauges(
        "rollcall_model_left_alone_seconds",
        "How long a model is left alone after failures",
        "model",
        lambda: {state.name: state.seconds_left for state in model.states()},
    )
    metrics.counter(
        "rollcall_model_failures",
        "Questions that a model could not be asked",
        "model",
        lambda: {state.name: state.failures for state in model.states()},
    )


@dataclass(frozen=True, slots=True)
class Ground:
    """Settings at the start, time, store, and parts that depend on no others."""

    settings: Settings
    given: Given
    store: Store
    ids: Ids
    epoch: int
    """Id of this process, which distinguishes its claims from those of earlier ones."""
    texts: Texts
    clock: Clock
    deadlines: Deadlines
    faults: FaultPoints
    chats: Chats
    registry: FunctionRegistry
    """Empty until the function sources are loaded."""
    redact: Redactor
    metrics: Metrics
    call_log: JsonLines
    model_log: JsonLines
    shadow_log: JsonLines


def ground_of(settings: Settings, store: Store, ids: Ids, texts: Texts, given: Given) -> Ground:
    """The base parts, on `store` and with the overrides in `given`."""
    return Ground(
        settings=settings,
        given=given,
        store=store,
        ids=ids,
        epoch=ids.next(),
        texts=texts,
        clock=given.clock,
        deadlines=given.deadlines or Deadlines(given.clock),
        faults=given.faults,
        chats=Chats(settings, texts),
        registry=FunctionRegistry(),
        redact=Redactor(secrets_of(settings)),
        metrics=Metrics(),
        call_log=_lines(settings, "function_calls.jsonl"),
        model_log=_lines(settings, "model_requests.jsonl"),
        shadow_log=_lines(settings, SHADOW_LOG),
    )


def _lines(settings: Settings, name: str) -> JsonLines:
    """A separate log file in the logging folder."""
    return JsonLines(
        Path(settings.logging.folder) / name,
        max_bytes=settings.logging.max_megabytes * 1_000_000,
        keep_files=settings.logging.keep_files,
    )


@dataclass(frozen=True, slots=True)
class Consent:
    """Open questions, approvals and grants."""

    questions: OpenQuestions
    decisions: Decisions
    grants: Grants
    approvals: Approvals


def consent_of(ground: Ground) -> Consent:
    """Without stored questions and grants, which are loaded at the start."""
    settings, store, clock = ground.settings, ground.store, ground.clock
    questions = OpenQuestions(clock, settings.questions.expires_seconds, settings.approvals.expires_seconds)
    grants = Grants(store, clock, ground.ids)
    return Consent(
        questions=questions,
        decisions=Decisions(store, questions, ground.chats),
        grants=grants,
        approvals=Approvals(settings.approvals, grants, lambda chat: questions.approvals_in(chat.key)),
    )


@dataclass(frozen=True, slots=True)
class Models:
    """The chat model, its budgets, and clients of it outside of turns."""

    current: CurrentModel
    requests: RequestBudgets
    paid: PaidRequests
    """Requests outside of turns."""
    writer: ModelWriter
    """Writes text for functions."""
    outages: Outages


def models_of(ground: Ground) -> Models:
    """The model of the overrides, else of the settings. Raises DefinitionError for a custom model that cannot be
    found."""
    settings, clock, deadlines = ground.settings, ground.clock, ground.deadlines
    current = CurrentModel(ground.given.model or model_of(settings, ground.texts, clock, deadlines))
    requests = RequestBudgets(settings.budgets, ground.store, clock)
    # The offline model writes no text.
    paid = PaidRequests(current, requests, can_write=lambda: current.can_write)
    return Models(
        current=current,
        requests=requests,
        paid=paid,
        writer=ModelWriter(paid, ground.store, deadlines, clock),
        outages=Outages(clock, settings.failover.say_again_seconds),
    )


@dataclass(frozen=True, slots=True)
class Planning:
    """Timers, their parser, and the check of a run before it is scheduled."""

    timetable: Timetable
    reader: WhenReader
    schedules: Schedules
    rehearsal: ScheduleCheck
    """Bound to the invoker later."""


def planning_of(ground: Ground) -> Planning:
    """Planning on the timetable of the store."""
    settings, store, clock, ids = ground.settings, ground.store, ground.clock, ground.ids
    timetable = Timetable(store, clock, ids)
    reader = WhenReader(Times(), time.fromisoformat(settings.reminders.default_time))
    most_here, most_in_all = settings.limits.schedules_per_chat, settings.timers.per_member
    return Planning(
        timetable=timetable,
        reader=reader,
        schedules=Schedules(timetable, reader, store, clock, ids, most_here, most_in_all),
        rehearsal=ScheduleCheck(),
    )


@dataclass(frozen=True, slots=True)
class Leaning:
    """The services that functions may bind; some are also fields, for other parts of the daemon."""

    services: Mapping[type, object]
    actions: EngineActions
    """Bound to the engine later."""
    members: PlatformMembers
    """Bound to the delivery later."""
    notes: StoredChatNotes
    beginnings: StartScripts
    scripts: BasicTools
    sandbox: Sandbox

    @property
    def held_open(self) -> Sequence[WebClient | News | WebSearch]:
        """The services that are closed at shutdown."""
        return [service for service in self.services.values() if isinstance(service, WebClient | News | WebSearch)]


def leaning_of(ground: Ground, consent: Consent, models: Models, planning: Planning) -> Leaning:
    """One shared instance per service."""
    settings, given, store, ids, clock = ground.settings, ground.given, ground.store, ground.ids, ground.clock
    chats, deadlines = ground.chats, ground.deadlines
    actions, members = EngineActions(store, consent.questions), PlatformMembers(store, chats, deadlines, clock)
    notes, beginnings = StoredChatNotes(chats, store, clock), StartScripts(store, clock, ground.registry.of)
    scripts = BasicTools(store, clock)
    ports: dict[type, object] = {
        Explanations: StoredExplanations(store),
        Members: members,
        ChatActions: actions,
        OwnSettings: StoredOwnSettings(chats, store, ids, clock),
        ActiveFunctions: StoredActivations(chats, store, ids, clock),
        ChatNotes: notes,
        StartFunctions: beginnings,
        ChatWriter: models.writer,
        TextModel: TextModels(models.writer, deadlines, clock),
    }
    shared: dict[type, object] = {
        Grants: consent.grants,
        Schedules: planning.schedules,
        ScheduleCheck: planning.rehearsal,
    }
    # Used by scripts, in addition to the services of functions.
    inner: dict[type, object] = {BasicTools: scripts, Random: given.rng, Redactor: ground.redact}
    own = services_of(settings, store, clock, ids, given.rng, given.web, planning.timetable)
    services = {**own, **shared, **inner, **ports}
    services |= script_services_of(settings, services, store, ids)
    return Leaning(
        services=services,
        actions=actions,
        members=members,
        notes=notes,
        beginnings=beginnings,
        scripts=scripts,
        sandbox=cast(Sandbox, own[Sandbox]),
    )


@dataclass(frozen=True, slots=True)
class Calling:
    """The invoker and its filters and budgets."""

    invoker: Invoker
    units: FunctionBudgets
    filters: Filters
    """Filters of the settings at the start, around runs, rounds and turns."""
    filters_of: Callable[[Settings], Filters]
    """Returns the filters of other settings; raises DefinitionError."""


def calling_of(ground: Ground, consent: Consent) -> Calling:
    """From the settings at the start. Raises DefinitionError for filters that cannot be used."""
    settings, given, clock = ground.settings, ground.given, ground.clock
    factory = FilterFactory(ground.store, clock, ground.deadlines, ground.redact)

    def filters_of(settings: Settings) -> Filters:
        filters = factory.build(settings.filters)
        named = {**filters.named, **given.named_filters}
        return replace(filters, call=[*given.filters, *filters.call], named=named)

    filters, units = filters_of(settings), FunctionBudgets(settings.budgets, ground.store, clock)
    invoker = Invoker(
        Policies(budget=units, taint=Taint(consent.approvals), approval=consent.approvals),
        ground.deadlines,
        clock,
        filters=filters.call,
        named_filters=filters.named,
        record=CallRecords(ground.call_log, ground.metrics, clock, ground.redact).record,
        faults=ground.faults,
    )
    return Calling(invoker, units, filters, filters_of)


@dataclass(frozen=True, slots=True)
class Offering:
    """The function sources that fill the registry."""

    sources: FunctionSources
    wanted: Callable[[Settings], list[WantedSource]]
    """Returns the sources that settings configure."""
    pins: Pins


def offering_of(ground: Ground, leaning: Leaning, calling: Calling) -> Offering:
    """The sources of the settings and of the overrides. The invoker of `calling` checks whether functions can run."""
    given, clock, services = ground.given, ground.clock, leaning.services
    others = [WantedSource(one, one) for one in (given.sources(services) if given.sources else ())]
    pins = Pins(ground.store, clock)
    start = SandboxedStart(leaning.sandbox, Path(ground.settings.home) / "mcp")

    def wanted(settings: Settings) -> list[WantedSource]:
        coarsely = made_of(settings)
        found = sources_of(settings, services, given.changes)
        servers = mcp_sources(settings.mcp.servers, pins, clock, start, asks_first=given.asks_servers)
        return [
            *(one if isinstance(one, WantedSource) else WantedSource(one, coarsely) for one in found),
            *servers,
            *others,
        ]

    sources = FunctionSources(
        wanted(ground.settings), ground.registry, calling.invoker.problems_of, logs_faults=given.logs_faults
    )
    return Offering(sources, wanted, pins)


@dataclass(frozen=True, slots=True)
class Sending:
    """The delivery, and notices outside of turns."""

    delivery: Delivery
    notices: Notices


def sending_of(ground: Ground, platforms: Sequence[ChatPlatform]) -> Sending:
    """The delivery over `platforms`."""
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


@dataclass(frozen=True, slots=True)
class Routing:
    """The router, and the shadow model that is compared with its model."""

    router: FunctionCallRouter
    """The router at the start."""
    router_of: BuildRouter
    shadow: Shadow | None


def routing_of(ground: Ground, models: Models, planning: Planning, calling: Calling, sending: Sending) -> Routing:
    """From the settings at the start. Raises DefinitionError for a shadow model that cannot be used."""
    shadow = _shadow(ground, sending)
    asked = ModelRecords(ground.model_log, ground.clock)
    lists: ChatLists = OrderedDict()

    def router_of(settings: Settings, filters: Filters) -> FunctionCallRouter:
        llm = FunctionCallLLM(
            models.current,
            calling.invoker,
            settings.router,
            ground.clock,
            filters=[*filters.round, *([shadow.around] if shadow else [])],
            record=asked.record,
            faults=ground.faults,
            outages=models.outages,
            budgets=models.requests,
            lists=lists,
        )
        return FunctionCallRouter(calling.invoker, llm, filters.turn, ScheduleEnds(planning.schedules))

    return Routing(router_of(ground.settings, calling.filters), router_of, shadow)


def _shadow(ground: Ground, sending: Sending) -> Shadow | None:
    """The shadow model, whose calls are recorded and not run; None if it is not configured."""
    given, clock, settings = ground.given, ground.clock, ground.settings
    model = given.shadow or (shadow_of(settings, clock) if given.model is None else None)
    if model is None:
        return None
    compared = ShadowRecords(ground.shadow_log, ground.registry, clock, ground.redact)
    return Shadow(model, settings.router.shadow, clock, compared.record, sending.delivery.delivered)


@dataclass(frozen=True, slots=True)
class Running:
    """The engine and what it runs."""

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
    """From the settings at the start; nothing runs yet."""
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


@dataclass(frozen=True, slots=True)
class Receiving:
    """The intake, and the timers that feed it."""

    intake: Intake
    timers: Timers


def receiving_of(ground: Ground, consent: Consent, planning: Planning, sending: Sending, running: Running) -> Receiving:
    """Nothing is received yet."""
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


@dataclass(frozen=True, slots=True)
class Minding:
    """Reload of settings, diagnostics, and notices to operators."""

    live: LiveSettings
    """Without registered parts; `_take` adds them."""
    reload: Reload
    news: OperatorNews
    names: UnknownNames
    backups: Backups


def minding_of(ground: Ground, offering: Offering, sending: Sending) -> Minding:
    """Watches settings, functions, names and backups for problems."""
    settings, given, registry = ground.settings, ground.given, ground.registry
    live = LiveSettings(settings)
    reload = Reload(live, given.read_settings, ground.faults)
    news = OperatorNews(
        settings.operators,
        sending.notices,
        ground.chats,
        ground.store,
        ground.clock,
        ground.redact,
        registry.serves_of,
    )
    names = UnknownNames(lambda: live.now, offering.sources, lambda: registry.specs, given.settings_file)
    news.watch("settings", lambda: reload.faults)
    news.watch("functions", lambda: offering.sources.faults)
    news.watch("names", lambda: names.faults)
    backups = Backups(settings, ground.clock, news.changed)
    news.watch("backups", lambda: backups.faults)
    return Minding(live, reload, news, names, backups)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The periodic tasks of the daemon, except for timers."""

    schedules: SettingsSchedules
    script_schedules: ScriptSchedules
    script_notes: ScriptNotes
    housekeeping: Housekeeping
    dead_letters: DeadLetters


def keeping_of(
    ground: Ground,
    consent: Consent,
    planning: Planning,
    leaning: Leaning,
    offering: Offering,
    sending: Sending,
    receiving: Receiving,
    minding: Minding,
) -> Keeping:
    """From the settings at the start."""
    chats, clock, functions, scripts = ground.chats, ground.clock, ground.registry.of, leaning.scripts
    plans = SchedulePlans(chats, planning.rehearsal, planning.reader, clock, ground.texts.of("en"))
    delivery, intake = sending.delivery, receiving.intake
    dead = DeadLetters(ground.store, intake, delivery, planning.timetable, minding.news, clock)
    return Keeping(
        schedules=SettingsSchedules(chats, plans, planning.schedules),
        script_schedules=ScriptSchedules(planning.schedules, functions, scripts, clock),
        script_notes=ScriptNotes(leaning.notes, chats, functions, scripts),
        housekeeping=Housekeeping(
            ground.store,
            chats,
            consent.questions,
            sending.notices,
            Expiry(intake, consent.questions, clock),
            ground.settings.store,
            clock,
            {PINS: offering.pins.load, SCRIPTS: scripts.reload_if_changed, DEAD: dead.look},
            None if ground.settings.store.is_on_a_server else database_of(ground.settings),
        ),
        dead_letters=dead,
    )


def build_daemon(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    ids: Ids,
    texts: Texts,
    given: Given,
) -> Daemon:
    """The daemon on `store` with `platforms`. Raises DefinitionError for filters and models that cannot be used."""
    # Each part depends on those above it.
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
    """Bind parts that depend on each other in a cycle, and register callbacks for changes of functions."""
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
    """Register the callbacks for everything that is given up."""
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
    """Register the metrics of all parts."""
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
    """Register the parts that apply new settings at run time, in this order."""
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
    # Last, after the sources have the new settings.
    live.take(prepare=lambda fresh: minding.names.look, hears_of=names_in)
