"""This process as part of a cluster: its account locks, heartbeat, notifications, and the loops of its roles."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Protocol, cast

import orjson
import structlog

from bot import VERSION
from bot.chats.open_questions import OpenQuestions
from bot.cluster.accounts import Account, status_of
from bot.cluster.remote_turns import RemoteTurns
from bot.cluster.requests import Answer, Requests, wait
from bot.cluster.worker import Worker
from bot.delivery.collected import Collected
from bot.delivery.delivery import Delivery
from bot.engine.embedded import Job
from bot.housekeeping import Housekeeping
from bot.intake.intake import Intake
from bot.live.command_menus import ShownMenus
from bot.live.operator_notices import OperatorNotices
from bot.live.settings import LiveSettings
from bot.platforms.base import ChatPlatform, Outgoing
from bot.registration.models import CurrentModel
from bot.turns.turns import Turns
from config.settings import Settings
from function_calls.registry import FunctionRegistry
from services.clock import Clock
from services.refs import ChatRef
from services.store.all_tables import newest_ids
from services.store.ids import Ids
from services.store.postgres import cluster
from services.store.postgres.connections import listen
from services.store.postgres.fenced import FencedStore, in_attempt
from services.store.postgres.jobs import STALLED_SECONDS, run_jobs
from services.store.postgres.store import PostgresStore
from services.store.sqlite.lock import StoreInUse
from services.store.turns.cluster import ProcessRole

_BEAT_SECONDS = 3.0
_DEAD_SECONDS = 3600.0
_HOLD_SECONDS = 1.0
_SHARE_SECONDS = 0.5
"""Delay per account already held, so that gateways that start together share the accounts."""
_POLL_SECONDS = 1.0
_FINISH_SECONDS = 15.0
"""Time for running turns of a worker that stops; then other workers run them again."""
_KEEPER_SECONDS = 5.0
_NODES = 256
_log = structlog.get_logger("cluster")


class Parts(Protocol):
    """The parts of a daemon that a cluster uses."""

    live: LiveSettings
    registry: FunctionRegistry
    questions: OpenQuestions

    @property
    def delivery(self) -> Delivery: ...
    @property
    def housekeeping(self) -> Housekeeping: ...
    @property
    def intake(self) -> Intake: ...
    @property
    def collected(self) -> Collected: ...
    @property
    def menus(self) -> ShownMenus: ...
    @property
    def model(self) -> CurrentModel: ...
    @property
    def operator_notices(self) -> OperatorNotices: ...
    @property
    def turns(self) -> Turns: ...


class Cluster:
    """The parts of a process that a cluster adds. `bind` connects it to its daemon."""

    def __init__(self, settings: Settings, store: PostgresStore, ids: Ids, clock: Clock, role: ProcessRole) -> None:
        self._settings = settings
        self._raw_store = store
        self.ids = ids
        self._clock = clock
        self.is_gateway = role is not ProcessRole.WORKER
        self.is_worker = role is not ProcessRole.GATEWAY
        self.role = role
        self.store = FencedStore(store)
        self.accounts: list[Account] = []
        self.is_keeper = False
        """Whether this process does the periodic work that only one may do."""
        self._requests = Requests(self.store, ids, clock)
        self._has_outbox = asyncio.Event()
        self._started_ms = clock.now_ms()
        self._queues: list[str] = []
        self._slots = 0
        self._others_can = False
        """Whether another worker runs the jobs of this one's queue, and reaches a model."""
        self._definitions = ""
        self._beat_at = self._steady_since = clock.monotonic()

    @classmethod
    async def join(cls, settings: Settings, store: PostgresStore, clock: Clock, role: ProcessRole) -> Cluster:
        """A new process of the cluster on `store`, with a number of its own for unique ids. Raises StoreError."""
        for number in range(1, _NODES):
            if await store.claim(f"node {number}") is None:
                return cls(settings, store, Ids(clock, number), clock, role)
        raise StoreInUse(f"the cluster has {_NODES - 1} processes already")

    def account_of(self, network: ChatPlatform) -> ChatPlatform:
        """The account of `network` in the cluster."""
        account = Account(network, self._requests, self.store, self._hold, self._taken)
        self.accounts.append(account)
        # `limits` is read-only, as nobody sets it from outside.
        return cast(ChatPlatform, account)

    @property
    def is_ready(self) -> bool:
        """Whether this process works: a worker, or a gateway that holds an account."""
        return self.is_worker or any(account.is_here for account in self.accounts)

    @property
    def state(self) -> str:
        """Role and accounts of this process, for operators."""
        held = ", ".join(account.key for account in self.accounts if account.is_here)
        return f"{self.role.value}; holds {held or 'no account'}" if self.is_gateway else self.role.value

    @property
    def heartbeat_age_seconds(self) -> float:
        """Time since the beginning of the last heartbeat."""
        return self._clock.monotonic() - self._beat_at

    def bind(self, parts: Parts) -> None:
        """Connect to the parts of this process's daemon."""
        self._parts = parts

    @cached_property
    def turns(self) -> RemoteTurns:
        """Turns of the gateway."""
        parts = self._parts
        return RemoteTurns(
            self.store, self._clock, parts.turns.run, parts.registry.of, self._queue, lambda: self._slots, self._sync
        )

    @cached_property
    def worker(self) -> Worker:
        """Turns of the worker."""
        parts = self._parts
        return Worker(
            self.store,
            self.ids,
            parts.intake,
            parts.questions,
            parts.turns.run,
            parts.housekeeping.notice_changes,
            parts.delivery.is_here,
        )

    async def run(self) -> None:
        """Do the work of this process's role until cancelled. Raises StoreError."""
        url = self._settings.store.url.get_secret_value()
        channels = [cluster.WORKERS, *([cluster.GATEWAYS] if self.is_gateway else [])]
        await self._beat()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(listen(url, channels, self._clock, self._heard, self._connected))
                tasks.create_task(self._repeat(_BEAT_SECONDS, self._beat))
                if self.is_gateway:
                    tasks.create_task(self._requests.serve(self._answer_of))
                    tasks.create_task(self._take_up())
                    tasks.create_task(self._repeat(_POLL_SECONDS, self.turns.check))
                    tasks.create_task(self._repeat(_KEEPER_SECONDS, self._keep))
                if self.is_worker:
                    tasks.create_task(self._work(url))
        finally:
            self._raw_store.post([cluster.leave(self._raw_store.name)])

    def elsewhere(self, chat: ChatRef) -> None:
        """A message to `chat`, whose account another process holds, is in the outbox. The end of a turn notifies the
        gateway by itself."""
        if not in_attempt():
            self.store.post([cluster.notify(cluster.GATEWAYS, f"outbox {chat.key}")])

    def close(self) -> None:
        """Let turns on workers continue without this process."""
        self.turns.close()

    async def _hold(self, account: str) -> None:
        """Return when this process holds the account. A stalled holder loses it."""
        await self._clock.sleep(_SHARE_SECONDS * sum(held.is_here for held in self.accounts))
        waits_for = None
        while (holder := await self._raw_store.claim(f"account {account}")) is not None:
            if holder != waits_for:
                waits_for = holder
                _log.info("account_held_elsewhere", account=account, holder=holder)
            if await self._is_silent(holder):
                _log.warning("stalled_process_cut_off", account=account, holder=holder)
                await self._raw_store.end_session(holder)
            await self._clock.sleep(_HOLD_SECONDS)

    async def _is_silent(self, process: str) -> bool:
        rows = await self.store.read(cluster.ALIVE)
        return any(row["name"] == process and row["age_ms"] > cluster.SILENT_SECONDS * 1000 for row in rows)

    async def _taken(self, account: Account) -> None:
        """Continue the work that an earlier holder of the account left."""
        parts = self._parts
        newest = [row["id"] for row in await self.store.read(newest_ids()) if row["id"] is not None]
        self.ids.advance_past(max(newest, default=0))
        self.turns.deferred = {row["turn"] for row in await self.store.read(cluster.DEFERRED)}
        await parts.questions.load(self.store, f"{account.key}:")
        unsent = await parts.delivery.recover(f"{account.key}:")
        unfinished = await parts.intake.recover(f"{account.key}:")
        parts.menus.changed()
        await self._beat()
        if unsent or unfinished:
            _log.info("recovered", account=account.key, unfinished_turns=unfinished, unsent_messages=unsent)

    async def _sync(self, job: Job) -> None:
        """Reload the open questions of a chat after a turn on a worker, before its messages are sent."""
        questions = self._parts.questions
        questions.claim_ended(job.question)
        await questions.sync(self.store, job.context.chat.key)
        self._parts.delivery.statuses.forget(job.turn_id)
        if job.context.timer is not None:
            # Its messages may be held during quiet hours.
            self._parts.collected.note()
        self._has_outbox.set()

    async def _take_up(self) -> None:
        while True:
            await wait(self._has_outbox, _POLL_SECONDS)
            self._has_outbox.clear()
            await self._parts.delivery.take_up()

    async def _work(self, url: str) -> None:
        """Run the jobs for the definitions of this process until cancelled. When these change, running jobs are
        finished beside the next ones. After a failure of the database it starts again."""
        working: set[asyncio.Task[None]] = set()
        current: asyncio.Task[None] | None = None
        queue = ""
        try:
            while True:
                if current is None or current.done() or queue != self._definitions:
                    if current is not None:
                        current.cancel()
                    queue = self._definitions
                    at_once = self._settings.limits.parallel_turns
                    jobs = run_jobs(url, queue, self.worker.run, at_once, self.leaves_jobs)
                    current = asyncio.create_task(jobs)
                    working.add(current)
                ended, _ = await asyncio.wait(working, timeout=_POLL_SECONDS)
                for task in ended:
                    working.discard(task)
                    if not task.cancelled():
                        _log.warning("jobs_interrupted", problem=str(task.exception()))
                        await self._clock.sleep(_POLL_SECONDS)
        finally:
            for task in working:
                task.cancel()
            if working:
                await asyncio.wait(working, timeout=_FINISH_SECONDS)
                self.worker.abort()
                await asyncio.wait(working)

    async def _beat(self) -> None:
        """Report this process, and find out which queues have workers. Raises StoreError."""
        self._definitions = definitions_of(self._settings_now, self._parts)
        name, held = self._raw_store.name, " ".join(account.key for account in self.accounts if account.is_here)
        roles = " ".join(["gateway"] * self.is_gateway + ["worker"] * self.is_worker)
        beat = cluster.beat(
            name=name,
            roles=roles,
            accounts=held,
            definitions=self._definitions,
            version=VERSION,
            slots=0 if not self.is_worker else 1 if self._lacks_models else self._settings.limits.parallel_turns,
            started_ms=self._started_ms,
        )
        # After a gap, the heartbeats of other processes may be old because the database was away.
        now, before = self._clock.monotonic(), self._beat_at
        self._beat_at = now
        self._steady_since = self._steady_since if now - before < 3 * _BEAT_SECONDS else now
        reaps = now - self._steady_since > STALLED_SECONDS / 2
        reaped = (await self._raw_store.commit([beat, *([cluster.reap(round(STALLED_SECONDS))] if reaps else [])]))[1:]
        if sum(reaped):
            _log.warning("jobs_of_dead_workers", count=sum(reaped))
        workers = [
            row
            for row in await self.store.read(cluster.ALIVE)
            if row["slots"] and row["age_ms"] < STALLED_SECONDS * 1000
        ]
        self._queues = [row["definitions"] for row in workers]
        self._slots = sum(row["slots"] for row in workers)
        self._others_can = any(
            row["slots"] > 1 and row["name"] != name and row["definitions"] == self._definitions for row in workers
        )
        self.turns.slots_changed()
        if self.is_worker:
            await self._raw_store.commit([cluster.move(self._definitions, round(STALLED_SECONDS * 1000))])

    def leaves_jobs(self) -> bool:
        """Whether this worker leaves all jobs to others, because only they reach a model."""
        return self._lacks_models and self._others_can

    @property
    def _lacks_models(self) -> bool:
        """Whether all models are paused after failures. Such a worker fails its turns quickly, so it would take more of
        them than the others."""
        states = self._parts.model.states()
        return bool(states) and all(state.seconds_left > 0 for state in states)

    @property
    def _settings_now(self) -> Settings:
        return self._parts.live.now

    def _queue(self) -> str:
        """The queue of workers with the definitions of this process; without one, that of any live worker."""
        if self._definitions in self._queues or not self._queues:
            return self._definitions
        return self._queues[0]

    async def _keep(self) -> None:
        if not self.is_keeper and await self._raw_store.claim("keeper") is None:
            self.is_keeper = True
            self._parts.operator_notices.changed()
        if self.is_keeper:
            await self._raw_store.commit(cluster.forget(self._clock.now_ms(), round(_DEAD_SECONDS * 1000)))

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(seconds)
            await work()

    def _answer_of(self, account: str) -> Answer | None:
        """The method that answers requests to the account; None if this process does not hold it."""
        return next((held.answer for held in self.accounts if held.key == account and held.is_here), None)

    def _connected(self) -> None:
        """Notifications may have been lost."""
        self._has_outbox.set()
        self._requests.note_request()

    def _heard(self, payload: str) -> None:
        word, _, rest = payload.partition(" ")
        about_turn = {
            "ended": self.turns.ended,
            "left": self.turns.left_queue,
            "stop": self.worker.stop,
            "edited": self.worker.edited,
            "answer": self._requests.note_answer,
        }
        if word in about_turn:
            about_turn[word](int(rest))
        elif word == "request" and self._answer_of(rest) is not None:
            self._requests.note_request()
        elif word == "outbox":
            self._has_outbox.set()
        elif word == "typing":
            self._show_typing(*rest.split("\n", 1))
        elif word == "status":
            self._show_status(*status_of(rest))

    def _show_typing(self, chat: str, text: str) -> None:
        if self._parts.delivery.is_here(ChatRef.parse(chat)):
            self._parts.turns.show_typing(ChatRef.parse(chat), text)

    def _show_status(self, turn: int, outgoing: Outgoing) -> None:
        if self._parts.delivery.is_here(outgoing.chat):
            self._parts.delivery.show_status(turn, outgoing)


def definitions_of(settings: Settings, parts: Parts) -> str:
    """Hash of the settings and functions that determine how a turn runs; the same in processes that agree."""
    data = settings.model_dump(mode="json", exclude={"home", "logging", "telemetry", "store", "platforms"})
    functions: Sequence[tuple[str, str]] = sorted(
        (spec.name, spec.origin.version) for spec in parts.registry.specs if not spec.name.startswith("mcp__")
    )
    return hashlib.sha256(orjson.dumps([VERSION, data, functions])).hexdigest()[:16]
