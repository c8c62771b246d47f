"""`rollcall run` in a separate process, accessed over its HTTP platform."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.harness.forked_processes import ForkedProcess, a_forked_process

REPOSITORY = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-the-tests"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
"""Library that changes the wall clock of a process; None if not installed."""
PATIENCE_SECONDS = 60.0
_SETTINGS = """\
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
models: [{{name: main, model: m, base_url: "{model}", api_key: k, attempts: 1, sees: {sees}}}]
chats: {{allow: ["http:*", "telegram:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0}}
  http: {{enabled: true, token: {token}}}
"""


@dataclass(frozen=True, slots=True)
class RealDaemon:
    """The process."""

    process: ForkedProcess | asyncio.subprocess.Process
    address: str
    log: Path

    async def say(self, chat: str, native_id: str, text: str) -> None:
        """Send the message `text` of a member to the bot; it is durable on return."""
        sender = {"id": "ann", "name": "Ann"}
        await self.posts(chat, {"id": native_id, "sender": sender, "text": text, "mentions_bot": True})

    async def posts(self, chat: str, body: Mapping[str, Any]) -> None:
        """Post `body` as a program; it is durable on return."""
        async with self._client() as client:
            answer = await client.post(f"/api/v1/chats/{chat}/messages", json=dict(body))
        assert answer.status_code == 202, answer.text

    async def answers(self, chats: list[str], count: int) -> Counter[str]:
        """Number of answers by chat, after there are `count` in total."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = Counter({chat: len(await self._events(chat)) for chat in chats})
                if found.total() >= count:
                    return found
                await asyncio.sleep(0.02)

    async def said(self, chat: str, count: int) -> list[str]:
        """Texts of the first `count` answers in `chat`, after there are that many."""
        await self.answers([chat], count)
        return (await self.texts(chat))[:count]

    async def texts(self, chat: str) -> list[str]:
        """Texts of all answers in `chat` so far."""
        return [event["text"] for event in await self._events(chat)]

    async def lets_in(self) -> bool:
        """Whether the API still accepts the tests' token."""
        async with self._client() as client:
            answer = await client.get("/api/v1/chats/family/events?wait=0")
        return answer.status_code == 200

    async def told_to_stop(self) -> None:
        """Send SIGTERM, and wait until it accepts no more connections."""
        self.process.send_signal(signal.SIGTERM)
        host, port = self.address.removeprefix("http://").split(":")
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(OSError):
                while True:
                    _, writer = await asyncio.open_connection(host, int(port))
                    writer.close()
                    await asyncio.sleep(0.02)

    async def ended(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Exit status. Raises TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    async def _events(self, chat: str) -> list[Any]:
        async with self._client() as client:
            answer = await client.get(f"/api/v1/chats/{chat}/events?wait=0")
        return list(answer.json()["events"])

    def _client(self) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=10, trust_env=False, verify=False)


@asynccontextmanager
async def a_real_daemon(
    home: Path, model: str, more: str = "", *, wall_clock: Path | None = None, sees: bool = False
) -> AsyncIterator[RealDaemon]:
    """The daemon with its data in `home` and its language model at `model`. It is killed at the end if it is still
    running. `more` is added to its settings. `wall_clock`: a libfaketime file with the offset of its wall clock, such
    as `-60`. `sees`: the model is shown pictures."""
    file = home / "bot.yaml"
    file.write_text(_SETTINGS.format(home=home, model=model, token=TOKEN, sees=str(sees).lower()) + more)
    command = ("bot", "run", "--config", str(file), "--no-console")
    starting = a_forked_process(*command) if wall_clock is None else _with_wall_clock(wall_clock, *command)
    async with starting as process:
        yield RealDaemon(process, await _address(process), home / "logs" / "rollcall.jsonl")


@asynccontextmanager
async def _with_wall_clock(file: Path, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    # LD_PRELOAD needs a new program, so this process is not forked.
    environment = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *command, cwd=REPOSITORY, env={**os.environ, **environment}, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _address(process: ForkedProcess | asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while line := await process.stdout.readline():
            found = re.search(rb"http://127\.0\.0\.1:\d+", line)
            if found is not None:
                return found[0].decode()
    raise AssertionError(f"it ended with {await process.wait()}")
