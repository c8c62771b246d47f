"""`rollcall cluster status`: processes, accounts and jobs of a cluster, read next to the running processes."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from bot.cli.options import add_config, on_settings, table
from bot.database.opening import operator_connection_of
from config.diagnostics import Diagnostic
from config.settings import Settings
from services.store.postgres import cluster
from services.store.reader import ReaderError
from services.store.turns.cluster import ProcessRole

_LIVE, _SILENT = "live", "silent"
_STATES = {"todo": "waiting", "doing": "running", "failed": "failed"}


def read_state(settings: Settings) -> dict[str, Any]:
    """State of the cluster of the settings, as JSON data, with the age of heartbeats in seconds.

    `state` of a process: live; silent without a heartbeat, so that it loses its accounts; or ended without saying so.
    `served`: whether a live worker has the definitions of the jobs. `open_requests`: requests to holders of accounts
    that nobody has claimed. `accounts_not_held`: accounts of the settings that no process holds. Raises ReaderError.
    """
    with operator_connection_of(settings) as database:
        # Imported here: needs the driver.
        from services.store.postgres.locks import HOLDERS, SHARED

        sessions = {row["holder"] for row in database.rows(HOLDERS.query(name=SHARED.name))}
        processes = [_process(row, sessions) for row in database.rows(cluster.ALIVE)]
        backlog = database.rows(cluster.BACKLOG)
        failed, requests = database.rows(cluster.FAILED), database.rows(cluster.OPEN_REQUESTS)
    live = [process for process in processes if process["state"] == _LIVE]
    queues = {process["definitions"] for process in live if process["slots"]}
    jobs = [
        {
            "queue": row["queue_name"],
            "state": _STATES[row["status"]],
            "count": row["jobs"],
            "served": row["queue_name"] in queues,
        }
        for row in backlog
    ]
    held = {account for process in live for account in process["accounts"]}
    not_held = [account for account in _accounts(settings) if account not in held]
    findings = [
        f"{process['name']} is silent: its last heartbeat was {process['heartbeat_age_seconds']:.0f} s ago"
        for process in processes
        if process["state"] == _SILENT
    ]
    findings += [f"no process holds {account}; a gateway with these settings takes it" for account in not_held]
    if not queues:
        findings.append("there is no live worker; start one with `rollcall run --role worker`")
    waiting = Counter[str]()
    for job in jobs:
        if job["state"] != _STATES["failed"] and not job["served"]:
            waiting[job["queue"]] += job["count"]
    findings += [
        f"jobs of the definitions {name}, which no live worker has: {count}" for name, count in waiting.items()
    ]
    findings += [
        f"the job of turn {row['turn']} in {row['chat']} failed: see `job_failed` in the logs of the workers, "
        f"and `rollcall why {row['chat']}`"
        for row in failed
    ]
    return {
        "processes": processes,
        "jobs": jobs,
        "open_requests": len(requests),
        "accounts_not_held": not_held,
        "findings": findings,
    }


def check_cluster(settings: Settings) -> Diagnostic | str:
    """Check of the cluster for `doctor`."""
    try:
        state = read_state(settings)
    except ReaderError as error:
        return Diagnostic("engine", 1, 1, "cluster.unreadable", str(error), "warning")
    roles = Counter(role for row in state["processes"] if row["state"] == _LIVE for role in row["roles"])
    text = f"live gateways: {roles[ProcessRole.GATEWAY]}, live workers: {roles[ProcessRole.WORKER]}"
    if not state["findings"]:
        return text
    return Diagnostic("engine", 1, 1, "cluster.findings", "; ".join([text, *state["findings"]]), "warning")


def add_options(parser: argparse.ArgumentParser) -> None:
    subcommands = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    status = subcommands.add_parser("status", help="list processes, accounts and jobs, and what is wrong")
    status.add_argument("--json", action="store_true", help="print a JSON object")
    add_config(status)
    status.set_defaults(run=run)


@on_settings
def run(options: argparse.Namespace, settings: Settings) -> int:
    """Print the state. 0: no findings; 1: findings, or the database cannot be read; 2: the settings have no cluster."""
    if settings.engine != "cluster":
        print("`rollcall cluster` needs `engine: cluster` in the settings", file=sys.stderr)
        return 2
    state = read_state(settings)
    if options.json:
        print(json.dumps(state, ensure_ascii=False))
    else:
        _print(state)
    return 1 if state["findings"] else 0


def _print(state: Mapping[str, Any]) -> None:
    processes = [
        (
            row["name"],
            " ".join(row["roles"]),
            " ".join(row["accounts"]) or "-",
            row["version"],
            row["definitions"],
            str(row["slots"]),
            f"{row['heartbeat_age_seconds']:.0f} s ago",
            row["state"],
        )
        for row in state["processes"]
    ]
    print(table(("process", "roles", "accounts", "version", "definitions", "slots", "heartbeat", "state"), processes))
    if state["jobs"]:
        jobs = [(row["queue"], row["state"], str(row["count"])) for row in state["jobs"]]
        print("\n" + table(("jobs for definitions", "state", "number"), jobs))
    print(f"\nopen requests to gateways: {state['open_requests']}")
    for finding in state["findings"]:
        print(f"finding: {finding}")


def _process(row: Mapping[str, Any], sessions: Collection[str]) -> dict[str, Any]:
    """A process of the state; `sessions`: names of the processes that have a session."""
    silent = _SILENT if row["name"] in sessions else "ended"
    return {
        **{name: row[name] for name in ("name", "version", "definitions", "slots")},
        "state": _LIVE if row["age_ms"] <= cluster.SILENT_SECONDS * 1000 else silent,
        "roles": row["roles"].split(),
        "accounts": row["accounts"].split(),
        "heartbeat_age_seconds": row["age_ms"] / 1000,
    }


def _accounts(settings: Settings) -> list[str]:
    """Accounts that gateways with these settings hold, as `network:account`."""
    platforms = settings.platforms
    own = {"web:main": platforms.web.page, "http:main": platforms.http.enabled}
    return [*(f"{name}:{each.account}" for name, each in platforms.networks), *(key for key, has in own.items() if has)]
