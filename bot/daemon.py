"""The daemon at run time: start, recover, run, drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from bot.chats.chat_notes import ScriptNotes, ScriptSchedules, StartScripts
from bot.chats.chats import Chats
from bot.chats.digests import Digests
from bot.chats.open_questions import OpenQuestions
from bot.chats.summaries import Summaries
from bot.delivery.collected import Collected
from bot.delivery.delivery import Delivery
from bot.direct_calls import DirectCalls
from bot.engine.embedded import EmbeddedEngine
from bot.housekeeping import Backups, Housekeeping
from bot.intake.intake import Intake
from bot.live.command_menus import ShownMenus
from bot.live.operator_notices import DeadLetters, OperatorNotices
from bot.live.settings import LiveSettings, Reload
from bot.platforms.base import ChatPlatform
from bot.registration.function_sources import FunctionSources
from bot.registration.unknown_names import UnknownNames
from bot.telemetry.metrics import Metrics
from bot.timers.schedules import SettingsSchedules
from bot.timers.timer_dispatch import Timers
from function_calls.invocation import Invoker
from function_calls.registry import FunctionRegistry
from function_calls.router import FunctionCallRouter
from services.call_log import JsonLines
from services.chats.grants import Grants
from services.chats.member_links import MemberLinks
from services.chats.privacy import MemberData
from services.fault_points import FaultPoints
from services.knowledge import KnowledgeBases
from services.llm.failover import ModelState
from services.llm.model import ChatModel
from services.store.all_tables import newest_ids
from services.store.ids import Ids, generated_ms
from services.store.port import Store
from services.timers.scheduler import Ticker
from services.timers.timetable import Timetable

_log = structlog.get_logger("daemon")
DRAIN_SECONDS = 20.0
_FORGET_SECONDS = 3600.0
_FIRST_FORGET_SECONDS = 5.0
_BACKUPS_SECONDS = 3600.0
_FIRST_BACKUP_SECONDS = 600.0
_QUESTIONS_SECONDS = 30.0
_CHANGES_SECONDS = 0.5
"""Changes by other processes take effect within a second; each check is one small read."""
_SCHEDULES_SECONDS = 5.0
_DIGESTS_SECONDS = 300.0
_KNOWLEDGE_SECONDS = 30.0
_STORE_SECONDS = 5.0
_TIMERS_SECONDS = 1.0
_COLLECTED_SECONDS = 10.0


class Closable(Protocol):
    """A service that holds resources."""

    async def close(self) -> None:
        """Release the resources."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """All parts of the daemon, built by `wiring`."""

    live: LiveSettings
    """The current settings."""
    reload: Reload
    unknown_names: UnknownNames
    operator_notices: OperatorNotices
    backups: Backups
    store: Store
    ids: Ids
    registry: FunctionRegistry
    functions: FunctionSources
    invoker: Invoker
    router: FunctionCallRouter
    """The router at the start."""
    direct_calls: DirectCalls
    model: ChatModel
    model_states: Callable[[], Sequence[ModelState]]
    chats: Chats
    start_scripts: StartScripts
    questions: OpenQuestions
    grants: Grants
    links: MemberLinks
    member_data: MemberData
    schedules: SettingsSchedules
    script_schedules: ScriptSchedules
    script_notes: ScriptNotes
    engine: EmbeddedEngine
    delivery: Delivery
    summaries: Summaries
    digests: Digests
    collected: Collected
    intake: Intake
    timetable: Timetable
    timers: Timers
    platforms: Sequence[ChatPlatform]
    menus: ShownMenus
    metrics: Metrics
    logs: Sequence[JsonLines]
    faults: FaultPoints
    housekeeping: Housekeeping
    dead_letters: DeadLetters
    knowledge: KnowledgeBases
    services: Sequence[Closable]

    async def start(self) -> None:
        """Load the stored state and resume what an earlier process left unfinished. Raises StoreError, and
        DefinitionError for functions given in code that cannot be used."""
        newest = [row["id"] for row in await self.store.read(newest_ids()) if row["id"] is not None]
        self.ids.advance_past(max(newest, default=0))
        await self.functions.start()
        await self.timers.start(generated_ms(max(newest)) if newest else None)
        await self.chats.load(self.store)
        await self.script_notes.sync()
        await self.start_scripts.load()
        await self.questions.load(self.store)
        await self.grants.load()
        await self.links.load()
        await self.member_data.load()
        await self.schedules.sync()
        self.unknown_names.begin()
        unsent = await self.delivery.recover()
        unfinished = await self.intake.recover()
        await self.dead_letters.start()
        if unsent or unfinished:
            _log.info("recovered", unfinished_turns=unfinished, unsent_messages=unsent)

    async def run(self) -> None:
        """Receive and answer until cancelled, or until every platform has ended (as a terminal does) and every message
        is answered. Raises the exception that ended a platform or broke a turn's error handling."""
        for bot in self.chats.bots:
            self.router.prepare(self.registry.of(bot))
        async with asyncio.TaskGroup() as tasks:
            failed = tasks.create_task(self.engine.failed())
            menus = tasks.create_task(self.menus.run(), name="menus")
            receiving = [
                tasks.create_task(platform.run(self.intake.accept), name=f"platform {platform.name}")
                for platform in self.platforms
            ]
            if receiving:
                await asyncio.wait(receiving)
                await self.settle()
                failed.cancel()
                menus.cancel()

    async def stop(self, *, at_once: bool = False) -> None:
        """Wait up to 20 seconds for running turns and close everything; the rest resumes at the next start. `at_once`:
        wait for nothing, since the store is broken."""
        await self.timers.close()
        await self.intake.gathering.close()
        await self.intake.unasked.close()
        await self.engine.drain(0.0 if at_once else DRAIN_SECONDS)
        await self.unknown_names.close()
        await self.functions.close()
        await self.operator_notices.close()
        self.faults.reach("shutdown.during_drain")
        await self.delivery.close(0.0 if at_once else 2.0)
        await self.summaries.close()
        for platform in self.platforms:
            await platform.close()
        await self.model.close()
        for service in self.services:
            await service.close()
        for log in self.logs:
            log.flush()
        await self.store.close()

    def ticker(self) -> Ticker:
        """A ticker with the periodic tasks of the daemon, not yet started: deletion, backups, checks, timers, schedules
        and notes."""
        ticker = Ticker()
        ticker.every(_FORGET_SECONDS, "delete old rows", self.housekeeping.forget, first_seconds=_FIRST_FORGET_SECONDS)
        ticker.every(_BACKUPS_SECONDS, "back up", self.backups.keep_up, first_seconds=_FIRST_BACKUP_SECONDS)
        ticker.every(_FORGET_SECONDS, "count dead letters", self.dead_letters.start)
        ticker.every(_QUESTIONS_SECONDS, "expire questions", self.housekeeping.expire_questions)
        ticker.every(_STORE_SECONDS, "check the store", self.store.check)
        ticker.every(_TIMERS_SECONDS, "fire what is due", self.timers.tick)
        ticker.every(_COLLECTED_SECONDS, "send what was collected", self.collected.send)
        ticker.every(_CHANGES_SECONDS, "notice changes", self.housekeeping.notice_changes)
        ticker.every(_SCHEDULES_SECONDS, "keep schedules in step", self.schedules.sync)
        ticker.every(_SCHEDULES_SECONDS, "keep schedules of scripts in step", self.script_schedules.sync)
        ticker.every(_SCHEDULES_SECONDS, "keep notes of scripts in step", self.script_notes.sync)
        ticker.every(_DIGESTS_SECONDS, "make digests", self.digests.make_due)
        ticker.every(_KNOWLEDGE_SECONDS, "index documents", self.knowledge.refresh, first_seconds=1.0)
        return ticker

    async def settle(self) -> None:
        """Return when every accepted message is answered and every reply sent. Timers that wait for the pace of their
        chat are not included."""
        self.intake.gathering.end_all()
        await self.timers.idle()
        await self.engine.idle()
        await self.delivery.idle()
