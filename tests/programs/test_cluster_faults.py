"""A cluster loses, reorders and doubles nothing when its processes and its database end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import orjson
import psycopg
import pytest

from benchmarks.stub import a_stub
from services.clock import SystemClock
from services.store.ids import Ids
from tests.docs.documents import Page
from tests.harness.cluster import Cluster, a_client, until
from tests.harness.cluster_faults import Load, a_cluster_with_effects, run_with_faults, run_with_update
from tests.harness.irc_servers import free_ports
from tests.harness.nginx import NGINX, nginx
from tests.harness.postgres_server import PostgresServer

_EVENT = """
INSERT INTO http_events (id, chat, native_id, body, private_to)
VALUES (%s, 'http:main:c1', 'bot:1', '{"type": "message", "id": "bot:1", "text": "sunny"}', NULL)
"""
_ALL = Load(messages=10_000, chats=500, reminders=1000, seconds=80, stopped_seconds=60)
_UPDATE = Load(messages=500, chats=40, reminders=50, seconds=15, stopped_seconds=0)
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


async def test_a_rolling_update_loses_reorders_and_doubles_nothing(tmp_path: Path) -> None:
    server = PostgresServer()
    server.start()
    try:
        with a_stub(0.15) as stub:
            audit = await run_with_update(server, tmp_path, stub, _UPDATE)
    finally:
        server.remove()
    assert audit.is_clean, audit
    assert (audit.repeated, audit.unknown, audit.exits) == (0, 0, []), audit


async def test_a_gateway_that_takes_over_continues_after_the_ids_of_an_earlier_one_whose_clock_was_ahead(
    tmp_path: Path,
) -> None:
    server = PostgresServer()
    server.start()
    ahead = Ids(SystemClock(), 9).next() + (60_000 << 22)
    try:
        with a_stub() as stub:
            cluster, _ = a_cluster_with_effects(server, tmp_path, stub)
            try:
                await cluster.start("gateway", "first")
                await cluster.start("gateway", "second")
                with psycopg.connect(server.url, autocommit=True) as database:
                    database.execute(_EVENT, (ahead,))
                await cluster.stop("first")
                async with a_client(cluster.gateways) as client:
                    await client.post_until_accepted("c1", "m1", "/outlook N1")
                    events = [ahead]
                    reading = asyncio.create_task(client.read("c1", events))
                    await until(lambda: _has(events, 2), seconds=20)
                    reading.cancel()
            finally:
                cluster.end()
    finally:
        server.remove()


async def _has(events: list[int], count: int) -> bool:
    return len(events) >= count


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


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
async def test_the_documented_load_balancer_finds_the_gateway_that_takes_over(tmp_path: Path) -> None:
    server = PostgresServer()
    server.start()
    [port] = free_ports(1)
    [documented] = [block.text for block in Page("docs/scaling.md").of("nginx")]
    try:
        with a_stub() as stub:
            cluster, _ = a_cluster_with_effects(server, tmp_path, stub)
            try:
                for name in ("gateway1", "gateway2"):
                    await cluster.start("gateway", name)
                    address = cluster.addresses[name].removeprefix("http://")
                    documented = documented.replace(f"{name}:8080", address)
                balanced = documented.replace("server {", f"server {{ listen 127.0.0.1:{port};", 1)
                async with (
                    nginx(tmp_path, balanced),
                    a_client(lambda: [f"http://127.0.0.1:{port}"]) as client,
                    a_client(lambda: [cluster.addresses["gateway2"]]) as direct,
                ):
                    for number in range(4):
                        assert await client.post("c1", f"m{number}", "/outlook N1")
                    cluster.signal("gateway1", signal.SIGKILL)
                    await direct.post_until_accepted("c1", "taken over", "/outlook N1")
                    for number in range(4, 8):
                        assert await client.post("c1", f"m{number}", "/outlook N1")
            finally:
                cluster.end()
    finally:
        server.remove()
