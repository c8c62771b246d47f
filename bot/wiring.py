"""Construction of the daemon: every object, once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, cast

from bot.chats.chat_changes import StoredActivations, StoredOwnSettings
from bot.chats.chat_notes import STARTS, ScriptNotes, ScriptSchedules, StartScripts, StoredChatNotes
from bot.chats.chats import Chats
from bot.chats.digests import Digests
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import ModelWriter, PaidRequests, Summaries
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
from bot.platforms.base import ChatPlatform, CommandHint
from bot.registration.basic_scripts import script_services_of
from bot.registration.filters import FilterFactory
from bot.registration.function_sources import ConfiguredSource, FunctionSources
from bot.registration.functions import in_settings_file, made_of, mcp_sources, sources_of
from bot.registration.models import CurrentModel, model_of, shadow_of
from bot.registration.services import EngineActions, PlatformMembers, TextModels, services_of
from bot.registration.unknown_names import UnknownNames
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
from function_calls.rounds.model_requests import COUNTER as OUTAGES
from function_calls.rounds.model_requests import Outages
from function_calls.rounds.shadow import Shadow
from function_calls.rounds.shortlist import ChatLists, found_here
from function_calls.router import FunctionCallRouter
from function_calls.schedule_check import ScheduleCheck
from function_calls.schema.definition import DefinitionError
from services.call_log import JsonLines
from services.chats.grants import COUNTER as GRANTS
from services.chats.grants import Grants
from services.chats.member_links import COUNTER as LINKS
from services.chats.member_links import MemberLinks
from services.chats.members import MemberZones
from services.chats.memory import Memory
from services.chats.message_history import MessageHistory
from services.chats.privacy import COUNTER as OPT_OUTS
from services.chats.privacy import MemberData
from services.clock import Deadlines
from services.extras import missing_extra
from services.knowledge import KnowledgeBases
from services.llm.model import ChatModel
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
from services.store.ids import Ids
from services.store.port import Store
from services.timers.schedules import Schedules, WhenReader
from services.timers.timetable import Timetable
from services.times import Times

if TYPE_CHECKING:
    from bot.telemetry.traces import Traces


@dataclass(eq=False, repr=False)
class Wiring:
    """The parts of a daemon, each built once, when it is first used. Those that need a definition of the settings raise
    DefinitionError."""

    settings: Settings
    store: Store
    platforms: Sequence[ChatPlatform]
    ids: Ids
    texts: Texts
    overrides: Overrides

    def __post_init__(self) -> None:
        settings, store, overrides = self.settings, self.store, self.overrides
        # Id of this process, which distinguishes its claims from those of earlier ones.
        self.epoch = self.ids.next()
        clock = self.clock = overrides.clock
        self.deadlines = overrides.deadlines or Deadlines(clock)
        self.faults = overrides.faults
        self.chats = Chats(settings, self.texts)
        self.links = MemberLinks(store, clock)
        self.member_data = MemberData(store, clock, settings.store)
        # Empty until the function sources are loaded.
        self.registry = FunctionRegistry()
        self.redact = Redactor([*secrets_of(settings), *environment_secrets()])
        self.metrics = Metrics()
        self.call_log = self._lines("function_calls.jsonl")
        self.model_log = self._lines("model_requests.jsonl")
        self.shadow_log = self._lines(SHADOW_LOG)
        self.logs = (self.call_log, self.model_log, self.shadow_log)
        self.questions = OpenQuestions(clock, settings.questions.expires_seconds, settings.approvals.expires_seconds)
        self.decisions = ApprovalOutcomes(store, self.questions, self.chats)
        self.grants = Grants(store, clock, self.ids)
        self.outages = Outages(store, clock, settings.failover.say_again_seconds)
        self.lists: ChatLists = OrderedDict()
        self.timetable = Timetable(store, clock, self.ids)
        self.reader = WhenReader(Times(), time.fromisoformat(settings.reminders.default_time))
        # Bound later, as it depends on parts that depend on it.
        self.schedule_check = ScheduleCheck()
        self.actions = EngineActions(store, self.questions, lambda: self.engine)
        self.members = PlatformMembers(
            store, self.chats, self.deadlines, clock, lambda chat: self.delivery.platform(chat)
        )
        self.notes = StoredChatNotes(self.chats, store, clock)
        self.start_scripts = StartScripts(store, clock, self.registry.of)
        self.scripts = BasicTools(store)
        self.pins = Pins(store, clock)
        self.live = LiveSettings(settings)

    def _lines(self, name: str) -> JsonLines:
        """A separate log file in the logging folder."""
        return JsonLines(
            Path(self.settings.logging.folder) / name,
            max_bytes=self.settings.logging.max_megabytes * 1_000_000,
            keep_files=self.settings.logging.keep_files,
        )

    @cached_property
    def approvals(self) -> Approvals:
        return Approvals(self.settings.approvals, self.grants, lambda chat: self.questions.approvals_in(chat.key))

    @property
    def receives(self) -> bool:
        """Whether this process receives and sends messages; a worker of a cluster does not."""
        cluster = self.overrides.cluster
        return cluster is None or cluster.is_gateway

    @property
    def is_keeper(self) -> bool:
        """Whether this process does the periodic work that only one process of a cluster may do."""
        cluster = self.overrides.cluster
        return cluster is None or cluster.is_keeper

    # The chat model, its budgets, and clients of it outside of turns.

    @cached_property
    def model(self) -> CurrentModel:
        """The model of the overrides, else of the settings. Raises DefinitionError for a custom model that cannot be
        found."""
        return CurrentModel(self.overrides.model or self.model_of(self.settings), self.redact.known)

    def model_of(self, settings: Settings) -> ChatModel:
        """The model of other settings. Raises DefinitionError."""
        return model_of(settings, self.texts, self.clock, self.deadlines)

    @cached_property
    def request_budgets(self) -> RequestBudgets:
        return RequestBudgets(self.settings.budgets, self.store, self.clock, self.links.person_of)

    @cached_property
    def paid(self) -> PaidRequests:
        """Requests outside of turns."""
        # The offline model writes no text.
        return PaidRequests(self.model, self.request_budgets, can_write=lambda: self.model.can_write)

    @cached_property
    def writer(self) -> ModelWriter:
        """Writes text for functions."""
        return ModelWriter(self.paid, self.store, self.deadlines, self.clock)

    @cached_property
    def schedules(self) -> Schedules:
        most_here, most_in_all = self.settings.limits.schedules_per_chat, self.settings.timers.per_member
        return Schedules(self.timetable, self.reader, self.store, self.clock, self.ids, most_here, most_in_all)

    @cached_property
    def services(self) -> Mapping[type, object]:
        """The services of functions and scripts, one shared instance each, by type."""
        settings, overrides, store, ids, clock = self.settings, self.overrides, self.store, self.ids, self.clock
        own_settings = StoredOwnSettings(self.chats, store, ids, clock)
        ports: dict[type, object] = {
            Explanations: StoredExplanations(store),
            Members: self.members,
            Moderation: self.members,
            ChatActions: self.actions,
            OwnSettings: own_settings,
            Mutes: own_settings,
            ChatRules: own_settings,
            ActiveFunctions: StoredActivations(self.chats, store, ids, clock),
            ChatNotes: self.notes,
            StartFunctions: self.start_scripts,
            ChatWriter: self.writer,
            TextModel: TextModels(self.writer, self.deadlines, clock),
        }
        shared: dict[type, object] = {
            Grants: self.grants,
            Pictures: Pictures(settings.pictures.font, self.members.file_bytes),
            MemberLinks: self.links,
            MemberData: self.member_data,
            Texts: self.texts,
            Schedules: self.schedules,
            ScheduleCheck: self.schedule_check,
        }
        # Used by scripts, in addition to the services of functions.
        inner: dict[type, object] = {BasicTools: self.scripts, Random: overrides.rng, Redactor: self.redact}
        own = services_of(settings, store, clock, ids, overrides.rng, overrides.web, self.timetable)
        services = {**own, **shared, **inner, **ports}
        return services | script_services_of(settings, services, store, ids)

    @property
    def memory(self) -> Memory:
        return cast(Memory, self.services[Memory])

    @property
    def knowledge(self) -> KnowledgeBases:
        return cast(KnowledgeBases, self.services[KnowledgeBases])

    # The invoker and its filters and budgets.

    @cached_property
    def function_budgets(self) -> FunctionBudgets:
        return FunctionBudgets(self.settings.budgets, self.store, self.clock, self.links.person_of)

    @cached_property
    def vouching(self) -> Vouching:
        return Vouching(self.approvals, found_here, partial(self.questions.allowed, self.store))

    @cached_property
    def filter_factory(self) -> FilterFactory:
        return FilterFactory(self.store, self.clock, self.deadlines, self.redact, self.writer)

    def filters_of(self, settings: Settings) -> Filters:
        """The filters of `settings` and of the overrides. Raises DefinitionError."""
        filters = self.filter_factory.build(settings.filters)
        named = {**filters.named, **self.overrides.named_filters}
        filters = replace(filters, call=[*self.overrides.filters, *filters.call], named=named)
        traces = self.traces
        if traces is None:
            return filters
        turn, round_ = [traces.turn, *filters.turn], [traces.round, *filters.round]
        return replace(filters, turn=turn, round=round_, call=[traces.call, *filters.call])

    @cached_property
    def traces(self) -> Traces | None:
        """Traces of the settings at the start; None if they are off. Raises DefinitionError without their extra."""
        telemetry = self.settings.telemetry
        if telemetry.traces_url is None:
            return None
        try:
            from bot.telemetry.traces import Traces
        except ImportError as error:
            problem = missing_extra("otel", str(error.name))
            raise DefinitionError("telemetry.traces_url", [problem]) from error
        return Traces(telemetry.traces_url, self.redact, with_content=telemetry.traces_content)

    @cached_property
    def filters(self) -> Filters:
        """Filters of the settings at the start, around runs, rounds and turns. Raises DefinitionError."""
        return self.filters_of(self.settings)

    @cached_property
    def invoker(self) -> Invoker:
        return Invoker(
            Policies(budget=self.function_budgets, approval=self.vouching),
            self.deadlines,
            self.clock,
            filters=self.filters.call,
            named_filters=self.filters.named,
            record=CallRecords(self.call_log, self.metrics, self.clock, self.redact).record,
            faults=self.faults,
        )

    # The function sources that fill the registry.

    @cached_property
    def other_sources(self) -> Sequence[ConfiguredSource]:
        """The sources of the overrides."""
        build = self.overrides.sources
        return [ConfiguredSource(one, one) for one in (build(self.services) if build else ())]

    def configured_sources(self, settings: Settings) -> list[ConfiguredSource]:
        """The sources of `settings` and of the overrides."""
        home = Path(self.settings.home)
        start = SandboxedStart(cast(Sandbox, self.services[Sandbox]), home / "mcp")
        coarsely = made_of(settings)
        found = sources_of(settings, self.services, self.overrides.changes)
        asks_first = self.overrides.asks_servers
        servers = mcp_sources(settings.mcp.servers, self.pins, self.clock, start, home, asks_first=asks_first)
        return [
            *(one if isinstance(one, ConfiguredSource) else ConfiguredSource(one, coarsely) for one in found),
            *servers,
            *self.other_sources,
        ]

    @cached_property
    def functions(self) -> FunctionSources:
        """The invoker checks whether functions can run."""
        return FunctionSources(
            self.configured_sources(self.settings),
            self.registry,
            self.invoker.problems_of,
            placed=in_settings_file(self.overrides.settings_file),
            logs=self.overrides.logs_faults,
        )

    # The delivery, and notices outside of turns.

    @cached_property
    def delivery(self) -> Delivery:
        settings, chats, clock, cluster = self.settings, self.chats, self.clock, self.overrides.cluster

        def late(chat: ChatRef, due: Due) -> str:
            seconds = (clock.now_ms() - due.at_ms) // 1000
            if seconds < settings.timers.late_after_seconds:
                return ""
            return late_note(seconds, chats.profile(chat).texts, was_away=due.was_away)

        return Delivery(
            {(one.name, one.account): one for one in self.platforms},
            self.store,
            settings.delivery,
            clock,
            self.epoch,
            self.faults,
            resent=lambda chat: chats.profile(chat).texts.say("delivery.resent"),
            late=late,
            dropped=lambda chat, lines: chats.profile(chat).texts.say("delivery.dropped", count=f"{lines:,}"),
            statuses=StatusMessages(self.store, self.ids, clock, self.epoch, self.faults),
            **({} if cluster is None else {"elsewhere": cluster.elsewhere}),
            hide=self.redact.known,
        )

    @cached_property
    def notices(self) -> Notices:
        return Notices(self.store, self.delivery, self.chats, self.clock, self.ids, self.epoch)

    # The router, and the shadow model that is compared with its model.

    @cached_property
    def shadow(self) -> Shadow | None:
        """The shadow model, whose calls are recorded and not run; None if it is not configured. Raises
        DefinitionError."""
        overrides, clock, settings = self.overrides, self.clock, self.settings
        model = overrides.shadow or (shadow_of(settings, clock) if overrides.model is None else None)
        if model is None:
            return None
        compared = ShadowRecords(self.shadow_log, self.registry, clock, self.redact)
        return Shadow(model, settings.router.shadow, clock, compared.record, self.delivery.delivered)

    @cached_property
    def router(self) -> FunctionCallRouter:
        """The router at the start."""
        return self.router_of(self.settings, self.filters)

    def router_of(self, settings: Settings, filters: Filters) -> FunctionCallRouter:
        """A router with other settings and filters."""
        llm = FunctionCallLLM(
            self.model,
            self.invoker,
            settings.routing,
            self.clock,
            filters=[*filters.round, *([self.shadow.around] if self.shadow else [])],
            record=ModelRecords(self.model_log, self.clock).record,
            faults=self.faults,
            outages=self.outages,
            budgets=self.request_budgets,
            lists=self.lists,
        )
        return FunctionCallRouter(self.invoker, llm, filters.turn, ScheduleEnds(self.schedules))

    # The engine and what it runs.

    @cached_property
    def collected(self) -> Collected:
        return Collected(self.store, self.delivery, self.chats, self.clock)

    @cached_property
    def summaries(self) -> Summaries:
        return Summaries(self.store, self.paid, self.settings.router, self.settings.memory, self.clock)

    @cached_property
    def closing(self) -> Closing:
        return Closing(
            chats=self.chats,
            questions=self.questions,
            start_scripts=self.start_scripts,
            store=self.store,
            delivery=self.delivery,
            metrics=self.metrics,
            clock=self.clock,
            ids=self.ids,
            epoch=self.epoch,
            faults=self.faults,
            collected=self.collected,
            member_data=self.member_data,
            after=self.shadow.turn_ended if self.shadow else None,
        )

    @cached_property
    def files(self) -> FileReader:
        return FileReader(self.delivery.platform)

    @cached_property
    def attached(self) -> AttachedFiles:
        return AttachedFiles(self.files, self.settings, DocumentParser(self.clock))

    @cached_property
    def voice(self) -> Voice:
        return Voice(self.files, cast(MediaModels, self.services[MediaModels]), self.request_budgets, self.settings)

    @cached_property
    def turns(self) -> Turns:
        return Turns(
            router=self.router,
            functions=self.registry.of,
            chats=self.chats,
            members=self.members,
            questions=self.questions,
            decisions=self.decisions,
            start_scripts=self.start_scripts,
            closing=self.closing,
            store=self.store,
            delivery=self.delivery,
            zones=MemberZones(self.store, self.clock),
            memory=self.memory,
            attached=self.attached,
            voice=self.voice,
            summaries=self.summaries,
            deadlines=self.deadlines,
            settings=self.settings.router,
            attempts=self.settings.limits.attempts_per_turn,
            clock=self.clock,
            epoch=self.epoch,
            faults=self.faults,
        )

    @cached_property
    def engine(self) -> EmbeddedEngine:
        cluster = self.overrides.cluster
        if cluster is not None and cluster.is_gateway:
            return EmbeddedEngine(cluster.turns.run, self.settings.limits, is_remote=True)
        return EmbeddedEngine(self.turns.run, self.settings.limits)

    @cached_property
    def direct_calls(self) -> DirectCalls:
        return DirectCalls(
            registry=self.registry,
            chats=self.chats,
            invoker=self.invoker,
            store=self.store,
            delivery=self.delivery,
            timetable=self.timetable,
            timeout_seconds=self.settings.router.turn_timeout_seconds,
            wait_seconds=self.questions.seconds_for,
            deadlines=self.deadlines,
            clock=self.clock,
            ids=self.ids,
            epoch=self.epoch,
            faults=self.faults,
        )

    # The intake, and the timers that feed it.

    @cached_property
    def intake(self) -> Intake:
        settings, delivery = self.settings, self.delivery
        return Intake(
            store=self.store,
            engine=self.engine,
            chats=self.chats,
            functions=self.registry.of,
            questions=self.questions,
            decisions=self.decisions,
            bot_loop_limit=BotLoopLimit(delivery.last_unmarked_sent_at, self.clock, settings.limits.bot_alternations),
            notices=self.notices,
            is_here=delivery.is_here,
            senders_retry=delivery.senders_retry,
            is_only_bot=delivery.is_only_bot,
            has_model=lambda: self.model.can_write,
            member_data=self.member_data,
            may_name_bot=self.voice.may_name_bot,
            limits=settings.limits,
            history_per_chat=settings.store.history_per_chat,
            clock=self.clock,
            ids=self.ids,
            epoch=self.epoch,
            faults=self.faults,
        )

    @cached_property
    def timers(self) -> Timers:
        return Timers(
            store=self.store,
            intake=self.intake,
            delivery=self.delivery,
            timetable=self.timetable,
            settings=self.settings.timers,
            clock=self.clock,
            ids=self.ids,
            faults=self.faults,
            is_shared=self.overrides.cluster is not None,
        )

    # The reloading of settings, and notices to operators.

    @cached_property
    def reload(self) -> Reload:
        return Reload(self.live, self.overrides.read_settings, self.faults)

    @cached_property
    def operator_notices(self) -> OperatorNotices:
        return OperatorNotices(
            self.settings.operators,
            self.notices,
            self.chats,
            self.store,
            self.clock,
            self.redact,
            self.registry.serves_of,
            lambda: self.is_keeper,
        )

    @cached_property
    def unknown_names(self) -> UnknownNames:
        return UnknownNames(
            lambda: self.live.now, self.functions, lambda: self.registry.specs, self.overrides.settings_file
        )

    @cached_property
    def backups(self) -> Backups:
        return Backups(self.settings, self.clock, self.operator_notices.changed)

    # The periodic tasks, except for timers.

    @cached_property
    def settings_schedules(self) -> SettingsSchedules:
        plans = SchedulePlans(self.chats, self.schedule_check, self.reader, self.clock, self.texts.of("en"))
        return SettingsSchedules(self.chats, plans, self.schedules)

    @cached_property
    def script_schedules(self) -> ScriptSchedules:
        return ScriptSchedules(self.schedules, self.registry.of, self.scripts, self.clock)

    @cached_property
    def script_notes(self) -> ScriptNotes:
        return ScriptNotes(self.notes, self.chats, self.registry.of, self.scripts)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self.store, self.intake, self.delivery, self.timetable, self.operator_notices, self.clock)

    @cached_property
    def housekeeping(self) -> Housekeeping:
        return Housekeeping(
            self.store,
            self.chats,
            self.questions,
            self.notices,
            Expiry(self.intake, self.questions, self.clock),
            self.settings.store,
            self.clock,
            {
                PINS: self.pins.load,
                SCRIPTS: self.scripts.wake_watchers,
                DEAD: self.dead_letters.look,
                OPT_OUTS: self.member_data.load,
                GRANTS: self.grants.load,
                LINKS: self.links.load,
                STARTS: self.start_scripts.load,
                OUTAGES: self.outages.begin,
            },
            None if self.settings.store.is_on_a_server else database_of(self.settings),
        )

    @cached_property
    def digests(self) -> Digests:
        past = cast(MessageHistory, self.services[MessageHistory])
        return Digests(self.store, self.chats, self.paid, self.memory, past, lambda: self.live.now.memory, self.clock)

    @cached_property
    def menus(self) -> ShownMenus:
        return ShownMenus(self.platforms, self._menus, self.clock)

    def _menus(self) -> dict[str, list[CommandHint]]:
        """The commands of members in a chat without settings of its own, by language."""
        profile = self.chats.profile(ChatRef("", "", ""))
        functions = self.registry.of(DEFAULT_BOT)
        languages = [FALLBACK, *(one for one in self.texts.languages if one != FALLBACK)]
        return {one: command_hints(functions, profile, Role.MEMBER, self.texts.of(one)) for one in languages}
