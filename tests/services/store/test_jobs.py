"""Jobs of a worker on a real PostgreSQL server."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from services.store.port import StoreError
from services.store.postgres import cluster
from services.store.postgres.jobs import JobRef, prepare_jobs, run_jobs
from services.store.postgres.reader import operator_connection


async def test_a_failed_job_is_logged_with_its_turn_and_repeated(new_postgres_database: str) -> None:
    prepare_jobs(new_postgres_database)
    with operator_connection(new_postgres_database, writes=True) as database:
        database.commit([cluster.defer("abc", "http:main:family", 7, addressed=True, recovered=False)])
    runs: list[JobRef] = []
    is_repeated = asyncio.Event()

    async def run(job: JobRef, turn: int, addressed: bool, recovered: bool) -> None:
        runs.append(job)
        if len(runs) == 1:
            raise StoreError("the database is away")
        is_repeated.set()

    with capture_logs() as logs:
        working = asyncio.create_task(run_jobs(new_postgres_database, "abc", run, 1, lambda: False))
        async with asyncio.timeout(30):
            await is_repeated.wait()
        working.cancel()
        await asyncio.wait([working])
    (failed,) = [log for log in logs if log["event"] == "job_failed"]
    assert (failed["turn"], failed["attempt"], failed["problem"]) == (7, 1, "the database is away")
    assert [job.attempts for job in runs] == [0, 1]
