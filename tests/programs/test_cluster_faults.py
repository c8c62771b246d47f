"""A cluster loses, reorders and doubles nothing when its processes and its database end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import orjson

from benchmarks.stub import a_stub
from tests.harness.cluster import Cluster, a_client, until
from tests.harness.cluster_faults import Load, a_cluster_with_effects, run_with_faults
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


async def _has_answered(cluster: Cluster) -> bool:
    return bool(cluster.rows("SELECT 1 FROM http_events"))


async def test_a_command_that_killed_its_gateway_is_not_run_again(tmp_path: Path) -> None:
    server = PostgresServer()
    server.start()
    try:
        with a_stub() as stub:
            cluster, effects = a_cluster_with_effects(server, tmp_path, stub)
            try:
                await cluster.start("worker", "worker")
                await cluster.start("gateway", "gateway", "tool.after_call_before_result_record:1=kill")
                async with a_client(cluster.gateways) as client:
                    await client.post_until_accepted("c1", "m1", "/outlook N1")
                await asyncio.to_thread(cluster.processes["gateway"].wait, 30)
                await cluster.start("gateway", "gateway")
                await until(lambda: _has_answered(cluster))
                ((answer,),) = cluster.rows("SELECT body FROM http_events")
            finally:
                cluster.end()
    finally:
        server.remove()
    assert effects.read_text(encoding="utf-8") == "c1 N1\n"
    assert "can't tell whether it took effect" in orjson.loads(answer)["text"]
