"""Thousands of lines of real group chat over the HTTP platform of a running daemon."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.harness.forked_processes import a_forked_process

TOKEN = "a-token-of-the-test-suite"
IRC = "F_group_chat/irc_disentanglement_dev.jsonl.gz"
ADDRESSED_EVERY = 50
SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
store: {{history_per_chat: 100000}}
models: []
chats: {{allow: ["http:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0, page: false}}
  http: {{enabled: true, token: {token}}}
"""


class Line(NamedTuple):
    """A message of a group."""

    id: str
    chat: str
    sender: str
    text: str
    addressed: bool


class Running(NamedTuple):
    """A daemon process."""

    connections: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    """Idle connections."""
    pid: int

    async def asked(self, request: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of the response, parsed with few operations: a client library needs more time for ten
        thousand requests than the daemon."""
        reader, writer = connection = await self.connections.get()
        writer.write(
            f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
            answer = await reader.readexactly(int(length.partition(b":")[2]))
        self.connections.put_nowait(connection)
        return int(head.split(b" ", 2)[1]), answer

    def resident_megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@asynccontextmanager
async def a_daemon(home: Path) -> AsyncIterator[Running]:
    config = home / "settings.yaml"
    config.write_text(SETTINGS.format(home=home, token=TOKEN), encoding="utf-8")
    async with a_forked_process("bot", "run", "--config", str(config)) as process:
        async with asyncio.timeout(20):
            printed = ""
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", printed)):
                line = await process.stdout.readline()
                assert line, printed
                printed += line.decode()
        running = Running(asyncio.Queue(), process.pid)
        for _ in range(20):
            running.connections.put_nowait(await asyncio.open_connection("127.0.0.1", int(found[1])))
        yield running
        while not running.connections.empty():
            _, writer = running.connections.get_nowait()
            writer.close()
            await writer.wait_closed()
        process.terminate()
        async with asyncio.timeout(40):
            assert await process.wait() == 0


def irc_lines(file: Path) -> Iterator[Line]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, row in enumerate(map(orjson.loads, lines)):
            chat = re.sub(r"[^a-z0-9-]", "-", row["file"].lower())[-60:]
            yield Line(row["id"], chat, row["sender"] or "*", row["text"], number % ADDRESSED_EVERY == 0)


def made_up_lines(count: int) -> Iterator[Line]:
    words = ["tea", "bus", "rain", "网络", "café", "🙂", "/usr/bin", "todo?", "why not", "roll on"]
    for number in range(count):
        text = " ".join(words[(number * step) % len(words)] for step in range(1, 5))
        yield Line(f"m{number}", f"room-{number % 3}", f"person{number % 9}", text, number % ADDRESSED_EVERY == 0)


async def post(running: Running, line: Line) -> None:
    body: dict[str, Any] = {
        "id": line.id,
        "sender": {"id": line.sender, "name": line.sender},
        "text": line.text or "…",
        "mentions_bot": line.addressed,
    }
    status, answer = await running.asked(f"POST /api/v1/chats/{line.chat}/messages", orjson.dumps(body))
    assert status == 202, (line, answer)


def told(home: Path, question: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(f"file:{home / 'rollcall.sqlite'}?mode=ro", uri=True)
    try:
        return database.execute(question).fetchall()
    finally:
        database.close()


async def run_through(running: Running, lines: list[Line]) -> list[float]:
    """Post `lines` concurrently; returns the resident memory after each fifth of them."""
    megabytes: list[float] = []
    part = max(1, len(lines) // 5)
    for start in range(0, len(lines), part):
        await asyncio.gather(*(post(running, line) for line in lines[start : start + part]))
        megabytes.append(running.resident_megabytes())
    return megabytes


async def settled(running: Running) -> None:
    """Poll until no turn is waiting or running."""
    async with asyncio.timeout(90):
        while True:
            _, answer = await running.asked("GET /readyz")
            details = orjson.loads(answer)["details"]
            if details["turns_waiting"] == "0" and details["turns_running"] == "0":
                return


async def check(home: Path, lines: list[Line]) -> list[float]:
    async with a_daemon(home) as running:
        megabytes = await run_through(running, lines)
        for line in lines[:20]:
            await post(running, line)
        await settled(running)
    kept = dict(told(home, "select native_id, count(*) from history where from_bot = 0 group by chat, native_id"))
    assert set(kept) == {line.id for line in lines}
    assert set(kept.values()) == {1}
    answered = told(home, "select native_id from inbox where reason not in ('not_addressed', 'unknown_command')")
    assert {native_id for (native_id,) in answered} == {line.id for line in lines if line.addressed}
    replies = told(home, "select count(*), count(distinct turn_id) from outbox where state = 'sent'")
    addressed = sum(line.addressed for line in lines)
    assert replies[0][1] == addressed
    return megabytes


async def test_every_line_is_kept_once_and_only_addressed_ones_are_answered(tmp_path: Path) -> None:
    await check(tmp_path, list(made_up_lines(600)))


async def test_four_thousand_lines_of_irc_leave_memory_flat(tmp_path: Path, data: Callable[[str], Path]) -> None:
    lines = list(irc_lines(data(IRC)))[:4_000]
    megabytes = await check(tmp_path, lines)
    # The first fifth fills caches; afterwards memory must not grow with the number of messages.
    assert megabytes[-1] - megabytes[0] < 4, megabytes
