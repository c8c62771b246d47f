"""Jobs of a cluster: a queue on the database of the store, run by procrastinate."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

import procrastinate
import psycopg
import structlog
from procrastinate import JobContext, RetryStrategy
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback

from services.store.port import StoreError
from services.store.postgres.cluster import TASK
from services.store.postgres.connections import address_of, place_of

HEARTBEAT_SECONDS = 5.0
STALLED_SECONDS = 30.0
"""A worker without a heartbeat for this time is dead: its jobs are run by another one."""
_POLL_SECONDS = 1.0
_log = structlog.get_logger("cluster")
_RETRY = RetryStrategy(max_attempts=20, wait=2)
_SCHEMA_LOCK = "SELECT pg_advisory_lock(hashtext(current_schema() || ' rollcall jobs'))"
_TUNING = (
    "CREATE INDEX procrastinate_jobs_rollcall ON procrastinate_jobs (lock, priority DESC, id) "
    "WHERE status IN ('todo', 'doing')",
    # Otherwise its plan depends on when the table was analysed last: with old statistics, a fetch reads and sorts all
    # waiting jobs.
    "ALTER FUNCTION procrastinate_fetch_job_v2 SET enable_sort = off",
    "ALTER FUNCTION procrastinate_fetch_job_v2 SET enable_bitmapscan = off",
    "ALTER FUNCTION procrastinate_fetch_job_v2 SET enable_seqscan = off",
)


class JobRef(NamedTuple):
    """A job, as given to one worker."""

    id: int
    attempts: int
    """Number of earlier attempts."""


RunJob = Callable[[JobRef, int, bool, bool], Awaitable[None]]
"""Runs a turn, by its job, its id, whether its message was addressed to the bot, and whether another process may have
run parts of it. Has to delete the job, in the unit that notifies others of the end: its lock would stop the next job of
the chat."""


def prepare_jobs(url: str) -> None:
    """Create the tables of the queue unless they exist. Raises StoreError."""
    try:
        with psycopg.connect(address_of(url), autocommit=True) as connection:
            connection.execute(_SCHEMA_LOCK)
            (found,) = connection.execute("SELECT to_regclass('procrastinate_jobs') IS NOT NULL").fetchone() or (False,)
            if not found:
                app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=address_of(url)))
                with app.open():
                    app.schema_manager.apply_schema()
                for statement in _TUNING:
                    connection.execute(statement)
    except (psycopg.Error, procrastinate.exceptions.ProcrastinateException) as error:
        raise StoreError(f"{place_of(url)}: the tables of jobs cannot be made: {error}") from error


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    # A transaction and a new plan for each statement would double the load of the server.
    await connection.set_autocommit(True)
    connection.prepare_threshold = 1


class _Manager(JobManager):
    """Leaves the deletion of jobs to the runs, and misses no notification of a job. Fetches none while
    `leaves_jobs()`."""

    def __init__(self, connector: procrastinate.PsycopgConnector, leaves_jobs: Callable[[], bool]) -> None:
        super().__init__(connector)
        self._leaves_jobs = leaves_jobs
        self._is_woken = False

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        if status is not Status.SUCCEEDED:
            await super().finish_job(job, status, delete_job)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        while not self._leaves_jobs():
            self._is_woken = False
            job = await super().fetch_job(queues, worker_id)
            # The worker forgets notifications that come during a fetch.
            if job is not None or not self._is_woken:
                return job
        return None

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        async def notified(*, channel: str, notification: Notification) -> None:
            self._is_woken = True
            await on_notification(channel=channel, notification=notification)

        await super().listen_for_jobs(on_notification=notified, queues=queues)


async def run_jobs(url: str, queue: str, run: RunJob, at_once: int, leaves_jobs: Callable[[], bool]) -> None:
    """Run the jobs of `queue`, at most `at_once` at a time, until cancelled: then it ends when all running jobs have
    ended. A cancelled job returns to its queue. While `leaves_jobs()`, other workers get all jobs. Raises the errors
    of the database."""
    connector = procrastinate.PsycopgConnector(conninfo=address_of(url), min_size=2, max_size=4, configure=_configure)
    app = procrastinate.App(connector=connector)
    app.job_manager = _Manager(connector, leaves_jobs)

    @app.task(name=TASK, pass_context=True, retry=_RETRY)
    async def run_turn(context: JobContext, turn: int, addressed: bool, recovered: bool) -> None:
        try:
            await run(JobRef(context.job.id or 0, context.job.attempts), turn, addressed, recovered)
        except Exception as error:
            _log.warning("job_failed", turn=turn, attempt=context.job.attempts + 1, problem=str(error))
            raise

    # They log each job, and each attempt to connect; the caller logs the errors of this function.
    for name in ("procrastinate", "psycopg.pool"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    async with app.open_async():
        await app.run_worker_async(
            queues=[queue],
            concurrency=at_once,
            fetch_job_polling_interval=_POLL_SECONDS,
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=STALLED_SECONDS,
        )
