"""Files are created, edited, broken, repaired and deleted while twenty chats are active: no turn fails, and each change
applies within seconds. A new kind of source needs an entry in EDITED of edited_sources.py."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import httpx2
import pytest

from tests.harness.real_daemon import TOKEN, RealDaemon, a_real_daemon
from tests.scale.edited_sources import EDITED, Edited, Seen

CHATS = 20
LIVE_WITHIN_SECONDS = 10.0
"""A generous limit for a busy machine; actual times are printed."""
STEADY = '''
from pydantic import BaseModel
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

class Said(BaseModel, frozen=True):
    """What was said."""
    number: int

@tool_function(commands=("steady",), effect="read")
async def steady(context: MessageContext, args: Said) -> str:
    """Say a number again."""
    return f"steady {args.number}"
'''
SETTINGS = """\
sources: {{python: [{home}/tools], commands: [{home}/commands], basic: [{home}/scripts]}}
"""


class Chat:
    """A chat with the daemon that sends one message at a time."""

    def __init__(self, client: httpx2.AsyncClient, name: str) -> None:
        self._client = client
        self._path = f"/api/v1/chats/{name}"
        self._numbers = itertools.count()
        self._cursor = "0"

    async def ask(self, text: str) -> str:
        """The bot's answer to `text`."""
        body = {"id": f"m{next(self._numbers)}", "sender": {"id": "ann", "name": "Ann"}, "text": text}
        answer = await self._client.post(f"{self._path}/messages", json={**body, "mentions_bot": True})
        assert answer.status_code == 202, answer.text
        async with asyncio.timeout(20):
            while True:
                found = (await self._client.get(f"{self._path}/events?after={self._cursor}&wait=10")).json()
                self._cursor = found["cursor"]
                if found["events"]:
                    return str(found["events"][-1]["text"])


class Talk:
    """Chats that are active all the time."""

    def __init__(self) -> None:
        self.answers = 0
        self.failures: list[str] = []
        self._is_over = False

    async def of(self, chat: Chat) -> None:
        """Talk until the end, and record wrong answers."""
        number = 0
        while not self._is_over:
            number += 1
            answer = await chat.ask(f"/steady {number}")
            self.answers += 1
            if answer != f"steady {number}":
                self.failures.append(answer)
            await asyncio.sleep(0.1)

    def end(self) -> None:
        """Stop after the current messages are answered."""
        self._is_over = True


async def seconds_until(seen: Seen, chat: Chat, client: httpx2.AsyncClient, edited: Edited) -> float:
    """Seconds until the state is as in `seen`."""
    began = time.monotonic()
    answer, said = "", ""
    while time.monotonic() - began < LIVE_WITHIN_SECONDS:
        said = (await client.get("/readyz")).json()["details"][edited.ready]
        if seen.place in said if seen.place else said == "ok":
            answer = await chat.ask(seen.ask or edited.ask)
            if answer.startswith(seen.says):
                return time.monotonic() - began
        await asyncio.sleep(0.02)
    raise AssertionError(f"{edited.name}: {seen} was not to be seen, but {answer!r} and {said!r}")


@pytest.mark.requirement("A63", "D67")
async def test_no_turn_fails_and_every_change_counts_at_once_while_twenty_chats_talk(tmp_path: Path) -> None:
    for folder in ("tools", "commands", "scripts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools" / "steady.py").write_text(STEADY)
    took: dict[str, float] = {}
    async with (
        a_real_daemon(tmp_path, "http://127.0.0.1:9/v1", SETTINGS.format(home=tmp_path)) as daemon,
        a_client(daemon) as client,
        asyncio.TaskGroup() as tasks,
    ):
        talk = Talk()
        for number in range(CHATS):
            tasks.create_task(talk.of(Chat(client, f"chat{number}")))
        watching = Chat(client, "dm-ann")
        for make in EDITED:
            edited = make(tmp_path)
            for seen in edited.changes():
                took[f"{edited.name} {seen.change}"] = await seconds_until(seen, watching, client, edited)
        talk.end()
    milliseconds = {name: round(1000 * one) for name, one in took.items()}
    print(f"\n{talk.answers} answers; live after ms: {milliseconds}")  # noqa: T201 - the result of a run
    assert len(took) == 5 * len(EDITED)
    assert talk.failures == []
    assert talk.answers > CHATS * len(EDITED)


def a_client(daemon: RealDaemon) -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {TOKEN}"}
    limits = httpx2.Limits(max_connections=CHATS + 5)
    return httpx2.AsyncClient(
        base_url=daemon.address, headers=headers, limits=limits, timeout=30, trust_env=False, verify=False
    )
