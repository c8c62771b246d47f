"""Statements of a cluster: on its processes, requests to the process that holds an account, and jobs that workers run.

The statements on jobs use the functions of procrastinate's schema (`services/store/postgres/jobs.py`), so that a job
is added in the same transaction as our rows.
"""

from __future__ import annotations

from sqlalchemy import bindparam, delete, literal_column, select, update
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import insert

from services.store.port import Query, Statement, Write
from services.store.schema import INTEGER, TEXT, binds, replacing
from services.store.turns.cluster import PROCESSES, REQUESTS

GATEWAYS, WORKERS = "rollcall_gateways", "rollcall_workers"
"""Channels of notifications, by the role of their listeners."""
TASK = "turn"
"""Name of the task of every job."""
SILENT_SECONDS = 12.0
"""A process without a heartbeat for this time is stalled: its accounts are taken over."""

_NOW = literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", INTEGER)
"""The server's clock, because clocks of machines differ."""
_BEAT = Statement("cluster.beat", replacing(PROCESSES, insert(PROCESSES).values({**binds(PROCESSES), "seen_ms": _NOW})))
_LEAVE = Statement("cluster.leave", delete(PROCESSES).where(PROCESSES.c.name == bindparam("process")))
_FORGET_DEAD = Statement(
    "cluster.forget_dead", delete(PROCESSES).where(PROCESSES.c.seen_ms < _NOW - bindparam("age_ms"))
)
ALIVE = Statement(
    "cluster.alive", select(PROCESSES, (_NOW - PROCESSES.c.seen_ms).label("age_ms")).order_by(PROCESSES.c.name)
).query()
"""All columns of all processes, with `age_ms`: milliseconds since the last heartbeat."""

_ASK = Statement("cluster.ask", insert(REQUESTS).values({**binds(REQUESTS), "state": "open", "answer": ""}))
_IS_OPEN = REQUESTS.c.state == "open"
OPEN_REQUESTS = Statement("cluster.open_requests", select(REQUESTS).where(_IS_OPEN).order_by(REQUESTS.c.id)).query()
"""All columns of the requests that nobody has claimed, oldest first."""
_THIS = REQUESTS.c.id == bindparam("row_id")
_CLAIM = Statement("cluster.claim", update(REQUESTS).where(_THIS, _IS_OPEN).values(state="claimed"))
_ANSWER = Statement(
    "cluster.answer", update(REQUESTS).where(_THIS).values(state="answered", answer=bindparam("new_answer"))
)
_ANSWERED = Statement("cluster.answered", select(REQUESTS.c.answer).where(_THIS, REQUESTS.c.state == "answered"))
_WITHDRAW = Statement("cluster.withdraw", delete(REQUESTS).where(_THIS))
_FORGET_FAILED = Statement(
    "cluster.forget_failed",
    sql(
        "DELETE FROM procrastinate_jobs AS j WHERE status = 'failed' AND NOT EXISTS (SELECT 1 FROM inbox AS i "
        "WHERE i.id = CAST(j.args ->> 'turn' AS BIGINT) AND i.reason = 'waiting')"
    ),
)
_FORGET_LATE = Statement("cluster.forget_late", delete(REQUESTS).where(REQUESTS.c.until_ms < bindparam("now_ms")))

_NOTIFY = Statement("cluster.notify", sql("SELECT pg_notify(:channel, :payload)"))
_DEFER = Statement(
    "cluster.defer",
    sql(
        "SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(:queue, 'turn', 0, :chat, NULL, "
        "jsonb_build_object('turn', :turn, 'addressed', :addressed = 1, 'recovered', :recovered = 1), "
        "NULL)::procrastinate_job_to_defer_v1])"
    ),
)
_FINISH = Statement(
    "cluster.finish",
    sql("DELETE FROM procrastinate_jobs WHERE id = :job AND status = 'doing' AND attempts = :attempts"),
)
_REAP = Statement(
    "cluster.reap",
    sql(
        "WITH stalled AS MATERIALIZED (SELECT j.id FROM procrastinate_jobs AS j "
        "LEFT JOIN procrastinate_workers AS w ON w.id = j.worker_id WHERE j.status = 'doing' "
        "AND (w.id IS NULL OR w.last_heartbeat < now() - make_interval(secs => :seconds)) FOR UPDATE OF j SKIP LOCKED) "
        "SELECT procrastinate_retry_job_v2(id, now(), NULL, NULL, NULL) FROM stalled"
    ),
)
_UNLOCK = Statement("cluster.unlock", sql("UPDATE procrastinate_jobs SET lock = NULL WHERE id = :job"))
_MOVE = Statement(
    "cluster.move",
    sql(
        "UPDATE procrastinate_jobs SET queue_name = :queue "
        "WHERE status = 'todo' AND queue_name <> :queue AND NOT EXISTS (SELECT 1 FROM cluster_processes AS p "
        "WHERE p.definitions = queue_name AND p.roles LIKE '%worker%' "
        "AND p.seen_ms > CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - :age_ms)"
    ),
)
_GUARD = Statement("cluster.guard", sql("SELECT id FROM inbox WHERE id = :turn AND epoch = :attempt FOR SHARE"))
_OPEN_TURNS = Statement(
    "cluster.open_turns",
    sql(
        "SELECT i.id, j.turn IS NOT NULL AS has_job FROM inbox AS i LEFT JOIN (SELECT DISTINCT "
        "CAST(args ->> 'turn' AS BIGINT) AS turn FROM procrastinate_jobs WHERE status IN ('todo', 'doing')) AS j "
        "ON j.turn = i.id WHERE i.reason = 'waiting' AND i.id = ANY(CAST(string_to_array(:ids, ',') AS BIGINT[]))"
    ).columns(id=INTEGER, has_job=INTEGER),
)
DEFERRED = Statement(
    "cluster.deferred",
    sql(
        "SELECT CAST(args ->> 'turn' AS BIGINT) AS turn FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    ).columns(turn=INTEGER),
).query()
"""The `turn` of each job that will run or runs."""
BACKLOG = Statement(
    "cluster.backlog",
    sql(
        "SELECT queue_name, CAST(status AS TEXT) AS status, COUNT(*) AS jobs FROM procrastinate_jobs "
        "WHERE status IN ('todo', 'doing', 'failed') GROUP BY 1, 2 ORDER BY 1, 2"
    ).columns(queue_name=TEXT, status=TEXT, jobs=INTEGER),
).query()
"""Number of jobs by queue (`queue_name`) and `status`."""
FAILED = Statement(
    "cluster.failed",
    sql(
        "SELECT i.id AS turn, i.chat AS chat FROM procrastinate_jobs AS j "
        "JOIN inbox AS i ON i.id = CAST(j.args ->> 'turn' AS BIGINT) WHERE j.status = 'failed' ORDER BY j.id LIMIT 10"
    ).columns(turn=INTEGER, chat=TEXT),
).query()
"""The `turn` and `chat` of the first ten failed jobs."""


def beat(**values: str | int) -> Write:
    """Record that the process is alive, by the clock of the server; a value for each column but `seen_ms`.
    `definitions`: hash of its settings and functions; `slots`: number of turns that it runs at once."""
    return _BEAT.write(**values)


def leave(name: str) -> Write:
    """Remove the process, which stops."""
    return _LEAVE.write(process=name)


def forget(now_ms: int, age_ms: int) -> list[Write]:
    """Delete processes without a heartbeat for `age_ms`, requests whose deadline has passed, and failed jobs of turns
    that have ended."""
    return [_FORGET_DEAD.write(age_ms=age_ms), _FORGET_LATE.write(now_ms=now_ms), _FORGET_FAILED.write()]


def ask(id: int, account: str, method: str, body: str, until_ms: int) -> Write:
    """Add a request to the process that holds `account`; expires at `until_ms`."""
    return _ASK.write(id=id, account=account, method=method, body=body, until_ms=until_ms)


def claim(id: int) -> Write:
    """Claim a request; the unit is undone if it is claimed or withdrawn."""
    return _CLAIM.write_expecting(1, row_id=id)


def answer(id: int, body: str) -> Write:
    """Store the answer; touches no row if nobody waits for it any more."""
    return _ANSWER.write(row_id=id, new_answer=body)


def answered(id: int) -> Query:
    """The `answer` of the request; no row without one."""
    return _ANSWERED.query(row_id=id)


def withdraw(id: int) -> Write:
    """Delete the request."""
    return _WITHDRAW.write(row_id=id)


def notify(channel: str, payload: str) -> Write:
    """Notify the listeners of a channel when the unit is committed; at most 7,999 bytes."""
    return _NOTIFY.write(channel=channel, payload=payload)


def defer(queue: str, chat: str, turn: int, *, addressed: bool, recovered: bool) -> Write:
    """Add a job that runs the turn, in the order of its chat. `recovered`: another process may have run parts of it."""
    return _DEFER.write(queue=queue, chat=chat, turn=turn, addressed=int(addressed), recovered=int(recovered))


def finish(job: int, attempts: int) -> Write:
    """Delete the job, which lets the next one of its chat begin. Touches no row if the job was given to another worker
    meanwhile, which raises its `attempts`."""
    return _FINISH.write(job=job, attempts=attempts)


def reap(seconds: int) -> Write:
    """Return the jobs of workers without a heartbeat for `seconds` to their queues; touches a row for each."""
    return _REAP.write(seconds=seconds)


def unlock(job: int) -> Write:
    """Let the next job of the chat begin while this one continues."""
    return _UNLOCK.write(job=job)


def move(queue: str, age_ms: int) -> Write:
    """Move the jobs of queues that no live worker serves to `queue`. A worker without a heartbeat for `age_ms` is not
    alive."""
    return _MOVE.write(queue=queue, age_ms=age_ms)


def guard(turn: int, attempt: int) -> Write:
    """First statement of each unit of an attempt: the unit is undone if a later attempt of the turn has begun, which
    otherwise waits for the end of this unit."""
    return _GUARD.write_expecting(1, turn=turn, attempt=attempt)


def open_turns(ids: list[int]) -> Query:
    """Those turns that have not ended: `id`, and `has_job`, whether a job will run or runs them."""
    return _OPEN_TURNS.query(ids=",".join(map(str, ids)))
