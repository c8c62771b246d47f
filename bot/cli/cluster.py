"""`rollcall cluster status`: processes, accounts and jobs of a cluster, read next to the running processes."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from bot.cli.options import add_config, on_settings, table
from bot.database.opening import reader_of
from config.diagnostics import Diagnostic
from config.settings import Settings
from services.refs import JsonObject
from services.store.postgres import cluster
from services.store.reader import ReaderError
from services.store.turns.cluster import ProcessRole

_LIVE, _SILENT = "live", "silent"
_STATES = {"todo": "waiting", "doing": "running", "failed": "failed"}


class ClusterState(NamedTuple):
    """Rows of the database, and problems."""

    processes: Sequence[Mapping[str, Any]]
    """With `state`: live; silent without a heartbeat, so that it loses its accounts; or ended without saying so."""
    jobs: Sequence[Mapping[str, Any]]
    requests: int
    """Requests to holders of accounts that nobody has claimed."""
    not_held: Sequence[str]
    """Accounts of the settings that no process holds."""
    findings: Sequence[str]

    def as_json(self) -> JsonObject:
        """The state as JSON data, with the age of heartbeats in seconds."""
        live = _queues(self.processes)
        return {
            "processes": [
                {
                    **{name: row[name] for name in ("name", "state", "version", "definitions", "slots")},
                    "roles": row["roles"].split(),
                    "accounts": row["accounts"].split(),
                    "heartbeat_age_seconds": row["age_ms"] / 1000,
                }
                for row in self.processes
            ],
            "jobs": [
                {
                    "queue": row["queue_name"],
                    "state": _STATES[row["status"]],
                    "count": row["jobs"],
                    "served": row["queue_name"] in live,
                }
                for row in self.jobs
            ],
            "open_requests": self.requests,
            "accounts_not_held": [*self.not_held],
            "findings": [*self.findings],
        }


def read_state(settings: Settings) -> ClusterState:
    """State of the cluster of the settings. Raises ReaderError."""
    with reader_of(settings) as database:
        # Imported here: needs the driver.
        from services.store.postgres.locks import HOLDERS, SHARED

        sessions = {row["holder"] for row in database.rows(HOLDERS.query(name=SHARED.name))}
        processes = [{**row, "state": _state_of(row, sessions)} for row in database.rows(cluster.ALIVE)]
        jobs = database.rows(cluster.BACKLOG)
        failed, requests = database.rows(cluster.FAILED), database.rows(cluster.OPEN_REQUESTS)
    held = {account for row in processes if row["state"] == _LIVE for account in row["accounts"].split()}
    not_held = [account for account in _accounts(settings) if account not in held]
    findings = [
        f"{row['name']} is silent: its last heartbeat was {row['age_ms'] / 1000:.0f} s ago"
        for row in processes
        if row["state"] == _SILENT
    ]
    findings += [f"no process holds {account}; a gateway with these settings takes it" for account in not_held]
    live = _queues(processes)
    if not live:
        findings.append("there is no live worker; start one with `rollcall run --role worker`")
    waiting = Counter[str]()
    for row in jobs:
        if row["status"] != "failed" and row["queue_name"] not in live:
            waiting[row["queue_name"]] += row["jobs"]
    findings += [
        f"jobs of the definitions {name}, which no live worker has: {count}" for name, count in waiting.items()
    ]
    findings += [
        f"the job of turn {row['turn']} in {row['chat']} failed: see `job_failed` in the logs of the workers, "
        f"and `rollcall why {row['chat']}`"
        for row in failed
    ]
    return ClusterState(processes, jobs, len(requests), not_held, findings)


def check_cluster(settings: Settings) -> Diagnostic | str:
    """Check of the cluster for `doctor`."""
    try:
        state = read_state(settings)
    except ReaderError as error:
        return Diagnostic("engine", 1, 1, "cluster.unreadable", str(error), "warning")
    roles = Counter(role for row in state.processes if row["state"] == _LIVE for role in row["roles"].split())
    text = f"live gateways: {roles[ProcessRole.GATEWAY]}, live workers: {roles[ProcessRole.WORKER]}"
    if not state.findings:
        return text
    return Diagnostic("engine", 1, 1, "cluster.findings", "; ".join([text, *state.findings]), "warning")


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
        print(json.dumps(state.as_json(), ensure_ascii=False))
    else:
        _print(state)
    return 1 if state.findings else 0


def _print(state: ClusterState) -> None:
    processes = [
        (
            row["name"],
            row["roles"],
            row["accounts"] or "-",
            row["version"],
            row["definitions"],
            str(row["slots"]),
            f"{row['age_ms'] / 1000:.0f} s ago",
            row["state"],
        )
        for row in state.processes
    ]
    print(table(("process", "roles", "accounts", "version", "definitions", "slots", "heartbeat", "state"), processes))
    if state.jobs:
        jobs = [(row["queue_name"], _STATES[row["status"]], str(row["jobs"])) for row in state.jobs]
        print("\n" + table(("jobs for definitions", "state", "number"), jobs))
    print(f"\nopen requests to gateways: {state.requests}")
    for finding in state.findings:
        print(f"finding: {finding}")


def _queues(processes: Sequence[Mapping[str, Any]]) -> set[str]:
    """Definitions of the live workers."""
    return {row["definitions"] for row in processes if row["slots"] and row["state"] == _LIVE}


def _state_of(process: Mapping[str, Any], sessions: Collection[str]) -> str:
    if process["age_ms"] <= cluster.SILENT_SECONDS * 1000:
        return _LIVE
    return _SILENT if process["name"] in sessions else "ended"


def _accounts(settings: Settings) -> list[str]:
    """Accounts that gateways with these settings hold, as `network:account`."""
    platforms = settings.platforms
    own = {"web:main": platforms.web.page, "http:main": platforms.http.enabled}
    return [*(f"{name}:{each.account}" for name, each in platforms.networks), *(key for key, has in own.items() if has)]
