"""`rollcall cluster status`, and the cluster in `rollcall doctor`, next to processes on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot import VERSION
from services.store.postgres import cluster
from services.store.postgres.jobs import prepare_jobs
from services.store.postgres.locks import SHARED, take
from services.store.postgres.reader import operator_connection
from tests.bot.cli.running import Printed, a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model
from tests.contracts.engines import a_conversation, until
from tests.harness.postgres_server import PostgresServer

NO_PAGE = "platforms: {web: {page: false}}"


def settings_of(folder: Path, url: str, more: str = NO_PAGE) -> Path:
    folder.mkdir(exist_ok=True)
    return a_settings_file(folder, f"engine: cluster\nstore: {{url: '{url}'}}\n{more}\n")


@pytest.fixture
def url(new_postgres_database: str) -> str:
    """A database with the tables of a cluster."""
    prepare_jobs(new_postgres_database)
    return new_postgres_database


def insert(url: str, table: str, row: dict[str, Any]) -> None:
    names, places = ", ".join(row), ", ".join(["%s"] * len(row))
    with psycopg.connect(url) as connection:
        connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})".encode(), list(row.values()))


def add_process(url: str, name: str, *, roles: str, definitions: str = "abc", accounts: str = "", age: int = 0) -> None:
    """Add a process whose last heartbeat was `age` seconds ago by the server's clock."""
    with psycopg.connect(url) as connection:
        (now_ms,) = connection.execute("SELECT CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT)").fetchone() or (0,)
    row = {"name": name, "roles": roles, "accounts": accounts, "definitions": definitions, "version": VERSION}
    slots = 32 if "worker" in roles else 0
    insert(url, "cluster_processes", {**row, "slots": slots, "started_ms": 1, "seen_ms": now_ms - age * 1000})


def add_job(url: str, queue: str, turn: int, status: str = "todo") -> None:
    row = {"queue_name": queue, "task_name": "turn", "lock": f"c{turn}", "status": status}
    insert(url, "procrastinate_jobs", {**row, "args": f'{{"turn": {turn}, "addressed": true}}'})


def add_turn(url: str, turn: int, reason: str) -> None:
    who = {"chat": "http:main:family", "native_id": str(turn), "sender": "http:main:ann", "sender_name": "Ann"}
    state = {"kind": "message", "body": "{}", "received_ms": 1, "reason": reason, "detail": "", "attempts": 0}
    insert(url, "inbox", {"id": turn, "key": str(turn), **who, **state, "epoch": 0})


async def test_processes_jobs_and_accounts_of_a_running_cluster_are_listed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, new_postgres_database: str
) -> None:
    def printed(*arguments: str) -> Printed:
        return command(capsys, *arguments, "--config", settings_of(tmp_path / "cli", new_postgres_database))

    async with a_conversation("cluster", tmp_path, new_postgres_database) as chat:
        await until(lambda: chat.gateway.overrides.cluster and chat.gateway.overrides.cluster.is_ready)
        good = await asyncio.to_thread(printed, "cluster", "status")
        state = (await asyncio.to_thread(printed, "cluster", "status", "--json")).json
        doctor = await asyncio.to_thread(printed, "doctor", "--no-model", "--no-web", "--no-networks")
    assert (good.status, good.err) == (0, "")
    lines = good.out.splitlines()
    assert lines[0].split() == ["process", "roles", "accounts", "version", "definitions", "slots", "heartbeat", "state"]
    assert lines[-1] == "open requests to gateways: 0"
    by_role = {process["roles"][0]: process for process in state["processes"]}
    assert [process["roles"] for process in state["processes"]] == [["gateway"], ["worker"], ["worker"]]
    assert (by_role["gateway"]["accounts"], by_role["worker"]["accounts"]) == (["test:bot"], [])
    assert (by_role["gateway"]["slots"], by_role["worker"]["version"]) == (0, VERSION)
    assert by_role["worker"]["slots"] > 0
    assert {process["state"] for process in state["processes"]} == {"live"}
    assert (state["jobs"], state["open_requests"], state["accounts_not_held"], state["findings"]) == ([], 0, [], [])
    (line,) = [line for line in doctor.out.splitlines() if line.split()[1] == "cluster"]
    assert line == "ok     cluster    live gateways: 1, live workers: 2"
    assert doctor.status == 0


def test_silent_processes_free_accounts_and_jobs_without_workers_are_findings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    add_process(url, "rollcall 1 on alpha", roles="gateway", accounts="irc:main web:main", age=13)
    add_process(url, "rollcall 2 on alpha", roles="gateway", accounts="http:main")
    add_process(url, "rollcall 4 on beta", roles="worker", definitions="old", age=13)
    add_process(url, "rollcall 3 on beta", roles="worker", definitions="new")
    add_turn(url, 7, "waiting")
    for turn, (queue, status) in enumerate([("new", "todo"), ("old", "todo"), ("old", "doing"), ("old", "failed")], 4):
        add_job(url, queue, turn, status)
    request = {"id": 1, "account": "irc:main", "method": "role", "body": "", "until_ms": 1, "answer": ""}
    insert(url, "cluster_requests", {**request, "state": "open"})
    http, irc = "{enabled: true, token: 0123456789abcdef0123}", "[{account: main, host: 127.0.0.1, nick: bot}]"
    platforms = f"platforms: {{http: {http}, irc: {irc}}}"
    settings = settings_of(tmp_path, url, platforms)
    with psycopg.connect(url, application_name="rollcall 1 on alpha") as stalled:
        take(stalled, SHARED)
        printed = command(capsys, "cluster", "status", "--config", settings)
        state = command(capsys, "cluster", "status", "--json", "--config", settings)
        doctor = command(capsys, "doctor", "--no-model", "--no-web", "--no-networks", "--config", settings)
    assert (printed.status, printed.err, state.status) == (1, "", 1)
    assert [line.removeprefix("finding: ") for line in printed.out.splitlines() if line.startswith("finding")] == [
        "rollcall 1 on alpha is silent: its last heartbeat was 13 s ago",
        "no process holds irc:main; a gateway with these settings takes it",
        "no process holds web:main; a gateway with these settings takes it",
        "jobs of the definitions old, which no live worker has: 2",
        "the job of turn 7 in http:main:family failed: see `job_failed` in the logs of the workers, "
        "and `rollcall why http:main:family`",
    ]
    assert "open requests to gateways: 1" in printed.out
    assert [line.split()[-1] for line in printed.out.splitlines()[1:5]] == ["silent", "live", "live", "ended"]
    assert state.json["accounts_not_held"] == ["irc:main", "web:main"]
    assert state.json["jobs"] == [
        {"queue": "new", "state": "waiting", "count": 1, "served": True},
        {"queue": "old", "state": "running", "count": 1, "served": False},
        {"queue": "old", "state": "failed", "count": 1, "served": False},
        {"queue": "old", "state": "waiting", "count": 1, "served": False},
    ]
    assert (
        "warn   cluster    engine:1:1 cluster.findings live gateways: 1, live workers: 1; rollcall 1 on" in doctor.out
    )


def test_without_a_live_worker_there_is_one_finding_for_all_jobs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    add_process(url, "rollcall 1 on alpha", roles="worker", age=13)
    add_job(url, "abc", 1)
    found = command(capsys, "cluster", "status", "--json", "--config", settings_of(tmp_path, url)).json["findings"]
    assert found == [
        "there is no live worker; start one with `rollcall run --role worker`",
        "jobs of the definitions abc, which no live worker has: 1",
    ]


def test_a_failed_job_is_kept_until_its_turn_has_ended(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> None:
    for turn, reason in ((7, "waiting"), (8, "chat")):
        add_turn(url, turn, reason)
        add_job(url, "abc", turn, "failed")
    with operator_connection(url, writes=True) as database:
        database.commit(cluster.forget(0, 1000))
    jobs = command(capsys, "cluster", "status", "--json", "--config", settings_of(tmp_path, url)).json["jobs"]
    assert [(job["state"], job["count"]) for job in jobs] == [("failed", 1)]


def test_settings_without_a_cluster_are_a_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed = command(capsys, "cluster", "status", "--config", a_settings_file(tmp_path))
    assert (printed.status, printed.out) == (2, "")
    assert "needs `engine: cluster`" in printed.err
    assert command(capsys, "cluster").status == 2


def test_a_database_without_tables_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, postgres_server: PostgresServer
) -> None:
    printed = command(capsys, "cluster", "status", "--config", settings_of(tmp_path, postgres_server.new_database()))
    assert (printed.status, printed.out) == (1, "")
    assert "start the daemon once" in printed.err
