"""Processes of a cluster, and clients of its gateways over the HTTP API."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from bot.cli.serving import FAULTS_VARIABLE
from tests.conftest import REPOSITORY

_SETTINGS = """\
config_version: 1
engine: cluster
home: {home}
logging: {{folder: {home}/logs-{name}, console: "off", level: warning}}
store: {{url: "{url}"}}
chats: {{allow: ["*"]}}
models: [{{name: stub, model: stub-1, base_url: "{stub}", api_key: none}}]
limits: {{parallel_turns: 24}}
{more}
platforms:
  web: {{page: false, desk: false, port: {port}}}
  http: {{enabled: true, token: {token}}}
"""
TOKEN = secrets.token_hex(16)


class Cluster:
    """Processes on one database, each restarted by `supervise` when it exits."""

    def __init__(self, url: str, home: Path, stub: str, more: str = "") -> None:
        """`stub`: base URL of the model. `more`: further settings of processes that start, as YAML."""
        self.url = url
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.addresses: dict[str, str] = {}
        self.exits: list[str] = []
        """Names of the processes that exited and were started again."""
        self._roles: dict[str, str] = {}
        self.more = more
        self._home = home
        self._stub = stub

    async def start(self, role: str, name: str, faults: str = "") -> str:
        """Start a process; returns its address when it serves. `faults`: plan of fault points, until it is started
        again."""
        self._roles[name] = role
        return await asyncio.to_thread(self._start, name, faults)

    async def stop(self, name: str) -> None:
        """Stop a process as a service manager does."""
        process = self.processes.pop(name)
        process.terminate()
        await asyncio.to_thread(process.wait, 60)

    async def supervise(self) -> None:
        """Start every process again that exits, until cancelled."""
        while True:
            await asyncio.sleep(0.5)
            for name, process in list(self.processes.items()):
                if process.poll() is not None:
                    self.exits.append(name)
                    await asyncio.to_thread(self._start, name)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a process."""
        self.processes[name].send_signal(number)

    def end(self) -> None:
        """Stop all processes."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()

    def gateways(self) -> list[str]:
        """The addresses of all gateways."""
        return [address for name, address in self.addresses.items() if self._roles[name] == "gateway"]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query on the database."""
        with psycopg.connect(self.url, autocommit=True) as database:
            return database.execute(query.encode()).fetchall()

    def _start(self, name: str, faults: str = "") -> str:
        file = self._home / f"{name}.yaml"
        values = {"home": self._home, "name": name, "url": self.url, "stub": self._stub, "more": self.more}
        file.write_text(_SETTINGS.format(**values, port=0, token=TOKEN), encoding="utf-8")
        command = [sys.executable, "-m", "bot", "run", "--config", str(file), "--no-console"]
        command += ["--role", self._roles[name]]
        output = self._home / f"{name}.out"
        with output.open("w", encoding="utf-8") as written:
            environment = {**os.environ, FAULTS_VARIABLE: faults}
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=written, text=True, env=environment)
        self.processes[name] = process
        while process.poll() is None:
            for line in output.read_text(encoding="utf-8").splitlines():
                if "http://" in line:
                    self.addresses[name] = line.split()[-1].partition("/healthz")[0]
                    return self.addresses[name]
            time.sleep(0.02)
        return ""


class Client:
    """Posts messages to whichever gateway accepts them."""

    def __init__(self, session: aiohttp.ClientSession, addresses: Callable[[], Sequence[str]]) -> None:
        self._session = session
        self._addresses = addresses
        self._turn = 0

    async def post(self, chat: str, native_id: str, text: str) -> bool:
        """Post a message; returns whether it was accepted. After a refusal, the next call asks another gateway."""
        body = {
            "id": native_id,
            "sender": {"id": f"u{chat}", "name": "Ann", "role": "member"},
            "text": text,
            "mentions_bot": not text.startswith("/"),
        }
        addresses = self._addresses()
        try:
            url = f"{addresses[self._turn % len(addresses)]}/api/v1/chats/{chat}/messages"
            async with self._session.post(url, json=body) as response:
                await response.read()
                if response.status == 202:
                    return True
        except (aiohttp.ClientError, TimeoutError):
            pass
        self._turn += 1
        return False

    async def post_until_accepted(self, chat: str, native_id: str, text: str) -> None:
        """Post a message, again after each refusal."""
        await until(partial(self.post, chat, native_id, text))

    async def post_all(
        self, messages: Sequence[tuple[str, str, str]], per_second: float = math.inf, at_once: int = 64
    ) -> None:
        """Post the messages (chat, id, text), those of a chat in their order."""
        lines: list[list[tuple[float, tuple[str, str, str]]]] = [[] for _ in range(at_once)]
        began = time.monotonic()
        for number, message in enumerate(messages):
            lines[hash(message[0]) % at_once].append((began + number / per_second, message))

        async def work(line: Sequence[tuple[float, tuple[str, str, str]]]) -> None:
            for at, message in line:
                if (early := at - time.monotonic()) > 0:
                    await asyncio.sleep(early)
                await self.post_until_accepted(*message)

        await asyncio.gather(*map(work, lines))

    async def read(self, chat: str, events: list[int], start: int = 0) -> None:
        """Append the id of each event of `chat` to `events` until cancelled. Begins at the gateway number `start`, and
        continues at the next one after each interruption."""
        for attempt in itertools.count(start):
            addresses = self._addresses()
            url = (
                f"{addresses[attempt % len(addresses)]}/api/v1/chats/{chat}/events?after={events[-1] if events else 0}"
            )
            timeout = aiohttp.ClientTimeout(total=None, sock_read=20, sock_connect=2)
            try:
                async with self._session.get(url, timeout=timeout) as response:
                    async for line in response.content:
                        if line.startswith(b"id: "):
                            events.append(int(line[4:]))
            except (aiohttp.ClientError, TimeoutError):
                pass
            await asyncio.sleep(0.2)


@asynccontextmanager
async def a_client(addresses: Callable[[], Sequence[str]]) -> AsyncIterator[Client]:
    """A client of the gateways at `addresses`."""
    headers, timeout = {"Authorization": f"Bearer {TOKEN}"}, aiohttp.ClientTimeout(total=20)
    connector = aiohttp.TCPConnector(limit=192)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as session:
        yield Client(session, addresses)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 300.0, every: float = 0.05) -> None:
    """Return when `condition` is true. Raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - other processes have no event here
            await asyncio.sleep(every)
