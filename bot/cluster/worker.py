"""Turns of a worker: the jobs of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog

from bot.chats.open_questions import OpenQuestions
from bot.engine.embedded import Job, RunTurn
from bot.intake.intake import Intake
from services.refs import ChatRef
from services.store.ids import Ids
from services.store.port import Store, Superseded
from services.store.postgres import cluster
from services.store.postgres.fenced import Attempt, running
from services.store.postgres.jobs import JobRef
from services.store.turns import inbox

_log = structlog.get_logger("cluster")


@dataclass(slots=True, eq=False)
class _Run:
    """A turn of this worker."""

    job: Job | None = None
    task: asyncio.Future[None] | None = None
    is_stopped: bool = False
    is_edited: bool = False


@dataclass(eq=False, repr=False)
class Worker:
    """Runs turns for the gateways."""

    store: Store
    ids: Ids
    intake: Intake
    questions: OpenQuestions
    run_turn: RunTurn
    notice_changes: Callable[[], Awaitable[None]]
    """Reloads settings of chats and the like that other processes have changed."""
    is_here: Callable[[ChatRef], bool]
    """Whether this process is also the gateway of a chat."""

    def __post_init__(self) -> None:
        self._runs: dict[int, _Run] = {}

    @property
    def running(self) -> int:
        """Number of running turns."""
        return len(self._runs)

    async def run(self, job: JobRef, turn: int, addressed: bool, recovered: bool) -> None:
        """Run an attempt of the turn, delete its job and notify its gateway. Only deletes the job of a turn that has
        ended. `recovered`: a gateway may have run parts of it. Raises StoreError: the job is repeated then."""
        attempt = Attempt(turn, self.ids.next())
        # Registered before the attempt begins: a request to stop finds it here, or the attempt finds the request.
        run = self._runs[turn] = _Run()
        try:
            if (await self.store.commit([inbox.begin_attempt(turn, attempt.id)]))[0]:
                await self._attempt(run, job.id, attempt, addressed=addressed, recovered=recovered)
        except Superseded:
            _log.warning("attempt_superseded", turn=turn)
            await self.store.commit([cluster.finish(*job)])
            return
        finally:
            del self._runs[turn]
        await self.store.commit([cluster.finish(*job), cluster.notify(cluster.GATEWAYS, f"ended {turn}")])

    def stop(self, turn: int) -> None:
        """Stop the turn if it runs here, because a member asks for it."""
        run = self._runs.get(turn)
        if run is None:
            return
        run.is_stopped = True
        if run.job is not None and run.task is not None and not run.job.answered:
            run.job.stopped = True
            run.task.cancel()

    def abort(self) -> None:
        """Cancel all turns: the process stops, and other workers run them again."""
        for run in self._runs.values():
            if run.task is not None:
                run.task.cancel()

    def edited(self, turn: int) -> None:
        """The message of the turn was edited while it ran, perhaps here."""
        run = self._runs.get(turn)
        if run is not None:
            run.is_edited = True
            if run.job is not None:
                run.job.edited = True

    async def _attempt(self, run: _Run, job_id: int, attempt: Attempt, *, addressed: bool, recovered: bool) -> None:
        self.ids.advance_past(attempt.turn)
        await self.notice_changes()
        rows = await self.store.read(inbox.of_attempt(attempt.turn, attempt.id))
        if not rows:
            raise Superseded
        (row,) = rows
        job = await self.intake.job_of_row(row)
        chat = job.context.chat.key
        await self.questions.sync(self.store, chat)
        job.attempts, job.is_counted = row["attempts"] - 1, True
        job.addressed, job.recovered = addressed, recovered or job.attempts > 0
        job.stopped = run.is_stopped or row["detail"] == inbox.STOP_REQUESTED
        job.edited, job.started = run.is_edited, True
        job.leave_queue = partial(self._leave_queue, job_id)
        if job.question is not None and not job.attempts:
            job.claimed = await self.questions.claimed_for(self.store, job.question)
        run.job = job
        with running(attempt):
            run.task = asyncio.ensure_future(self.run_turn(job))
            await run.task
        if not self.is_here(job.context.chat) and all(
            other is run or other.job is None or other.job.context.chat != job.context.chat
            for other in self._runs.values()
        ):
            self.questions.drop(chat)

    def _leave_queue(self, job_id: int, job: Job) -> bool:
        """Let the next turn of the chat begin. The gateway limits how many turns do so."""
        self.store.post([cluster.unlock(job_id), cluster.notify(cluster.GATEWAYS, f"left {job.turn_id}")])
        return True
