"""Turns of a gateway: commands run here, all other turns on workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from bot.engine.embedded import Job, RunTurn
from function_calls.registry import BotFunctions
from services.clock import Clock
from services.store.port import Store
from services.store.postgres import cluster
from services.store.turns import inbox

_CHECK_SECONDS = 5.0
_LEAST = 16
"""Turns that may be deferred while no worker is known."""
_log = structlog.get_logger("cluster")


@dataclass(slots=True, eq=False)
class _Remote:
    """A turn that waits for or runs on a worker."""

    job: Job
    since: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False, repr=False)
class RemoteTurns:
    """Runs the turns that the engine of a gateway dispatches. The engine keeps the order of each chat; the lock of the
    jobs keeps it when another gateway has taken over."""

    store: Store
    clock: Clock
    run_here: RunTurn
    functions: Callable[[str], BotFunctions]
    queue: Callable[[], str]
    """The queue of the workers with the right definitions."""
    slots: Callable[[], int]
    """Number of turns that all live workers run at once."""
    sync: Callable[[Job], Awaitable[None]]
    """Reloads the state of the job's chat that its turn may have changed."""

    def __post_init__(self) -> None:
        self.deferred: set[int] = set()
        """Turns that have a job already, deferred by an earlier holder of their account."""
        self._remote: dict[int, _Remote] = {}
        self._deferred = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closing = False

    async def run(self, job: Job) -> None:
        """Run the turn here or on a worker; returns at its end, or when the process stops: then the turn continues."""
        if self._is_for_here(job):
            await self.run_here(job)
            return
        try:
            await self._take_slot()
        except asyncio.CancelledError:
            if not (job.stopped and _was_cancelled()):
                raise
            await self.run_here(job)
            return
        try:
            if not self._is_closing:
                await self._run(job)
        finally:
            self._deferred -= 1
            self.slots_changed()

    @property
    def waiting(self) -> int:
        """Number of turns that no worker is free to take."""
        return len(self._waiting)

    def slots_changed(self) -> None:
        """Let turns begin for which there is room now."""
        room = self._most - self._deferred
        while self._waiting and (room > 0 or self._is_closing):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room -= 1

    @property
    def _most(self) -> int:
        # The queue on the server stays short, which keeps its queries fast, and no worker waits for a gateway.
        return self.slots() * 2 + _LEAST

    async def _take_slot(self) -> None:
        """Wait until few enough turns are deferred, and count one more."""
        if self._deferred >= self._most and not self._is_closing:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        self._deferred += 1

    async def _run(self, job: Job) -> None:
        remote = self._remote[job.turn_id] = _Remote(job, self.clock.monotonic())
        job.changed = partial(self._changed, job.turn_id)
        try:
            if job.turn_id in self.deferred:
                self.deferred.discard(job.turn_id)
            else:
                await self._defer(job)
            while not (remote.ended.is_set() or self._is_closing):
                await self._wait(remote)
        finally:
            del self._remote[job.turn_id]
        if not self._is_closing:
            await self.sync(job)

    def ended(self, turn: int) -> None:
        """A worker has stored the end of the turn."""
        if turn in self._remote:
            self._remote[turn].ended.set()

    def left_queue(self, turn: int) -> None:
        """The turn continues beside the next turn of its chat."""
        remote = self._remote.get(turn)
        if remote is not None and remote.job.leave_queue is not None:
            remote.job.leave_queue(remote.job)

    async def check(self) -> None:
        """Find turns that ended without a notification, and add the jobs that are lost. Raises StoreError."""
        before = self.clock.monotonic() - _CHECK_SECONDS
        known = [turn for turn, remote in self._remote.items() if remote.since < before]
        if not known:
            return
        rows = {row["id"]: row["has_job"] for row in await self.store.read(cluster.open_turns(known))}
        for turn in known:
            remote = self._remote.get(turn)
            if remote is None:
                continue
            if turn not in rows:
                remote.ended.set()
            elif not rows[turn]:
                _log.warning("job_lost", turn=turn, chat=remote.job.context.chat.key)
                await self._defer(remote.job)

    def close(self) -> None:
        """Let all remote turns continue without this process."""
        self._is_closing = True
        self.slots_changed()
        for remote in self._remote.values():
            remote.ended.set()

    def _is_for_here(self, job: Job) -> bool:
        """Whether the turn is a command that no earlier process has tried, since the turn may have crashed that one."""
        if job.immediate:
            return True
        context = job.context
        if job.recovered or job.question is not None:
            return False
        functions = self.functions(context.bot)
        return functions.command_line(context.text, bare=context.calls_bot) is not None

    async def _defer(self, job: Job) -> None:
        deferred = cluster.defer(
            self.queue(), job.context.chat.key, job.turn_id, addressed=job.addressed, recovered=job.recovered
        )
        await self.store.commit([deferred])

    async def _wait(self, remote: _Remote) -> None:
        """Wait for the end. A cancellation because of /stop is passed to the worker, which ends the turn."""
        try:
            await remote.ended.wait()
        except asyncio.CancelledError:
            if not (remote.job.stopped and _was_cancelled()):
                raise
            turn = remote.job.turn_id
            await self.store.commit([inbox.request_stop(turn), cluster.notify(cluster.WORKERS, f"stop {turn}")])

    def _changed(self, turn: int) -> None:
        """The message of a running turn was edited."""
        self.store.post([cluster.notify(cluster.WORKERS, f"edited {turn}")])


def _was_cancelled() -> bool:
    """Whether the current task was cancelled; takes one cancellation back."""
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return False
    task.uncancel()
    return True
