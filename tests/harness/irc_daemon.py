"""`rollcall run` in a separate process, connected to an IRC server of the test."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bot.database.opening import DATABASE
from tests.harness.forked_processes import ForkedProcess, a_forked_process
from tests.harness.irc_servers import PATIENCE_SECONDS, IrcServer

REPOSITORY = Path(__file__).resolve().parents[2]
_SETTINGS = """\
config_version: 1
home: {home}
logging: {{folder: {home}/logs, console: "off"}}
store: {{history_per_chat: 100000}}
limits: {{queue_per_chat: 100000}}
sources: {{python: {functions}}}
models: []
chats: {{allow: ["irc:*"]}}
platforms:
  console: {{enabled: "off"}}
  web: {{port: 0, page: false}}
  irc:
    - account: test
      host: 127.0.0.1
      port: {port}
      tls: false
      channels: {channels}
      flood: {{seconds_per_line: {seconds_per_line}}}
      reconnect: {{first_delay_seconds: 0.2, longest_delay_seconds: 0.2}}
"""


@dataclass(frozen=True, slots=True)
class IrcDaemon:
    """The process."""

    home: Path
    process: ForkedProcess
    address: str

    async def told(self, path: str) -> httpx2.Response:
        """Its response to a probe."""
        async with httpx2.AsyncClient(base_url=self.address, timeout=10, trust_env=False, verify=False) as client:
            return await client.get(path)

    async def link(self) -> str:
        """Its status text for the connection."""
        return str((await self.told("/readyz")).json()["details"]["irc.test"])

    async def is_back(self) -> None:
        """Wait until it is in its channels again."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (await self.link()).startswith("connected as Rollcall, in 1 channels"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def settled(self) -> None:
        """Wait until no turn is waiting or running and no message is waiting to be sent."""
        async with asyncio.timeout(90):
            while True:
                details = (await self.told("/readyz")).json()["details"]
                quiet = details["turns_waiting"] == "0" and details["turns_running"] == "0"
                if quiet and not rows(self.home, "SELECT id FROM outbox WHERE state IN ('pending', 'sending')"):
                    return
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """Kill it, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> int:
        """Stop it as an operator does; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS + 20):
            return await self.process.wait()


@asynccontextmanager
async def an_irc_daemon(
    home: Path, server: IrcServer, *channels: str, seconds_per_line: float = 0, functions: Sequence[Path] = ()
) -> AsyncIterator[IrcDaemon]:
    """The daemon with its data in `home`, in `channels` of `server`, with `functions` from these files. It is killed at
    the end if it is still running."""
    file = home / "bot.yaml"
    facts = {
        "home": home,
        "port": server.port,
        "channels": [{"name": name} for name in channels or ("#family",)],
        "seconds_per_line": seconds_per_line,
        "functions": [str(one) for one in functions],
    }
    file.write_text(_SETTINGS.format(**facts))
    async with a_forked_process("bot", "run", "--config", str(file), "--no-console") as process:
        try:
            yield IrcDaemon(home, process, await _address(process))
        except BaseException as error:
            with suppress(OSError):
                error.add_note(f"The daemon's log: {log(home)[-6000:]}")
            raise


def rows(home: Path, question: str) -> list[tuple[Any, ...]]:
    """Result of the query on the database in `home`."""
    with closing(sqlite3.connect(f"file:{home / DATABASE}?mode=ro", uri=True, timeout=10)) as database:
        return database.execute(question).fetchall()


def log(home: Path) -> str:
    """The daemon's log."""
    return (home / "logs" / "rollcall.jsonl").read_text()


async def _address(process: ForkedProcess) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while line := await process.stdout.readline():
            found = re.search(rb"http://127\.0\.0\.1:\d+", line)
            if found is not None:
                return found[0].decode()
    raise AssertionError(f"it ended with {await process.wait()}")
