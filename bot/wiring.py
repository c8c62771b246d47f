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
from bot.chats.digests import Digests
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import ModelWriter, PaidRequests, Summaries
from bot.daemon import Daemon
from bot.database.opening import database_of
from bot.delivery.collected import Collected
from bot.delivery.delivery import Delivery
from bot.delivery.outgoing import Due
from bot.delivery.status_messages import StatusMessages
from bot.direct_calls import DirectCalls
from bot.engine.embedded import EmbeddedEngine
from bot.housekeeping import Backups, Expiry, Housekeeping
from bot.intake.gate import ApprovalOutcomes
from bot.intake.intake import Intake
from bot.intake.notices import BotLoopLimit, Notices
from bot.live.command_menus import ShownMenus, command_hints
from bot.live.operator_notices import DeadLetters, OperatorNotices
from bot.live.settings import LiveSettings, Reload, environment_secrets, secrets_of
from bot.overrides import Overrides
from bot.platforms.base import ChatPlatform, CommandHint, Linked
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
from bot.registration.function_sources import ConfiguredSource, FunctionSources
from bot.registration.functions import in_settings_file, made_of, mcp_sources, sources_of
from bot.registration.models import CurrentModel, model_of, shadow_of
from bot.registration.services import EngineActions, PlatformMembers, TextModels, services_of
from bot.registration.unknown_names import UnknownNames, names_in
from bot.telemetry.metrics import Metrics
from bot.telemetry.records import FILE as SHADOW_LOG
from bot.telemetry.records import CallRecords, ModelRecords, ShadowRecords
from bot.timers.schedules import ScheduleEnds, SchedulePlans, SettingsSchedules
from bot.timers.timer_dispatch import Timers, late_note
from bot.turns.attached import AttachedFiles, FileReader
from bot.turns.closing import Closing
from bot.turns.turn_log import StoredExplanations
from bot.turns.turns import Turns
from bot.turns.voice import Voice
from config.settings import DEFAULT_BOT, Settings
from config.texts import FALLBACK, Texts
from function_calls.checks.approvals import Approvals
from function_calls.checks.budgets import FunctionBudgets, RequestBudgets
from function_calls.checks.permissions import Policies
from function_calls.checks.vouching import Vouching
from function_calls.filters import Filters
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.ports import (
    ActiveFunctions,
    ChatActions,
    ChatNotes,
    ChatRules,
    ChatWriter,
    Explanations,
    Members,
    Moderation,
    Mutes,
    OwnSettings,
    StartFunctions,
    TextModel,
)
from function_calls.registry import FunctionRegistry
from function_calls.rounds.model_requests import Outages
from function_calls.rounds.shadow import Shadow
from function_calls.rounds.shortlist import ChatLists, found_here
from function_calls.router import FunctionCallRouter
from function_calls.schedule_check import ScheduleCheck
from services.call_log import JsonLines
from services.chats.grants import Grants
from services.chats.member_links import MemberLinks
from services.chats.members import MemberZones
from services.chats.memory import Memory
from services.chats.message_history import MessageHistory
from services.chats.privacy import COUNTER as OPT_OUTS
from services.chats.privacy import MemberData
from services.clock import Clock, Deadlines
from services.fault_points import FaultPoints
from services.mcp.opening import SandboxedStart
from services.mcp.tools import COUNTER as PINS
from services.mcp.tools import Pins
from services.media.models import MediaModels
from services.pictures import Pictures
from services.redaction import Redactor
from services.refs import ChatRef, Role
from services.sandbox.parsing import DocumentParser
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
    """Register metrics on queue lengths and dropped messages."""
    metrics.gauge("rollcall_turns_waiting", "Turns that wait", lambda: engine.waiting)
    metrics.gauge("rollcall_turns_running", "Turns that run", lambda: engine.running)
    metrics.gauge(
        "rollcall_reply_lines_dropped",
        "Lines that were not sent because too many waited",
        lambda: delivery.dropped_lines,
    )
    metrics.gauge("rollcall_messages_given_up", "Messages that could not be delivered", lambda: delivery.failed)
    metrics.counter("rollcall_messages_dropped", "Messages without a turn", "reason", lambda: notices.dropped)


def show_dead_letters(metrics: Metrics, dead: DeadLetters) -> None:
    """Register metrics on dead letters, by kind."""
    metrics.gauges(
        "rollcall_dead_letters",
        "Dead letters that can be retried",
        "kind",
        lambda: {kind.value: dead.counts[kind.value] for kind in DeadKind},
    )


def show_store(metrics: Metrics, store: Store) -> None:
    """Register metrics on whether the database is writable, and when its last full check passed."""
    metrics.gauge("rollcall_store_usable", "1: the database can be written", lambda: store.health().problem is None)
    metrics.gauge(
        "rollcall_store_checked_timestamp_seconds",
        "When the last full check found no damage in the database; 0: not yet",
        lambda: (store.health().checked_ms or 0) / 1000,
    )


def show_links(metrics: Metrics, platforms: Sequence[ChatPlatform]) -> None:
    """Register metrics on the connections of linked networks, if there are any."""
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
    """Register metrics on errors in function files and the settings file."""
    metrics.gauge("rollcall_functions_unusable", "Problems in function files", lambda: len(functions.faults))
    metrics.gauge("rollcall_settings_faulty", "Problems in the settings file", lambda: len(reload.faults))


def show_backups(metrics: Metrics, backups: Backups) -> None:
    """Register a metric on the age of the newest backup, if backups are scheduled."""
    if backups.are_scheduled:
        metrics.gauge("rollcall_backup_age_seconds", "Time since the newest backup", backups.age_seconds)


def show_timers(metrics: Metrics, timers: Timers) -> None:
    """Register metrics on due timers and their outcomes."""
    metrics.gauge("rollcall_timers_overdue", "Timers that are due and wait", lambda: timers.waiting)
    metrics.gauge("rollcall_timers_held", "1: timers are held back, the clock is in doubt", lambda: timers.is_holding)
    metrics.counter("rollcall_timers_fired", "Due timer occurrences", "outcome", lambda: timers.outcomes)


def show_shadow(metrics: Metrics, shadow: Shadow) -> None:
    """Register metrics on requests that the shadow model did not get."""
    dropped = shadow.dropped
    metrics.counter("rollcall_shadow_dropped", "Requests that the shadow model did not get", "reason", lambda: dropped)


def show_models(metrics: Metrics, model: CurrentModel) -> None:
    """Register metrics on model failures and pauses, by model."""
    metrics.gauges(
        "rollcall_model_left_alone_seconds",
        "Remaining pause of a model after failures, in seconds",
        "model",
        lambda: {state.name: state.seconds_left for state in model.states()},
    )
    metrics.counter(
        "rollcall_model_failures",
        "Requests that a model did not answer",
        "model",
        lambda: {state.name: state.failures for state in model.states()},
    )


@dataclass(frozen=True, slots=True)
class Base:
    """Settings at the start, time, store, and parts that depend on no others."""

    settings: Settings
    overrides: Overrides
    store: Store
    ids: Ids
    epoch: int
    """Id of this process, which distinguishes its claims from those of earlier ones."""
    texts: Texts
    clock: Clock
    deadlines: Deadlines
    faults: FaultPoints
    chats: Chats
    links: MemberLinks
    member_data: MemberData
    registry: FunctionRegistry
    """Empty until the function sources are loaded."""
    redact: Redactor
    metrics: Metrics
    call_log: JsonLines
    model_log: JsonLines
    shadow_log: JsonLines


def base_of(settings: Settings, store: Store, ids: Ids, texts: Texts, overrides: Overrides) -> Base:
    """Build the base parts, on `store` and with `overrides`; nothing is loaded yet."""
    return Base(
        settings=settings,
        overrides=overrides,
        store=store,
        ids=ids,
        epoch=ids.next(),
        texts=texts,
        clock=overrides.clock,
        deadlines=overrides.deadlines or Deadlines(overrides.clock),
        faults=overrides.faults,
        chats=Chats(settings, texts),
        links=MemberLinks(store, overrides.clock),
        member_data=MemberData(store, overrides.clock, settings.store),
        registry=FunctionRegistry(),
        redact=Redactor([*secrets_of(settings), *environment_secrets()]),
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
    decisions: ApprovalOutcomes
    grants: Grants
    approvals: Approvals


def consent_of(base: Base) -> Consent:
    """Build the questions, grants and approvals, without stored ones, which are loaded at the start."""
    settings, store, clock = base.settings, base.store, base.clock
    questions = OpenQuestions(clock, settings.questions.expires_seconds, settings.approvals.expires_seconds)
    grants = Grants(store, clock, base.ids)
    return Consent(
        questions=questions,
        decisions=ApprovalOutcomes(store, questions, base.chats),
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


def models_of(base: Base) -> Models:
    """The model of the overrides, else of the settings. Raises DefinitionError for a custom model that cannot be
    found."""
    settings, clock, deadlines = base.settings, base.clock, base.deadlines
    current = CurrentModel(base.overrides.model or model_of(settings, base.texts, clock, deadlines), base.redact.known)
    requests = RequestBudgets(settings.budgets, base.store, clock, base.links.person_of)
    # The offline model writes no text.
    paid = PaidRequests(current, requests, can_write=lambda: current.can_write)
    return Models(
        current=current,
        requests=requests,
        paid=paid,
        writer=ModelWriter(paid, base.store, deadlines, clock),
        outages=Outages(clock, settings.failover.say_again_seconds),
    )


@dataclass(frozen=True, slots=True)
class Planning:
    """Timers, their parser, and the check of a run before it is scheduled."""

    timetable: Timetable
    reader: WhenReader
    schedules: Schedules
    schedule_check: ScheduleCheck
    """Bound to the invoker later."""


def planning_of(base: Base) -> Planning:
    """Build the planning on the timetable of the store: WhenReader, Schedules and ScheduleCheck."""
    settings, store, clock, ids = base.settings, base.store, base.clock, base.ids
    timetable = Timetable(store, clock, ids)
    reader = WhenReader(Times(), time.fromisoformat(settings.reminders.default_time))
    most_here, most_in_all = settings.limits.schedules_per_chat, settings.timers.per_member
    return Planning(
        timetable=timetable,
        reader=reader,
        schedules=Schedules(timetable, reader, store, clock, ids, most_here, most_in_all),
        schedule_check=ScheduleCheck(),
    )


@dataclass(frozen=True, slots=True)
class FunctionServices:
    """The services that functions may bind; some are also fields, for other parts of the daemon."""

    services: Mapping[type, object]
    actions: EngineActions
    """Bound to the engine later."""
    members: PlatformMembers
    """Bound to the delivery later."""
    notes: StoredChatNotes
    start_scripts: StartScripts
    scripts: BasicTools
    sandbox: Sandbox
    memory: Memory

    @property
    def closable(self) -> Sequence[WebClient | News | WebSearch]:
        """The services that are closed at shutdown."""
        return [service for service in self.services.values() if isinstance(service, WebClient | News | WebSearch)]


def function_services_of(base: Base, consent: Consent, models: Models, planning: Planning) -> FunctionServices:
    """Build the services of functions and scripts, one shared instance each, by type."""
    settings, overrides, store, ids, clock = base.settings, base.overrides, base.store, base.ids, base.clock
    chats, deadlines = base.chats, base.deadlines
    actions, members = EngineActions(store, consent.questions), PlatformMembers(store, chats, deadlines, clock)
    notes, start_scripts = StoredChatNotes(chats, store, clock), StartScripts(store, clock, base.registry.of)
    scripts = BasicTools(store)
    own_settings = StoredOwnSettings(chats, store, ids, clock)
    ports: dict[type, object] = {
        Explanations: StoredExplanations(store),
        Members: members,
        Moderation: members,
        ChatActions: actions,
        OwnSettings: own_settings,
        Mutes: own_settings,
        ChatRules: own_settings,
        ActiveFunctions: StoredActivations(chats, store, ids, clock),
        ChatNotes: notes,
        StartFunctions: start_scripts,
        ChatWriter: models.writer,
        TextModel: TextModels(models.writer, deadlines, clock),
    }
    shared: dict[type, object] = {
        Grants: consent.grants,
        Pictures: Pictures(settings.pictures.font, members.file_bytes),
        MemberLinks: base.links,
        MemberData: base.member_data,
        Texts: base.texts,
        Schedules: planning.schedules,
        ScheduleCheck: planning.schedule_check,
    }
    # Used by scripts, in addition to the services of functions.
    inner: dict[type, object] = {BasicTools: scripts, Random: overrides.rng, Redactor: base.redact}
    own = services_of(settings, store, clock, ids, overrides.rng, overrides.web, planning.timetable)
    services = {**own, **shared, **inner, **ports}
    services |= script_services_of(settings, services, store, ids)
    return FunctionServices(
        services=services,
        actions=actions,
        members=members,
        notes=notes,
        start_scripts=start_scripts,
        scripts=scripts,
        sandbox=cast(Sandbox, own[Sandbox]),
        memory=cast(Memory, own[Memory]),
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


def calling_of(base: Base, consent: Consent, models: Models) -> Calling:
    """Build the invoker with the settings at the start. Raises DefinitionError for filters that cannot be used."""
    settings, overrides, clock = base.settings, base.overrides, base.clock
    factory = FilterFactory(base.store, clock, base.deadlines, base.redact, models.writer)

    def filters_of(settings: Settings) -> Filters:
        filters = factory.build(settings.filters)
        named = {**filters.named, **overrides.named_filters}
        return replace(filters, call=[*overrides.filters, *filters.call], named=named)

    filters, units = filters_of(settings), FunctionBudgets(settings.budgets, base.store, clock, base.links.person_of)
    vouching = Vouching(consent.approvals, found_here)
    base.member_data.on_forget.append(vouching.forget)
    invoker = Invoker(
        Policies(budget=units, approval=vouching),
        base.deadlines,
        clock,
        filters=filters.call,
        named_filters=filters.named,
        record=CallRecords(base.call_log, base.metrics, clock, base.redact).record,
        faults=base.faults,
    )
    return Calling(invoker, units, filters, filters_of)


@dataclass(frozen=True, slots=True)
class FunctionLoading:
    """The function sources that fill the registry."""

    sources: FunctionSources
    configured_sources: Callable[[Settings], list[ConfiguredSource]]
    """Returns the sources that settings configure."""
    pins: Pins


def function_loading_of(base: Base, function_services: FunctionServices, calling: Calling) -> FunctionLoading:
    """The sources of the settings and of the overrides. The invoker of `calling` checks whether functions can run."""
    overrides, clock, services = base.overrides, base.clock, function_services.services
    others = [ConfiguredSource(one, one) for one in (overrides.sources(services) if overrides.sources else ())]
    pins = Pins(base.store, clock)
    start = SandboxedStart(function_services.sandbox, Path(base.settings.home) / "mcp")

    def configured_sources(settings: Settings) -> list[ConfiguredSource]:
        coarsely = made_of(settings)
        found = sources_of(settings, services, overrides.changes)
        servers = mcp_sources(settings.mcp.servers, pins, clock, start, asks_first=overrides.asks_servers)
        return [
            *(one if isinstance(one, ConfiguredSource) else ConfiguredSource(one, coarsely) for one in found),
            *servers,
            *others,
        ]

    sources = FunctionSources(
        configured_sources(base.settings),
        base.registry,
        calling.invoker.problems_of,
        placed=in_settings_file(overrides.settings_file),
        logs=overrides.logs_faults,
    )
    return FunctionLoading(sources, configured_sources, pins)


@dataclass(frozen=True, slots=True)
class Sending:
    """The delivery, and notices outside of turns."""

    delivery: Delivery
    notices: Notices


def sending_of(base: Base, platforms: Sequence[ChatPlatform]) -> Sending:
    """Build the delivery over `platforms`, and the notices that use it."""
    settings, chats, clock = base.settings, base.chats, base.clock

    def late(chat: ChatRef, due: Due) -> str:
        seconds = (clock.now_ms() - due.at_ms) // 1000
        if seconds < settings.timers.late_after_seconds:
            return ""
        return late_note(seconds, chats.profile(chat).texts, was_away=due.was_away)

    delivery = Delivery(
        {(one.name, one.account): one for one in platforms},
        base.store,
        settings.delivery,
        clock,
        base.epoch,
        base.faults,
        resent=lambda chat: chats.profile(chat).texts.say("delivery.resent"),
        late=late,
        dropped=lambda chat, lines: chats.profile(chat).texts.say("delivery.dropped", count=f"{lines:,}"),
        lead=base.overrides.lead,
        statuses=StatusMessages(base.store, base.ids, clock, base.epoch, base.faults),
        hide=base.redact.known,
    )
    return Sending(delivery, Notices(base.store, delivery, chats, clock, base.ids, base.epoch))


@dataclass(frozen=True, slots=True)
class Routing:
    """The router, and the shadow model that is compared with its model."""

    router: FunctionCallRouter
    """The router at the start."""
    router_of: BuildRouter
    shadow: Shadow | None


def routing_of(base: Base, models: Models, planning: Planning, calling: Calling, sending: Sending) -> Routing:
    """Build the router with the settings at the start. Raises DefinitionError for an unusable shadow model."""
    shadow = _shadow(base, sending)
    asked = ModelRecords(base.model_log, base.clock)
    lists: ChatLists = OrderedDict()

    def router_of(settings: Settings, filters: Filters) -> FunctionCallRouter:
        llm = FunctionCallLLM(
            models.current,
            calling.invoker,
            settings.routing,
            base.clock,
            filters=[*filters.round, *([shadow.around] if shadow else [])],
            record=asked.record,
            faults=base.faults,
            outages=models.outages,
            budgets=models.requests,
            lists=lists,
        )
        return FunctionCallRouter(calling.invoker, llm, filters.turn, ScheduleEnds(planning.schedules))

    return Routing(router_of(base.settings, calling.filters), router_of, shadow)


def _shadow(base: Base, sending: Sending) -> Shadow | None:
    """The shadow model, whose calls are recorded and not run; None if it is not configured."""
    overrides, clock, settings = base.overrides, base.clock, base.settings
    model = overrides.shadow or (shadow_of(settings, clock) if overrides.model is None else None)
    if model is None:
        return None
    compared = ShadowRecords(base.shadow_log, base.registry, clock, base.redact)
    return Shadow(model, settings.router.shadow, clock, compared.record, sending.delivery.delivered)


@dataclass(frozen=True, slots=True)
class Running:
    """The engine and what it runs."""

    engine: EmbeddedEngine
    turns: Turns
    closing: Closing
    summaries: Summaries
    direct_calls: DirectCalls
    attached: AttachedFiles
    voice: Voice


def running_of(
    base: Base,
    consent: Consent,
    models: Models,
    planning: Planning,
    function_services: FunctionServices,
    calling: Calling,
    sending: Sending,
    routing: Routing,
) -> Running:
    """Build the turns and their engine from the settings at the start; nothing runs yet."""
    settings = base.settings
    summaries = Summaries(base.store, models.paid, settings.router, settings.memory, base.clock)
    collected = Collected(base.store, sending.delivery, base.chats, base.clock)
    closing = Closing(
        chats=base.chats,
        questions=consent.questions,
        start_scripts=function_services.start_scripts,
        store=base.store,
        delivery=sending.delivery,
        metrics=base.metrics,
        clock=base.clock,
        ids=base.ids,
        epoch=base.epoch,
        faults=base.faults,
        collected=collected,
        member_data=base.member_data,
        after=routing.shadow.turn_ended if routing.shadow else None,
    )
    files, media = FileReader(sending.delivery.platform), cast(MediaModels, function_services.services[MediaModels])
    attached = AttachedFiles(files, settings, DocumentParser(base.clock))
    voice = Voice(files, media, models.requests, settings)
    turns = Turns(
        router=routing.router,
        functions=base.registry.of,
        chats=base.chats,
        members=function_services.members,
        questions=consent.questions,
        decisions=consent.decisions,
        start_scripts=function_services.start_scripts,
        closing=closing,
        store=base.store,
        delivery=sending.delivery,
        zones=MemberZones(base.store, base.clock),
        memory=function_services.memory,
        attached=attached,
        voice=voice,
        summaries=summaries,
        deadlines=base.deadlines,
        settings=settings.router,
        attempts=settings.limits.attempts_per_turn,
        clock=base.clock,
        epoch=base.epoch,
        faults=base.faults,
    )
    direct_calls = DirectCalls(
        registry=base.registry,
        chats=base.chats,
        invoker=calling.invoker,
        store=base.store,
        delivery=sending.delivery,
        timetable=planning.timetable,
        timeout_seconds=settings.router.turn_timeout_seconds,
        wait_seconds=consent.questions.seconds_for,
        deadlines=base.deadlines,
        clock=base.clock,
        ids=base.ids,
        epoch=base.epoch,
        faults=base.faults,
    )
    return Running(EmbeddedEngine(turns.run, settings.limits), turns, closing, summaries, direct_calls, attached, voice)


@dataclass(frozen=True, slots=True)
class Receiving:
    """The intake, and the timers that feed it."""

    intake: Intake
    timers: Timers


def receiving_of(
    base: Base, consent: Consent, models: Models, planning: Planning, sending: Sending, running: Running
) -> Receiving:
    """Build the intake and the timers; nothing is received yet."""
    settings, delivery = base.settings, sending.delivery
    intake = Intake(
        store=base.store,
        engine=running.engine,
        chats=base.chats,
        functions=base.registry.of,
        questions=consent.questions,
        decisions=consent.decisions,
        bot_loop_limit=BotLoopLimit(delivery.last_unmarked_sent_at, base.clock, settings.limits.bot_alternations),
        notices=sending.notices,
        senders_retry=delivery.senders_retry,
        is_only_bot=delivery.is_only_bot,
        has_model=lambda: models.current.can_write,
        member_data=base.member_data,
        may_name_bot=running.voice.may_name_bot,
        limits=settings.limits,
        history_per_chat=settings.store.history_per_chat,
        clock=base.clock,
        ids=base.ids,
        epoch=base.epoch,
        faults=base.faults,
    )
    timers = Timers(
        store=base.store,
        intake=intake,
        delivery=delivery,
        timetable=planning.timetable,
        settings=settings.timers,
        clock=base.clock,
        ids=base.ids,
        faults=base.faults,
    )
    return Receiving(intake, timers)


@dataclass(frozen=True, slots=True)
class Reloading:
    """Reload of settings, diagnostics, and notices to operators."""

    live: LiveSettings
    """Without registered parts; `_register_live_settings` adds them."""
    reload: Reload
    operator_notices: OperatorNotices
    unknown_names: UnknownNames
    backups: Backups


def reloading_of(base: Base, loading: FunctionLoading, sending: Sending) -> Reloading:
    """Build the reloading of settings, with the notices to operators on problems of settings, functions, names and
    backups."""
    settings, overrides, registry = base.settings, base.overrides, base.registry
    live = LiveSettings(settings)
    reload = Reload(live, overrides.read_settings, base.faults)
    operator_notices = OperatorNotices(
        settings.operators,
        sending.notices,
        base.chats,
        base.store,
        base.clock,
        base.redact,
        registry.serves_of,
    )
    unknown_names = UnknownNames(lambda: live.now, loading.sources, lambda: registry.specs, overrides.settings_file)
    operator_notices.watch("settings", lambda: reload.faults)
    operator_notices.watch("functions", lambda: loading.sources.faults)
    operator_notices.watch("names", lambda: unknown_names.faults)
    backups = Backups(settings, base.clock, operator_notices.changed)
    operator_notices.watch("backups", lambda: backups.faults)
    return Reloading(live, reload, operator_notices, unknown_names, backups)


@dataclass(frozen=True, slots=True)
class PeriodicTasks:
    """The periodic tasks of the daemon, except for timers."""

    schedules: SettingsSchedules
    script_schedules: ScriptSchedules
    script_notes: ScriptNotes
    housekeeping: Housekeeping
    digests: Digests
    dead_letters: DeadLetters


def periodic_tasks_of(
    base: Base,
    consent: Consent,
    models: Models,
    planning: Planning,
    function_services: FunctionServices,
    loading: FunctionLoading,
    sending: Sending,
    receiving: Receiving,
    reloading: Reloading,
) -> PeriodicTasks:
    """Build the periodic tasks from the settings at the start; nothing runs yet."""
    chats, clock, functions, scripts = base.chats, base.clock, base.registry.of, function_services.scripts
    plans = SchedulePlans(chats, planning.schedule_check, planning.reader, clock, base.texts.of("en"))
    delivery, intake = sending.delivery, receiving.intake
    past = cast(MessageHistory, function_services.services[MessageHistory])
    dead = DeadLetters(base.store, intake, delivery, planning.timetable, reloading.operator_notices, clock)
    return PeriodicTasks(
        schedules=SettingsSchedules(chats, plans, planning.schedules),
        script_schedules=ScriptSchedules(planning.schedules, functions, scripts, clock),
        script_notes=ScriptNotes(function_services.notes, chats, functions, scripts),
        housekeeping=Housekeeping(
            base.store,
            chats,
            consent.questions,
            sending.notices,
            Expiry(intake, consent.questions, clock),
            base.settings.store,
            clock,
            {
                PINS: loading.pins.load,
                SCRIPTS: scripts.reload_if_changed,
                DEAD: dead.look,
                OPT_OUTS: base.member_data.load,
            },
            None if base.settings.store.is_on_a_server else database_of(base.settings),
        ),
        digests=Digests(
            base.store, chats, models.paid, function_services.memory, past, lambda: reloading.live.now.memory, clock
        ),
        dead_letters=dead,
    )


def build_daemon(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    ids: Ids,
    texts: Texts,
    overrides: Overrides,
) -> Daemon:
    """The daemon on `store` with `platforms`. Raises DefinitionError for filters and models that cannot be used."""
    # Each part depends on those above it.
    base = base_of(settings, store, ids, texts, overrides)
    consent = consent_of(base)
    models = models_of(base)
    planning = planning_of(base)
    function_services = function_services_of(base, consent, models, planning)
    calling = calling_of(base, consent, models)
    loading = function_loading_of(base, function_services, calling)
    sending = sending_of(base, platforms)
    routing = routing_of(base, models, planning, calling, sending)
    running = running_of(base, consent, models, planning, function_services, calling, sending, routing)
    receiving = receiving_of(base, consent, models, planning, sending, running)
    reloading = reloading_of(base, loading, sending)
    periodic = periodic_tasks_of(
        base, consent, models, planning, function_services, loading, sending, receiving, reloading
    )

    _bind(base, consent, planning, function_services, calling, loading, sending, running, reloading)
    _register_erasure(base, consent, receiving)
    menus = ShownMenus(platforms, partial(_menus, base, texts), base.clock)
    loading.sources.on_change(menus.changed)
    _register_dead_letters(periodic.dead_letters, sending, running, receiving)
    _register_metrics(base, models, loading, sending, routing, running, receiving, reloading, periodic, platforms)
    _register_live_settings(
        base, consent, models, planning, function_services, calling, loading, routing, running, receiving, reloading
    )
    return Daemon(
        live=reloading.live,
        reload=reloading.reload,
        unknown_names=reloading.unknown_names,
        operator_notices=reloading.operator_notices,
        backups=reloading.backups,
        store=store,
        ids=ids,
        registry=base.registry,
        functions=loading.sources,
        invoker=calling.invoker,
        router=routing.router,
        direct_calls=running.direct_calls,
        model=models.current,
        model_states=models.current.states,
        chats=base.chats,
        start_scripts=function_services.start_scripts,
        questions=consent.questions,
        grants=consent.grants,
        links=base.links,
        member_data=base.member_data,
        schedules=periodic.schedules,
        script_schedules=periodic.script_schedules,
        script_notes=periodic.script_notes,
        engine=running.engine,
        delivery=sending.delivery,
        summaries=running.summaries,
        digests=periodic.digests,
        collected=running.closing.collected,
        intake=receiving.intake,
        timetable=planning.timetable,
        timers=receiving.timers,
        platforms=platforms,
        menus=menus,
        metrics=base.metrics,
        logs=(base.call_log, base.model_log, base.shadow_log),
        faults=base.faults,
        housekeeping=periodic.housekeeping,
        dead_letters=periodic.dead_letters,
        services=[*function_services.closable, *([routing.shadow] if routing.shadow else [])],
    )


def _menus(base: Base, texts: Texts) -> dict[str, list[CommandHint]]:
    """The commands of members in a chat without settings of its own, by language."""
    profile = base.chats.profile(ChatRef("", "", ""))
    functions = base.registry.of(DEFAULT_BOT)
    languages = [FALLBACK, *(one for one in texts.languages if one != FALLBACK)]
    return {one: command_hints(functions, profile, Role.MEMBER, texts.of(one)) for one in languages}


def _bind(
    base: Base,
    consent: Consent,
    planning: Planning,
    function_services: FunctionServices,
    calling: Calling,
    loading: FunctionLoading,
    sending: Sending,
    running: Running,
    reloading: Reloading,
) -> None:
    """Bind parts that depend on each other in a cycle, and register callbacks for changes of functions."""
    planning.schedule_check.bind(base.registry.of, calling.invoker, consent.approvals)
    function_services.actions.bind(running.engine)
    function_services.members.bind(sending.delivery)
    functions = loading.sources
    functions.on_change(lambda: calling.invoker.keep(base.registry.specs))
    functions.on_change(reloading.operator_notices.changed)
    functions.on_change(function_services.start_scripts.warn_of_changes)
    functions.on_change(reloading.unknown_names.look)
    reloading.unknown_names.on_change(reloading.operator_notices.changed)


def _register_erasure(base: Base, consent: Consent, receiving: Receiving) -> None:
    """Register what drops or reloads data in memory after a member's data was erased."""

    async def reload(_chat: str, _member: str) -> None:
        await consent.grants.load()
        await base.links.load()
        await base.chats.load(base.store)

    base.member_data.on_forget += [consent.questions.forget, receiving.intake.forget, reload]


def _register_dead_letters(dead: DeadLetters, sending: Sending, running: Running, receiving: Receiving) -> None:
    """Register the callbacks for everything that is given up."""
    running.closing.on_given_up.append(dead.turn)
    sending.delivery.on_given_up.append(dead.message)
    receiving.timers.on_undeliverable.append(dead.moment)


def _register_metrics(
    base: Base,
    models: Models,
    loading: FunctionLoading,
    sending: Sending,
    routing: Routing,
    running: Running,
    receiving: Receiving,
    reloading: Reloading,
    periodic: PeriodicTasks,
    platforms: Sequence[ChatPlatform],
) -> None:
    """Register the metrics of all parts; those of the shadow only if it is configured."""
    metrics = base.metrics
    show_turns(metrics, running.engine, sending.delivery, sending.notices)
    show_dead_letters(metrics, periodic.dead_letters)
    show_store(metrics, base.store)
    show_links(metrics, platforms)
    show_timers(metrics, receiving.timers)
    if routing.shadow is not None:
        show_shadow(metrics, routing.shadow)
    show_models(metrics, models.current)
    show_faults(metrics, loading.sources, reloading.reload)
    show_backups(metrics, reloading.backups)


def _use_media(running: Running, fresh: Settings) -> None:
    running.attached.use(fresh)
    running.voice.use(fresh)


def _register_live_settings(
    base: Base,
    consent: Consent,
    models: Models,
    planning: Planning,
    function_services: FunctionServices,
    calling: Calling,
    loading: FunctionLoading,
    routing: Routing,
    running: Running,
    receiving: Receiving,
    reloading: Reloading,
) -> None:
    """Register the parts that apply new settings at run time, in this order."""
    live, functions = reloading.live, loading.sources
    chats_live(live, base.chats)
    consent_live(live, consent.approvals, consent.questions)
    budgets_live(live, models.requests, calling.units)
    processes_live(live, function_services.services)
    script_services_live(live, function_services.services)
    limits_live(live, running.engine, receiving.intake, planning.schedules)
    turns_live(
        live,
        calling.filters_of,
        routing.router_of,
        calling.invoker,
        functions,
        running.turns,
        running.summaries,
        function_services.memory,
    )
    if base.overrides.model is None:
        texts, clock, deadlines = base.texts, base.clock, base.deadlines
        models_live(live, models.current, lambda fresh: model_of(fresh, texts, clock, deadlines), models.outages)
    live.register(
        "media",
        prepare=lambda fresh: partial(_use_media, running, fresh),
        depends_on=lambda fresh: (fresh.media, fresh.seeing_models, fresh.bots),
    )
    sources_live(live, functions, loading.configured_sources)
    live.register("operators", prepare=lambda fresh: partial(reloading.operator_notices.use, fresh.operators))
    live.register(prepare=lambda fresh: partial(base.redact.learn, secrets_of(fresh)), depends_on=secrets_of)
    # Last, after the sources have the new settings.
    live.register(prepare=lambda fresh: reloading.unknown_names.look, depends_on=names_in)
