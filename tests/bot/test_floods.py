"""More messages than the queues hold: responses to the sender, and the fate of the messages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.platforms.base import Accepted, Limits, QueueFull
from bot.testing import Group, TestPlatform, a_group
from function_calls.context import Kind, MessageKey
from tests.fakes.held import Held, until
from tests.fakes.kept import reasons
from tests.harness.real_daemon import TOKEN, a_real_daemon

NO_MODEL = "http://127.0.0.1:9"
MESSAGES = 100
QUEUED = 2
RETRYING = Limits(
    text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, choices=True, senders_retry=True
)


HOLD = """
import asyncio
from pathlib import Path
from pydantic import BaseModel
from function_calls.context import MessageContext
from function_calls.declaration import tool_function

class Held(BaseModel, frozen=True):
    number: int

@tool_function(commands=("hold",), effect="read")
async def hold(context: MessageContext, args: Held) -> str:
    "Wait until the file is there."
    while not Path({free!r}).exists():
        await asyncio.sleep(0.01)
    return f"done: {{args.number}}"
"""


async def posted(client: httpx2.AsyncClient, number: int, chats: int) -> httpx2.Response:
    sender = {"id": "ann", "name": "Ann"}
    body = {"id": f"m{number}", "sender": sender, "text": f"/hold {number}", "mentions_bot": True}
    return await client.post(f"/api/v1/chats/c{number % chats}/messages", json=body)


async def flood(client: httpx2.AsyncClient, numbers: Sequence[int], chats: int) -> list[httpx2.Response]:
    return await asyncio.gather(*(posted(client, number, chats) for number in numbers))


@pytest.mark.parametrize(
    ("chats", "limits", "accepted", "status"),
    [
        (4, "{queue_per_chat: 2}", 4 * (1 + 2), 429),
        (50, "{queue_total: 5, parallel_turns: 2}", 2 + 5, 503),
    ],
)
async def test_a_message_that_is_accepted_is_answered_and_any_other_can_be_sent_again(
    tmp_path: Path, chats: int, limits: str, accepted: int, status: int
) -> None:
    function, free = tmp_path / "hold.py", tmp_path / "free"
    function.write_text(HOLD.format(free=str(free)), encoding="utf-8")
    more = f"limits: {limits}\nsources: {{python: ['{function}']}}\n"
    connections = httpx2.Limits(max_connections=50)
    options: dict[str, Any] = {"timeout": 60, "limits": connections, "trust_env": False, "verify": False}
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        a_real_daemon(tmp_path, NO_MODEL, more) as daemon,
        httpx2.AsyncClient(base_url=daemon.address, headers=headers, **options) as client,
    ):
        first = await flood(client, range(MESSAGES), chats)
        assert Counter(answer.status_code for answer in first) == {202: accepted, status: MESSAGES - accepted}
        refused = next(answer for answer in first if answer.status_code == status)
        assert (refused.headers["retry-after"], refused.json()["error"]["code"]) == ("5", "queue_full")
        free.touch()
        left = [number for number, answer in enumerate(first) if answer.status_code == status]
        async with asyncio.timeout(120):
            while left:
                again = await flood(client, left, chats)
                left = [number for number, answer in zip(left, again, strict=True) if answer.status_code != 202]
        names = [f"c{number}" for number in range(chats)]
        texts: Counter[str] = Counter()
        for chat, count in (await daemon.answers(names, MESSAGES)).items():
            texts.update(await daemon.said(chat, count))
        assert texts == Counter(f"done: {number}" for number in range(MESSAGES))


@asynccontextmanager
async def a_channel(held: Held) -> AsyncIterator[Group]:
    """A network whose senders retry, with a queue for two messages."""
    limits = {"limits": {"queue_per_chat": QUEUED}}
    async with a_group([held.spec], platform=TestPlatform(RETRYING), settings=limits) as group:
        yield group


async def post(group: Group, number: int) -> Accepted | None:
    """None if it was not accepted."""
    key = MessageKey(group.chat, f"m{number}", Kind.MESSAGE)
    try:
        return await group.daemon.intake.accept(replace(group.message("Ann", f"/hold {number}"), key=key))
    except QueueFull:
        return None


async def test_what_is_not_accepted_leaves_nothing_but_a_count_and_a_warning() -> None:
    held = Held()
    async with a_channel(held) as group:
        assert [await post(group, number) for number in range(5)] == [Accepted.NEW] * 3 + [None] * 2
        assert len(await reasons(group)) == 3
        assert 'rollcall_messages_dropped_total{reason="queue_full"} 2.0' in group.daemon.metrics.render().decode()
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == [f"done: {number}" for number in range(3)]


async def seen(events: Sequence[object], count: int) -> None:
    """Wait until there are `count` events."""
    await until(lambda: len(events) == count)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.none()), max_size=25))
def test_in_any_order_what_is_accepted_is_answered_once_and_anything_else_can_be_sent_again(
    steps: list[int | None],
) -> None:
    """A number posts that message; None ends the running turn."""

    async def play() -> None:
        held, accepted, ended = Held(), list[int](), 0
        async with a_channel(held) as group:
            for step in steps:
                if step is None:
                    if ended < len(accepted):
                        held.let_go(str(accepted[ended]))
                        ended += 1
                        await seen(group.platform.sent, ended)
                        await seen(held.begun, min(ended + 1, len(accepted)))
                    continue
                is_full = len(accepted) - ended > QUEUED
                told = await post(group, step)
                if step in accepted:
                    assert told is Accepted.DUPLICATE
                else:
                    assert told is (None if is_full else Accepted.NEW)
                    accepted += [] if is_full else [step]
                    await seen(held.begun, min(ended + 1, len(accepted)))
            held.let_go()
            await group.settle()
            assert [one.text for one in group.platform.sent] == [f"done: {number}" for number in accepted]

    asyncio.run(play())
