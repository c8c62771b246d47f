"""Latency of commands in one group while another group is flooded: a real daemon with default settings, over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from statistics import quantiles

from benchmarks.measuring import REPOSITORY, Driver, Effort, Figure, Load, Sample, rounds

_TOKEN = "a-token-for-the-flood"
_SETTINGS = f"""\
config_version: 1
models: []
chats: {{allow: ["http:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0}}
  http: {{enabled: true, token: {_TOKEN}}}
"""
_ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)")
_CONNECTIONS = 64
_PAUSE_SECONDS = 0.12
"""Below the limit of 600 messages per minute that are sent to one chat."""
_MORE_SECONDS = 0.1


class _Connection:
    """A persistent HTTP connection with little overhead per request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int) -> AsyncIterator[_Connection]:
        """A connection to the daemon on `port`."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async def post(self, chat: str, number: str, text: str) -> int:
        """Post the message `text`; returns the status code."""
        facts = {"id": number, "sender": {"id": "ann", "name": "Ann"}, "text": text}
        body = json.dumps(facts).encode()
        self._request("POST", f"/api/v1/chats/{chat}/messages", body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await self._reader.readexactly(int(length[1]))
        return int(head.split(b" ", 2)[1])

    async def listen(self, chat: str, heard: Callable[[bytes], None]) -> None:
        """Pass the lines of the chat's event stream to `heard` until cancelled."""
        self._request("GET", f"/api/v1/chats/{chat}/events?last=1", b"")
        while line := await self._reader.readline():
            heard(line)

    def _request(self, method: str, path: str, body: bytes) -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {_TOKEN}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)


async def flood(load: Load) -> Sample:
    """Post commands to one chat as fast as the daemon accepts them. Returns the number of accepted ones."""
    left, accepted = iter(range(load.count)), 0

    async def say() -> None:
        nonlocal accepted
        async with _Connection.open(int(load.url)) as connection:
            for number in left:
                status = await connection.post("flooded", f"f{number}", "/calc 6*7")
                accepted += status == 202

    await asyncio.gather(*(say() for _ in range(_CONNECTIONS)))
    return {"accepted": accepted}


class _Probe:
    """A member of another group, who sends commands one after the other and waits for each answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._answered = asyncio.Event()
        self._wanted = b""
        self._numbers = count(1)

    async def latencies(self, is_over: Callable[[int], bool]) -> list[float]:
        """Latencies in seconds, until `is_over(number of latencies)`."""
        seconds: list[float] = []
        async with _Connection.open(self._port) as asking, _Connection.open(self._port) as listening:
            stream = asyncio.create_task(listening.listen("quiet", self._hear))
            while not is_over(len(seconds)):
                number = next(self._numbers)
                self._wanted = f"{number}+1 = {number + 1}".encode()
                self._answered.clear()
                began = time.perf_counter()
                await asking.post("quiet", f"q{number}", f"/calc {number}+1")
                async with asyncio.timeout(60):
                    await self._answered.wait()
                seconds.append(time.perf_counter() - began)
                await asyncio.sleep(_PAUSE_SECONDS)
            stream.cancel()
            await asyncio.gather(stream, return_exceptions=True)
        return seconds

    def _hear(self, line: bytes) -> None:
        if self._wanted and self._wanted in line:
            self._answered.set()


async def quiet_group(load: Load) -> Sample:
    """95th percentiles of the quiet group's latency, idle and during the flood, in seconds."""
    # The daemon inherits the affinity and must not share the single core of this process.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with tempfile.TemporaryDirectory(prefix="rollcall-benchmark-") as home:
        settings = Path(home) / "bot.yaml"
        settings.write_text(_SETTINGS, encoding="utf-8")
        environment = {**os.environ, "ROLLCALL_HOME": f"{home}/var", "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-m", "bot", "run", "--config", str(settings), "--no-console"]
        daemon = await asyncio.create_subprocess_exec(
            *command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert daemon.stdout is not None
            address = _ADDRESS.search(await daemon.stdout.readline())
            if address is None:
                raise RuntimeError("the daemon did not start")
            return await _measured(replace(load, url=address[1].decode()))
        finally:
            daemon.terminate()
            await daemon.wait()


async def _measured(load: Load) -> Sample:
    probe = _Probe(int(load.url))
    samples = max(5, load.count // 100)
    await probe.latencies(lambda done: done >= samples // 5)
    idle = await probe.latencies(lambda done: done >= samples)
    command = [sys.executable, "-m", "benchmarks", "--driver", "flood.flood", "--load", json.dumps(asdict(load))]
    flooding = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdout=subprocess.PIPE)
    ended = asyncio.create_task(flooding.communicate())
    flooded = await probe.latencies(lambda done: ended.done() and done >= 5)
    told, _ = await ended
    accepted = json.loads(told)["accepted"]
    return {"idle": quantiles(idle, n=20)[-1], "flooded": quantiles(flooded, n=20)[-1], "accepted": accepted}


DRIVERS: dict[str, Driver] = {"quiet_group": quiet_group, "flood": flood}


def flood_figures(effort: Effort) -> list[Figure]:
    """Latency during the flood. The limit is twice the idle latency, or the idle latency plus 100 ms if that is
    more."""
    samples = rounds({"flood": ("flood.quiet_group", Load(count=effort.count(10_000)))}, effort)["flood"]
    ratios = [one["flooded"] / max(2 * one["idle"], one["idle"] + _MORE_SECONDS) for one in samples]
    what = "95th percentile of a command while another group posts 10,000, against max(2 x idle, idle + 100 ms)"
    return [Figure("flood", what, "ratio", statistics.median(ratios), 1.0)]


FIGURES: dict[str, Callable[[Effort], list[Figure]]] = {"flood": flood_figures}
