"""Gateway of satori-python-server, and the members of a network behind it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any

from bot.platforms.contract import WAIT_SECONDS, Failure, Shown
from services.refs import Role
from tests.harness.foreign import python_of
from tests.harness.irc_servers import free_ports

TOKEN = "satori-token-of-tests"
PLATFORM = "tests"
_PROGRAM = Path(__file__).resolve().parents[1] / "foreign" / "satori_gateway.py"
_ROLES = {Role.OWNER: ["owner"], Role.ADMIN: ["4", "admin"], Role.MODERATOR: ["moderator"], Role.MEMBER: ["4"]}


class SatoriGateway:
    """The server, in its own process and environment. Each test has its own network in it."""

    def __init__(self) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}/satori"
        command = [str(python_of("satori")), str(_PROGRAM), str(port), TOKEN]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._numbers = itertools.count(1)
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.02)
        raise TimeoutError("the server does not listen")

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    async def a_network(self) -> Family:
        """A new network."""
        family = Family(self, f"bot{next(self._numbers)}")
        await family.do("open")
        return family

    async def do(self, **command: Any) -> Any:
        """Have the program execute a command; returns its result."""
        return await asyncio.to_thread(self._do, command)

    def _do(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        while not (line := self._process.stdout.readline()).startswith("{"):
            assert line, "the program has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer
        return answer["result"]


class Family:
    """The other side of one account."""

    def __init__(self, gateway: SatoriGateway, account: str) -> None:
        self.gateway = gateway
        self.account = account
        self.chat = f"guild-family-{account}/family-{account}"
        """Native id of the group."""

    async def do(self, kind: str, **facts: Any) -> Any:
        """Execute a command on this network; returns its result."""
        return await self.gateway.do(do=kind, account=self.account, **facts)

    async def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "",
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
        raw: str = "",
    ) -> str:
        """`raw`: content in place of all else."""
        encoded = None if file is None else [file[0], b64encode(file[1]).decode()]
        facts = {"chat": chat.rpartition("/")[2], "mention": mention, "reply_to": reply_to, "file": encoded, "raw": raw}
        return str(await self.do("say", who=who, text=text, **facts))

    async def edit(self, who: str, native_id: str, text: str) -> None:
        await self.do("edit", who=who, native_id=native_id, text=text)

    async def delete(self, who: str, native_id: str) -> None:
        await self.do("delete", who=who, native_id=native_id)

    async def react(self, who: str, native_id: str, emoji: str) -> None:
        await self.do("react", who=who, native_id=native_id, emoji=emoji)

    async def press(self, who: str, native_id: str, label: str) -> None:
        await self.do("press", who=who, native_id=native_id, label=label)

    async def enter(self, who: str) -> None:
        await self.do("enter", who=who)

    async def leave(self, who: str) -> None:
        await self.do("leave", who=who)

    async def add_bot(self, who: str) -> str:
        return str(await self.do("add_bot", who=who))

    async def promote(self, who: str, role: Role) -> None:
        await self.do("promote", who=who, roles=_ROLES[role])

    async def repeat(self) -> None:
        await self.do("repeat")

    async def send_garbage(self) -> None:
        login = {"platform": PLATFORM, "user": {"id": self.account}}
        for frame in (
            "no JSON",
            [1],
            {"op": 0, "body": {"type": "message-created", "login": login, "user": {"id": "ann"}}},
        ):
            await self.do("frame", frame=frame)

    async def disconnect(self) -> None:
        await self.do("disconnect")

    async def fail_next(self, failure: Failure) -> None:
        await self.do("fail_next", failure=failure.value)

    async def open_thread(self, who: str, text: str) -> str:
        raise NotImplementedError

    async def shown(self, chat: str = "") -> list[Shown]:
        return [
            Shown(
                one["text"],
                one["native_id"],
                tuple(one["buttons"]),
                one["reply_to"],
                tuple(b64decode(content) for content in one["files"]),
            )
            for one in await self.do("shown", chat=chat.rpartition("/")[2])
        ]

    async def reactions(self, native_id: str) -> list[str]:
        return list(await self.do("reactions", native_id=native_id))
