"""Builds every object of the daemon; the only module that knows all others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import time
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import cast

from bot.alternations import Alternations
from bot.at_hand import StoredAtHand
from bot.beginnings import Beginnings
from bot.call_records import CallRecords
from bot.chat_notes import ScriptNotes, StoredChatNotes
from bot.chat_writer import ModelWriter
from bot.chats import Chats
from bot.current_model import CurrentModel
from bot.daemon import Daemon
from bot.decisions import Decisions
from bot.delivery import Delivery
from bot.direct_calls import DirectCalls
from bot.engine.embedded import EmbeddedEngine
from bot.expiry import Expiry
from bot.explanations import StoredExplanations
from bot.filters import FilterFactory
from bot.function_sources import FunctionSources, WantedSource
from bot.functions import made_of, sources_of
from bot.gauges import show_faults, show_links, show_models, show_timers, show_turns
from bot.housekeeping import Housekeeping
from bot.intake import Intake
from bot.lateness import late_note
from bot.leading import Alone, Lead, Leadership
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
from bot.live_settings import LiveSettings
from bot.mcp_clients import mcp_sources
from bot.metrics import Metrics
from bot.model_records import ModelRecords
from bot.models import model_of, shadow_of
from bot.notices import Notices
from bot.on_server import lead_on_server, open_on_server
from bot.open_questions import OpenQuestions
from bot.operator_news import OperatorNews
from bot.outgoing import Due
from bot.own_settings import StoredOwnSettings
from bot.paid_requests import PaidRequests
from bot.platforms.base import ChatPlatform
from bot.ports import EngineActions, PlatformMembers
from bot.reload import Reload
from bot.schedule_plans import SchedulePlans
from bot.script_schedules import ScriptSchedules
from bot.script_services import script_services_live, script_services_of
from bot.services import services_of
from bot.settings_schedules import SettingsSchedules
from bot.shadow_records import FILE as SHADOW_LOG
from bot.shadow_records import ShadowRecords
from bot.summaries import Summaries
from bot.timers import Timers
from bot.turns import Turns
from bot.unknown_names import UnknownNames, names_in
from bot.words import WordsOfModels
from config.settings import Settings
from config.texts import Texts
from function_calls.approvals import Approvals
from function_calls.budgets import FunctionBudgets, RequestBudgets
from function_calls.filters.call import CallFilter
from function_calls.filters.filters import Filters
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outages import Outages
from function_calls.policies import Policies
from function_calls.ports import (
    AtHand,
    ChatActions,
    ChatBeginnings,
    ChatNotes,
    ChatWriter,
    Explanations,
    Members,
    OwnSettings,
    Words,
)
from function_calls.registry import FunctionRegistry
from function_calls.rehearsal import Rehearsal
from function_calls.router import FunctionCallRouter
from function_calls.schedule_ends import ScheduleEnds
from function_calls.shadow import Shadow
from function_calls.shortlist import ChatLists
from function_calls.source import Changes, FunctionSource, Unwatched
from function_calls.taint import Taint
from services.basic_tools import COUNTER as SCRIPTS
from services.basic_tools import BasicTools
from services.call_log import JsonLines
from services.clock import Clock, SystemClock
from services.deadlines import Deadlines
from services.fault_points import FaultPoints
from services.grants import Grants
from services.http import WebClient
from services.llm.model import ChatModel
from services.mcp.pins import COUNTER, Pins
from services.mcp.sandboxed import SandboxedStart
from services.news import News
from services.redaction import Redactor, names_a_secret
from services.refs import ChatRef
from services.sandbox import Sandbox
from services.schedule_times import WhenReader
from services.schedules import Schedules
from services.search import WebSearch
from services.store.all_tables import all_tables
from services.store.ids import Ids
from services.store.port import Store, StoreBroken, Write
from services.store.sqlite import SqliteStore
from services.store.upgrade import upgrade
from services.times import Times
from services.timetable import Timetable

DATABASE = "rollcall.sqlite"


@dataclass(frozen=True, slots=True)
class Given:
    """What may be given from outside instead of being built from the settings: time, chance, the model, the way
    to the web, further functions, faults. Tests and the test kit use it; the daemon uses the defaults."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=SystemRandom)
    model: ChatModel | None = None
    shadow: ChatModel | None = None
    """Instead of the one that the settings name; where `model` is given, those name none."""
    web: WebClient | None = None
    sources: Callable[[Mapping[type, object]], Sequence[FunctionSource]] | None = None
    """Further sources, given the services that they may bind."""
    changes: Changes = field(default_factory=Unwatched)
    """Who tells sources that files have changed."""
    asks_servers: bool = True
    """Whether servers of tools of which nothing is known are asked for them; else only those whose tools are called."""
    logs_faults: bool = True
    """Whether the log says which functions cannot be used; commands say it themselves."""
    filters: Sequence[CallFilter] = ()
    """Around every run, the first one outermost."""
    named_filters: Mapping[str, CallFilter] = field(default_factory=dict)
    """Around the functions that name them."""
    read_settings: Callable[[], Settings] | None = None
    """The settings as they are in their file now; raises SettingsInvalid. None: they stay as they are."""
    settings_file: Path | None = None
    """Where they stand; for the places of what is wrong with them."""
    faults: FaultPoints = field(default_factory=FaultPoints)
    deadlines: Deadlines | None = None
    lead: Lead = field(default_factory=Alone)
    """Whether this process may send, where others could lead on the same database."""
    on_broken: Callable[[StoreBroken], None] | None = None


def lead_of(settings: Settings, clock: Clock, on_lost: Callable[[Exception], None] | None = None) -> Leadership:
    """Leading on the database of the settings, not begun. `on_lost` is called in the loop when it is lost.
    Raises StoreError."""
    return lead_on_server(settings.store, clock, on_lost) if settings.store.is_on_a_server else Alone()


async def open_store(
    settings: Settings,
    clock: Clock,
    on_broken: Callable[[StoreBroken], None] | None = None,
    guard: Write | None = None,
) -> Store:
    """The database of the settings, brought up to date. `guard` is what each transaction begins with where the database
    is on a server; without one it is for this process alone. Raises StoreError."""
    home = Path(settings.home)
    home.mkdir(parents=True, exist_ok=True)
    if settings.store.is_on_a_server:
        return await open_on_server(settings.store, clock, on_broken, guard)

    def prepare(path: Path) -> None:
        upgrade(path, backups=home / "backups", clock=clock, keep=settings.store.backups_kept, tables=all_tables())

    return await SqliteStore.open(database_of(settings), clock=clock, prepare=prepare, on_broken=on_broken)


def database_of(settings: Settings) -> Path:
    """Where the database of these settings lies, unless it is on a server."""
    return Path(settings.home) / DATABASE


def secrets_of(settings: Settings) -> list[str]:
    """Every secret value of the settings, to be kept out of logs."""
    keys = [model.api_key.get_secret_value() for model in settings.models]
    keys.append(settings.search.api_key.get_secret_value())
    irc = [secret for network in settings.platforms.irc for secret in network.secrets]
    programs = [client.token.get_secret_value() for client in settings.mcp.serve.clients]
    servers = [secret for server in settings.mcp.servers for secret in server.secrets]
    mail = settings.mail.secrets
    scripts = [
        str(value)
        for one in settings.bots.values()
        for name, value in one.parameters.items()
        if isinstance(value, str | int) and names_a_secret(name)
    ]
    keys += settings.store.secrets
    return [*keys, settings.platforms.http.token.get_secret_value(), *irc, *programs, *servers, *mail, *scripts]


def build_daemon(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    ids: Ids,
    texts: Texts,
    given: Given,
) -> Daemon:
    """The daemon on `store`, with `platforms`. Raises DefinitionError for filters and models that cannot be used."""
    clock, faults = given.clock, given.faults
    live = LiveSettings(settings)
    reload = Reload(live, given.read_settings, faults)
    epoch = ids.next()
    chats = Chats(settings, texts)
    questions = OpenQuestions(clock, settings.questions.expires_seconds, settings.approvals.expires_seconds)
    decisions = Decisions(store, questions, chats, clock)
    grants = Grants(store, clock, ids)
    deadlines = given.deadlines or Deadlines(clock)
    actions, members = EngineActions(store, questions), PlatformMembers(store, chats, deadlines, clock)
    own_settings = StoredOwnSettings(chats, store, ids, clock)
    model = CurrentModel(given.model or model_of(settings, texts, clock, deadlines))
    requests = RequestBudgets(settings.budgets, store, clock)
    # The offline model puts nothing in short.
    paid = PaidRequests(model, requests, can_write=lambda: model.can_write)
    timetable = Timetable(store, clock, ids)
    reader = WhenReader(Times(), time.fromisoformat(settings.reminders.default_time))
    most_here, most_in_all = settings.limits.schedules_per_chat, settings.timers.per_member
    schedules, rehearsal = Schedules(timetable, reader, store, clock, ids, most_here, most_in_all), Rehearsal()
    notes = StoredChatNotes(chats, store, clock)
    registry = FunctionRegistry()
    beginnings = Beginnings(store, clock, registry.of)
    writer = ModelWriter(paid, store, deadlines, clock)
    ports: dict[type, object] = {
        Explanations: StoredExplanations(store),
        Members: members,
        ChatActions: actions,
        OwnSettings: own_settings,
        AtHand: StoredAtHand(chats, store, ids, clock),
        ChatNotes: notes,
        ChatBeginnings: beginnings,
        ChatWriter: writer,
        Words: WordsOfModels(writer, deadlines, clock),
    }
    scripts = BasicTools(store, clock)
    shared: dict[type, object] = {Grants: grants, Schedules: schedules, Rehearsal: rehearsal}
    redact = Redactor(secrets_of(settings))
    shared |= {BasicTools: scripts, Random: given.rng, Redactor: redact}
    own = services_of(settings, store, clock, ids, given.rng, given.web, timetable)
    services = {**own, **shared, **ports}
    services |= script_services_of(settings, services, store, ids)
    others = [WantedSource(one, one) for one in (given.sources(services) if given.sources else ())]
    pins = Pins(store, clock)
    start = SandboxedStart(cast(Sandbox, own[Sandbox]), Path(settings.home) / "mcp")

    def wanted_sources(settings: Settings) -> list[WantedSource]:
        coarsely = made_of(settings)
        found = sources_of(settings, services, given.changes)
        servers = mcp_sources(settings.mcp.servers, pins, clock, start, asks_first=given.asks_servers)
        return [
            *(one if isinstance(one, WantedSource) else WantedSource(one, coarsely) for one in found),
            *servers,
            *others,
        ]

    metrics = Metrics()
    call_log = _lines(settings, "function_calls.jsonl")
    model_log = _lines(settings, "model_requests.jsonl")
    records = CallRecords(call_log, metrics, clock, redact)
    factory = FilterFactory(store, clock, deadlines, redact)

    def filters_of(settings: Settings) -> Filters:
        filters = factory.build(settings.filters)
        named = {**filters.named, **given.named_filters}
        return replace(filters, call=[*given.filters, *filters.call], named=named)

    filters = filters_of(settings)
    units = FunctionBudgets(settings.budgets, store, clock)
    approvals = Approvals(settings.approvals, grants, lambda chat: questions.approvals_in(chat.key))
    taint = Taint(approvals)
    invoker = Invoker(
        Policies(budget=units, taint=taint, approval=approvals),
        deadlines,
        clock,
        filters=filters.call,
        named_filters=filters.named,
        record=records.record,
        faults=faults,
    )
    functions = FunctionSources(wanted_sources(settings), registry, invoker.problems_of, logs_faults=given.logs_faults)
    functions.on_change(lambda: invoker.keep(registry.specs))
    rehearsal.bind(registry.of, invoker, approvals)
    asked = ModelRecords(model_log, clock)
    delivery = _delivery(settings, store, platforms, chats, epoch, given)
    shadow_log = _lines(settings, SHADOW_LOG)
    compared = ShadowRecords(shadow_log, registry, clock, redact)
    shadow = _shadow(settings, given, compared, delivery)
    outages = Outages(clock, settings.failover.say_again_seconds)
    lists: ChatLists = OrderedDict()

    def router_of(settings: Settings, filters: Filters) -> FunctionCallRouter:
        llm = FunctionCallLLM(
            model,
            invoker,
            settings.router,
            clock,
            filters=[*filters.round, *([shadow.around] if shadow else [])],
            record=asked.record,
            faults=faults,
            outages=outages,
            budgets=requests,
            lists=lists,
        )
        return FunctionCallRouter(invoker, llm, filters.turn, ScheduleEnds(schedules))

    router = router_of(settings, filters)
    summaries = Summaries(store, paid, settings.router, settings.memory, clock)
    turns = Turns(
        router=router,
        functions=registry.of,
        chats=chats,
        members=members,
        questions=questions,
        decisions=decisions,
        beginnings=beginnings,
        store=store,
        delivery=delivery,
        summaries=summaries,
        deadlines=deadlines,
        metrics=metrics,
        settings=settings.router,
        attempts=settings.limits.attempts_per_turn,
        clock=clock,
        ids=ids,
        epoch=epoch,
        faults=faults,
        after=shadow.turn_ended if shadow else None,
    )
    direct_calls = DirectCalls(
        registry=registry,
        chats=chats,
        invoker=invoker,
        store=store,
        delivery=delivery,
        timetable=timetable,
        timeout_seconds=settings.router.turn_timeout_seconds,
        wait_seconds=questions.seconds_for,
        deadlines=deadlines,
        clock=clock,
        ids=ids,
        epoch=epoch,
        faults=faults,
    )
    engine = EmbeddedEngine(turns.run, settings.limits)
    actions.bind(engine)
    members.bind(delivery)
    notices = Notices(store, delivery, chats, clock, ids, epoch)
    news = OperatorNews(settings.operators, notices, chats, store, clock, redact, registry.serves_of)
    news.watch("settings", lambda: reload.faults)
    news.watch("functions", lambda: functions.faults)
    functions.on_change(news.changed)
    functions.on_change(beginnings.look)
    names = UnknownNames(lambda: live.now, functions, lambda: registry.specs, given.settings_file)
    functions.on_change(names.look)
    names.on_change(news.changed)
    news.watch("names", lambda: names.faults)
    intake = Intake(
        store=store,
        engine=engine,
        chats=chats,
        functions=registry.of,
        questions=questions,
        decisions=decisions,
        alternations=Alternations(delivery.unmarked_bots_said_at, clock, settings.limits.bot_alternations),
        notices=notices,
        limits=settings.limits,
        history_per_chat=settings.store.history_per_chat,
        clock=clock,
        ids=ids,
        epoch=epoch,
        faults=faults,
    )
    timers = Timers(
        store=store,
        intake=intake,
        delivery=delivery,
        timetable=timetable,
        settings=settings.timers,
        clock=clock,
        ids=ids,
        faults=faults,
    )
    show_turns(metrics, engine, delivery, notices)
    show_links(metrics, platforms)
    show_timers(metrics, timers)
    if shadow is not None:
        dropped = shadow.dropped
        metrics.counter("rollcall_shadow_dropped", "Questions the shadow was not asked", "reason", lambda: dropped)
    show_models(metrics, model)
    show_faults(metrics, functions, reload)
    chats_live(live, chats)
    consent_live(live, approvals, questions)
    budgets_live(live, requests, units)
    processes_live(live, own)
    script_services_live(live, services)
    limits_live(live, engine, intake, schedules)
    turns_live(live, filters_of, router_of, invoker, functions, turns, summaries)
    if given.model is None:
        models_live(live, model, lambda fresh: model_of(fresh, texts, clock, deadlines), outages)
    sources_live(live, functions, wanted_sources)
    live.take("operators", prepare=lambda fresh: partial(news.use, fresh.operators))
    live.take(prepare=lambda fresh: partial(redact.learn, secrets_of(fresh)), hears_of=secrets_of)
    # Behind all others: by then the sources are those of the new settings.
    live.take(prepare=lambda fresh: names.look, hears_of=names_in)
    return Daemon(
        live=live,
        reload=reload,
        names=names,
        news=news,
        store=store,
        ids=ids,
        registry=registry,
        functions=functions,
        invoker=invoker,
        router=router,
        direct_calls=direct_calls,
        model=model,
        model_states=model.states,
        chats=chats,
        beginnings=beginnings,
        questions=questions,
        grants=grants,
        schedules=SettingsSchedules(chats, SchedulePlans(chats, rehearsal, reader, clock, texts.of("en")), schedules),
        script_schedules=ScriptSchedules(schedules, registry.of, scripts, clock),
        script_notes=ScriptNotes(notes, chats, registry.of, scripts),
        engine=engine,
        delivery=delivery,
        summaries=summaries,
        intake=intake,
        timetable=timetable,
        timers=timers,
        platforms=platforms,
        metrics=metrics,
        logs=(call_log, model_log, shadow_log),
        faults=faults,
        housekeeping=Housekeeping(
            store,
            chats,
            questions,
            notices,
            Expiry(intake, questions, clock),
            settings.store,
            clock,
            {COUNTER: pins.load, SCRIPTS: scripts.look},
        ),
        services=[
            *(service for service in services.values() if isinstance(service, WebClient | News | WebSearch)),
            *([shadow] if shadow else []),
        ],
    )


def _delivery(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    chats: Chats,
    epoch: int,
    given: Given,
) -> Delivery:
    """The one sender, over these platforms."""
    clock = given.clock

    def late(chat: ChatRef, due: Due) -> str:
        seconds = (clock.now_ms() - due.at_ms) // 1000
        if seconds < settings.timers.late_after_seconds:
            return ""
        return late_note(seconds, chats.profile(chat).texts, was_away=due.was_away)

    return Delivery(
        {(one.name, one.account): one for one in platforms},
        store,
        settings.delivery,
        clock,
        epoch,
        given.faults,
        resent=lambda chat: chats.profile(chat).texts.say("delivery.resent"),
        late=late,
        lead=given.lead,
    )


def _shadow(settings: Settings, given: Given, records: ShadowRecords, delivery: Delivery) -> Shadow | None:
    """The second model that only says what it would have called; None where there is none."""
    model = given.shadow or (shadow_of(settings, given.clock) if given.model is None else None)
    if model is None:
        return None
    return Shadow(model, settings.router.shadow, given.clock, records.record, delivery.delivered)


def _lines(settings: Settings, name: str) -> JsonLines:
    """A log of its own beside the daemon's."""
    return JsonLines(
        Path(settings.logging.folder) / name,
        max_bytes=settings.logging.max_megabytes * 1_000_000,
        keep_files=settings.logging.keep_files,
    )
