"""The daemon at run time: start, recover, run, drain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.database.opening import database_of
from bot.overrides import Overrides
from bot.platforms.base import ChatPlatform, Linked
from bot.reconfiguration import register_live_settings
from bot.wiring import Wiring
from config.settings import Settings
from config.texts import Texts
from function_calls.checks.budgets import MICROS
from services.knowledge import KnowledgeBases
from services.store.all_tables import newest_ids
from services.store.chats.outcomes import DeadKind
from services.store.ids import Ids, generated_ms
from services.store.port import Store
from services.timers.scheduler import Ticker
from services.web.http import WebClient
from services.web.news import News
from services.web.search import WebSearch

if TYPE_CHECKING:
    from bot.cluster.cluster import Cluster

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
_PENDING_SECONDS = 60.0
_COLLECTED_SECONDS = 10.0


def build_daemon(
    settings: Settings,
    store: Store,
    platforms: Sequence[ChatPlatform],
    ids: Ids,
    texts: Texts,
    overrides: Overrides,
) -> Daemon:
    """The daemon on `store` with `platforms`. Raises DefinitionError for filters and models that cannot be used."""
    daemon = Daemon(settings, store, platforms, ids, texts, overrides)
    daemon.bind()
    return daemon


class Daemon(Wiring):
    """All parts of the daemon."""

    def bind(self) -> None:
        """Build and connect the parts. Raises DefinitionError for filters and models that cannot be used."""
        if self.overrides.cluster is not None:
            self.overrides.cluster.bind(self)
        for name, part in vars(Wiring).items():
            if isinstance(part, cached_property):
                getattr(self, name)
        self._bind()
        self._register_erasure()
        self._register_metrics()
        register_live_settings(self)

    async def start(self) -> None:
        """Load the stored state and resume what an earlier process left unfinished. Raises StoreError, and
        DefinitionError for functions given in code that cannot be used."""
        newest = [row["id"] for row in await self.store.read(newest_ids()) if row["id"] is not None]
        self.ids.advance_past(max(newest, default=0))
        await self.functions.start()
        if self.receives:
            await self.timers.start(generated_ms(max(newest)) if newest else None)
        await self.chats.load(self.store)
        await self.script_notes.sync()
        await self.start_scripts.load()
        await self.grants.load()
        await self.links.load()
        await self.member_data.load()
        self.unknown_names.begin()
        if self.overrides.cluster is not None:
            # The state of each account is loaded when this process takes it.
            return
        await self.questions.load(self.store)
        await self.settings_schedules.sync()
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
            if self.overrides.cluster is not None:
                tasks.create_task(self.overrides.cluster.run(), name="cluster")
            failed = tasks.create_task(self.engine.failed())
            menus = tasks.create_task(self.menus.run(), name="menus")
            receiving = [
                tasks.create_task(platform.run(self.intake.accept), name=f"platform {platform.name}")
                for platform in self.platforms
                if self.receives
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
        if self.overrides.cluster is not None:
            self.overrides.cluster.close()
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
        for service in self.services.values():
            if isinstance(service, WebClient | News | WebSearch | KnowledgeBases):
                await service.close()
        for part in (self.shadow, self.traces):
            if part is not None:
                await part.close()
        for log in self.logs:
            log.flush()
        await self.store.close()

    def ticker(self) -> Ticker:
        """A ticker with the periodic tasks of the daemon, not yet started: deletion, backups, checks, timers, schedules
        and notes."""
        ticker = Ticker()
        self.metrics.gauge("rollcall_ticker_lag_seconds", "Longest delay of a periodic job", lambda: ticker.lag_seconds)
        self.metrics.gauge("rollcall_loop_lag_seconds", "Longest delay of the loop", lambda: ticker.loop_lag_seconds)
        ticker.every(_STORE_SECONDS, "check the store", self.store.check)
        ticker.every(_CHANGES_SECONDS, "notice changes", self.housekeeping.notice_changes)
        ticker.every(_SCHEDULES_SECONDS, "keep notes of scripts in step", self.script_notes.sync)
        ticker.every(_KNOWLEDGE_SECONDS, "index documents", self.knowledge.refresh, first_seconds=1.0)
        if not self.receives:
            return ticker
        ticker.every(_FORGET_SECONDS, "count dead letters", self.dead_letters.start)
        ticker.every(_QUESTIONS_SECONDS, "expire questions", self.housekeeping.expire_questions)
        ticker.every(_TIMERS_SECONDS, "fire what is due", self.timers.tick)
        ticker.every(_PENDING_SECONDS, "count timers", self.timers.count, first_seconds=_FIRST_FORGET_SECONDS)
        ticker.every(_COLLECTED_SECONDS, "send what was collected", self.collected.send)
        once = self._by_keeper
        forget, settings_schedules = once(self.housekeeping.forget), once(self.settings_schedules.sync)
        ticker.every(_FORGET_SECONDS, "delete old rows", forget, first_seconds=_FIRST_FORGET_SECONDS)
        ticker.every(_BACKUPS_SECONDS, "back up", self.backups.keep_up, first_seconds=_FIRST_BACKUP_SECONDS)
        ticker.every(_SCHEDULES_SECONDS, "keep schedules in step", settings_schedules)
        ticker.every(_SCHEDULES_SECONDS, "keep schedules of scripts in step", once(self.script_schedules.sync))
        ticker.every(_DIGESTS_SECONDS, "make digests", once(self.digests.make_due))
        return ticker

    def _by_keeper(self, work: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
        """`work`, in one process of a cluster."""

        async def run() -> None:
            if self.is_keeper:
                await work()

        return run

    async def settle(self) -> None:
        """Return when every accepted message is answered and every reply sent. Timers that wait for the pace of their
        chat are not included."""
        self.intake.gathering.end_all()
        await self.timers.idle()
        await self.engine.idle()
        await self.delivery.idle()

    def _bind(self) -> None:
        """Bind parts that depend on each other in a cycle, and register callbacks for changes of functions, for
        problems, and for everything that is given up."""
        self.schedule_check.bind(self.registry.of, self.invoker, self.approvals)
        notices, functions = self.operator_notices, self.functions
        notices.watch("settings", lambda: self.reload.faults)
        notices.watch("functions", lambda: functions.faults)
        notices.watch("names", lambda: self.unknown_names.faults)
        notices.watch("backups", lambda: self.backups.faults)
        functions.on_change(lambda: self.invoker.keep(self.registry.specs))
        functions.on_change(notices.changed)
        functions.on_change(self.start_scripts.warn_of_changes)
        functions.on_change(self.unknown_names.look)
        self.unknown_names.on_change(notices.changed)
        functions.on_change(self.menus.changed)
        self.closing.on_given_up.append(self.dead_letters.turn)
        self.delivery.on_given_up.append(self.dead_letters.message)
        self.timers.on_undeliverable.append(self.dead_letters.moment)

    def _register_erasure(self) -> None:
        """Register what drops or reloads data in memory after a member's data was erased."""

        async def reload(_chat: str, _member: str) -> None:
            await self.grants.load()
            await self.links.load()
            await self.chats.load(self.store)

        self.member_data.on_forget += [self.questions.forget, self.intake.forget, reload]

    def _register_metrics(self) -> None:
        """Register the metrics of all parts; those of the shadow, links and backups only if these exist."""
        metrics, delivery = self.metrics, self.delivery
        metrics.gauge("rollcall_turns_waiting", "Turns that wait", lambda: self.engine.waiting)
        metrics.gauge("rollcall_turns_running", "Turns that run", lambda: self.engine.running)
        metrics.gauge("rollcall_oldest_waiting_seconds", "Age of the oldest waiting turn", self._oldest_waiting_seconds)
        metrics.gauge("rollcall_outbox_waiting", "Messages that wait or are being sent", lambda: delivery.waiting)
        metrics.gauge(
            "rollcall_reply_lines_dropped",
            "Lines that were not sent because too many waited",
            lambda: delivery.dropped_lines,
        )
        metrics.gauge("rollcall_messages_given_up", "Messages that could not be delivered", lambda: delivery.failed)
        metrics.counter("rollcall_messages_dropped", "Messages without a turn", "reason", lambda: self.notices.dropped)
        metrics.gauges(
            "rollcall_dead_letters",
            "Dead letters that can be retried",
            "kind",
            lambda: {kind.value: self.dead_letters.counts[kind.value] for kind in DeadKind},
        )
        self._register_store_metrics()
        self._register_link_metrics()
        if self.overrides.cluster is not None:
            self._register_cluster_metrics(self.overrides.cluster)
        timers, shadow = self.timers, self.shadow
        metrics.gauge("rollcall_timers_pending", "Timers that have not fired", lambda: timers.pending)
        metrics.gauge("rollcall_timers_overdue", "Timers that are due and wait", lambda: timers.waiting)
        metrics.gauge(
            "rollcall_timers_held", "1: timers are held back, the clock is in doubt", lambda: timers.is_holding
        )
        metrics.counter("rollcall_timers_fired", "Due timer occurrences", "outcome", lambda: timers.outcomes)
        if shadow is not None:
            metrics.counter(
                "rollcall_shadow_dropped",
                "Requests that the shadow model did not get",
                "reason",
                lambda: shadow.dropped,
            )
        self._register_model_metrics()
        metrics.gauge("rollcall_functions_unusable", "Problems in function files", lambda: len(self.functions.faults))
        metrics.gauge("rollcall_settings_faulty", "Problems in the settings file", lambda: len(self.reload.faults))
        if self.backups.are_scheduled:
            metrics.gauge("rollcall_backup_age_seconds", "Time since the newest backup", self.backups.age_seconds)

    def _register_cluster_metrics(self, cluster: Cluster) -> None:
        metrics = self.metrics
        metrics.gauge(
            "rollcall_cluster_heartbeat_age_seconds",
            "Time since the last heartbeat",
            lambda: cluster.heartbeat_age_seconds,
        )
        if cluster.is_gateway:
            metrics.gauges(
                "rollcall_cluster_account_held",
                "1: this process holds the account",
                "platform",
                lambda: {account.key: float(account.is_here) for account in cluster.accounts},
            )
            metrics.gauge(
                "rollcall_cluster_turns_waiting", "Turns that no worker is free to take", lambda: cluster.turns.waiting
            )
        if cluster.is_worker:
            metrics.gauge(
                "rollcall_cluster_turns_running", "Turns that run on this worker", lambda: cluster.worker.running
            )

    def _register_store_metrics(self) -> None:
        self.metrics.gauge(
            "rollcall_store_usable", "1: the database can be written", lambda: self.store.health().problem is None
        )
        self.metrics.gauge(
            "rollcall_store_checked_timestamp_seconds",
            "When the last full check found no damage in the database; 0: not yet",
            lambda: (self.store.health().checked_ms or 0) / 1000,
        )

        if not self.settings.store.is_on_a_server:
            file = database_of(self.settings)
            files = {"rollcall_store_bytes": file, "rollcall_store_wal_bytes": Path(f"{file}-wal")}
            for name, path in files.items():
                self.metrics.gauge(name, f"Size of {path.name}", partial(_size_of, path))

    def _oldest_waiting_seconds(self) -> float:
        oldest = self.engine.oldest_waiting_id
        return 0.0 if oldest is None else max(0.0, (self.clock.now_ms() - generated_ms(oldest)) / 1000)

    def _register_link_metrics(self) -> None:
        linked = {f"{one.name}:{one.account}": one for one in self.platforms if isinstance(one, Linked)}
        if not linked:
            return
        self.metrics.gauges(
            "rollcall_platform_connected",
            "Whether there is a connection to a network",
            "platform",
            lambda: {name: float(one.link().is_up) for name, one in linked.items()},
        )
        self.metrics.counter(
            "rollcall_platform_losses",
            "Connections to a network that were lost or could not be made",
            "platform",
            lambda: {name: one.link().losses for name, one in linked.items()},
        )

    def _register_model_metrics(self) -> None:
        states = self.model.states
        self.metrics.gauges(
            "rollcall_model_left_alone_seconds",
            "Remaining pause of a model after failures, in seconds",
            "model",
            lambda: {state.name: state.seconds_left for state in states()},
        )
        self.metrics.counter(
            "rollcall_model_failures",
            "Requests that a model did not answer",
            "model",
            lambda: {state.name: state.failures for state in states()},
        )
        budgets = self.request_budgets
        self.metrics.counter(
            "rollcall_model_prompt_tokens", "Tokens of prompts", "model", lambda: budgets.prompt_tokens
        )
        self.metrics.counter(
            "rollcall_model_completion_tokens", "Tokens of answers", "model", lambda: budgets.completion_tokens
        )
        self.metrics.counter(
            "rollcall_model_cost",
            "Price of the requests, in the currency of budgets.prices",
            "model",
            lambda: {name: micros / MICROS for name, micros in budgets.money.items()},
        )


def _size_of(path: Path) -> int:
    """Size of a file in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
