"""A cluster loses, reorders and doubles nothing when its processes and its database end."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.stub import a_stub
from tests.harness.cluster_faults import Load, run_with_faults
from tests.harness.postgres_server import PostgresServer

_ALL = Load(messages=10_000, chats=500, reminders=1000, seconds=80, stopped_seconds=60)
_SOME = Load(messages=1200, chats=60, reminders=100, seconds=24, stopped_seconds=24)


async def test_killed_and_stopped_processes_lose_reorder_and_double_nothing(tmp_path: Path) -> None:
    """`ROLLCALL_CLUSTER_FAULTS=all` runs the full size."""
    server = PostgresServer()
    server.start()
    try:
        with a_stub(0.15) as stub:
            load = _ALL if os.environ.get("ROLLCALL_CLUSTER_FAULTS") == "all" else _SOME
            audit = await run_with_faults(server, tmp_path, stub, load)
    finally:
        server.remove()
    assert audit.is_clean, audit
    assert audit.unknown <= load.messages // 50, audit
