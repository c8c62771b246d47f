"""Tables of a cluster: its processes, and requests between them. Statements: `services/store/postgres/cluster.py`."""

from __future__ import annotations

from enum import StrEnum

from services.store.schema import integer, table, text


class ProcessRole(StrEnum):
    """Work of a process in a cluster."""

    GATEWAY = "gateway"
    WORKER = "worker"
    ALL = "all"


PROCESSES = table(
    "cluster_processes",
    text("name", primary_key=True),
    text("roles"),
    text("accounts"),
    text("definitions"),
    text("version"),
    integer("slots"),
    integer("started_ms"),
    integer("seen_ms"),
)
REQUESTS = table(
    "cluster_requests",
    integer("id", primary_key=True),
    text("account"),
    text("method"),
    text("body"),
    integer("until_ms"),
    text("state"),
    text("answer"),
)
