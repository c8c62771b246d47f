"""Several `rollcall run` processes on one PostgreSQL database."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import orjson

from services.refs import JsonObject
from tests.harness.forked_processes import ForkedProcess, a_forked_process

TOKEN = "a-token-for-the-tests"
PATIENCE_SECONDS = 60.0
_SETTINGS = """\
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
store: {{url: "{url}", lease_seconds: {lease_seconds}}}
models: [{{name: main, model: m, base_url: "{model}", api_key: k, attempts: 1}}]
chats: {{allow: ["http:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0}}
  http: {{enabled: true, token: {token}}}
"""


@dataclass(slots=True)
class LeadingDaemon:
    """The process. `printed` is its output so far."""

    process: ForkedProcess
    settings: Path
    log: Path
    printed: str = ""

    async def says(self, pattern: str) -> re.Match[str]:
        """Wait until a part of its output matches `pattern`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := re.search(pattern, self.printed)) is None:
                line = await self.process.stdout.readline()
                assert line, f"it ended with {await self.process.wait()}: {self.printed}"
                self.printed += line.decode()
        return found

    async def stands_by(self) -> str:
        """Name of the leader, after this daemon has reported that it is in standby."""
        return (await self.says(r"Stands by: +(.+) leads;"))[1]

    async def leads(self) -> Member:
        """A member who can talk to it, after it has become the leader."""
        return Member((await self.says(r"http://127\.0\.0\.1:\d+"))[0])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Exit status."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()

    def events(self) -> list[JsonObject]:
        """Events of its log."""
        return [orjson.loads(line) for line in self.log.read_bytes().splitlines()]


@dataclass(frozen=True, slots=True)
class Member:
    """Ann, a member connected to the leading daemon."""

    address: str

    async def say(self, chat: str, native_id: str, text: str) -> None:
        """Send a message; it is durable on return."""
        body = {"id": native_id, "sender": {"id": "ann", "name": "Ann"}, "text": text, "mentions_bot": True}
        async with self._client() as client:
            answer = await client.post(f"/api/v1/chats/{chat}/messages", json=body)
        assert answer.status_code == 202, answer.text

    async def hears(self, chat: str, count: int) -> list[str]:
        """All messages of the bot in `chat`, after there are `count`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                async with self._client() as client:
                    answer = await client.get(f"/api/v1/chats/{chat}/events?wait=0")
                texts = [event["text"] for event in answer.json()["events"]]
                if len(texts) >= count:
                    return texts
                await asyncio.sleep(0.02)

    def _client(self) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=30, trust_env=False, verify=False)


@asynccontextmanager
async def a_daemon_beside_others(
    home: Path, url: str, model: str, *, lease_seconds: float, more: str = ""
) -> AsyncIterator[LeadingDaemon]:
    """Another daemon on the database at `url`, with a separate home. It is killed at the end if it is still running.
    `more` is added to its settings."""
    home.mkdir(exist_ok=True)
    file = home / "bot.yaml"
    file.write_text(_SETTINGS.format(home=home, url=url, model=model, token=TOKEN, lease_seconds=lease_seconds) + more)
    async with a_forked_process("bot", "run", "--config", str(file), "--no-console") as process:
        yield LeadingDaemon(process, file, home / "logs" / "rollcall.jsonl")
