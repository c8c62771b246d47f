"""Turns that are given up or end with an apology: their effects are reported, and reminders are still sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest

from bot.testing import a_group, call
from config.texts import Texts
from function_calls.filters.call import Invocation, Proceed
from function_calls.spec import FunctionResult, Message
from services.clock import VirtualClock
from services.llm.model import ModelAnswer, ModelRequest, ToolCall
from services.refs import MemberRef
from services.store.port import Query, Row, Store, StoreBroken, Write
from tests.fakes.drafts import ANN, later
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import reasons
from tests.fakes.picky_store import PickyStore
from tests.fakes.timers import ask

EN = Texts().of("en")


class Hanging:
    """A model that makes one call and then hangs."""

    name = "hanging"

    def __init__(self, asks: ToolCall) -> None:
        self.hangs = asyncio.Event()
        self._asks: list[ToolCall] = [asks]

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if self._asks:
            return ModelAnswer(calls=(self._asks.pop(),), finish="tool_calls")
        self.hangs.set()
        return await asyncio.Future()

    async def probe(self) -> str:
        return self.name

    async def close(self) -> None:
        return None


class WithoutHistory:
    """A store that fails to read history with an unexpected error."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, writes: Sequence[Write]) -> Awaitable[list[int]]:
        return self._store.commit(writes)

    def post(self, writes: Sequence[Write]) -> None:
        self._store.post(writes)

    async def read(self, query: Query) -> list[Row]:
        if query.statement.name.startswith("history.recent"):
            raise RuntimeError("history is gone")
        return await self._store.read(query)

    @property
    def broken(self) -> StoreBroken | None:
        return self._store.broken

    async def close(self) -> None:
        await self._store.close()


@pytest.mark.requirement("D41")
@pytest.mark.parametrize("private_to", [None, ANN])
async def test_a_reminder_that_was_interrupted_too_often_is_said_to_whom_it_is_for(
    tmp_path: Path, private_to: MemberRef | None
) -> None:
    reached: list[str] = []

    async def hangs(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        reached.append(invocation.spec.name)
        return await asyncio.Future()

    clock, due = VirtualClock(), {"function": "remind", "members": ((ANN, "Ann"),), "private_to": private_to}
    for attempt in range(1, 4):
        async with a_group(home=tmp_path, clock=clock, filters=[hangs]) as group:
            if attempt == 1:
                await ask(group, "call @everyone", later(clock.now(), seconds=5), **due)
                await clock.advance(6)
                await group.daemon.timers.tick()
            await until(lambda wanted=attempt: reached.count("remind") == wanted)  # type: ignore[misc]
            await group.crash()
    async with a_group(home=tmp_path, clock=clock, filters=[hangs]) as group:
        await group.settle()
        [sent] = group.platform.sent
        assert sent.text == "⏰ Ann: call ＠everyone"
        assert (sent.mentions, sent.private_to) == ((ANN,), private_to)
        assert await reasons(group) == [("timer", "remind")]
    assert reached == ["remind"] * 3


async def test_an_apology_says_what_an_earlier_attempt_did(tmp_path: Path) -> None:
    pay, model = Recorder("pay", gives="Paid.", effect="once"), Hanging(call("pay"))
    async with a_group([pay.spec], home=tmp_path, model=model) as group:
        await group.hear("Ann", "@Rollcall pay")
        await model.hangs.wait()
        await group.crash()
    async with a_group([pay.spec], home=tmp_path, around_store=WithoutHistory) as group:
        await group.settle()
        [(reason, id_)] = await reasons(group)
        assert reason == "function_failed"
        assert [one.text for one in group.platform.sent] == ["Paid.", EN.say("failures.turn", id=id_)]
    assert len(pay.runs) == 1


async def test_an_apology_says_in_private_what_was_said_in_private() -> None:
    picky = PickyStore("poison")
    sent = FunctionResult(messages=(Message("Your code is 7.", to=ANN),), data="poison")
    send = Recorder("send", commands=["send"], effect="once", gives=sent)
    async with a_group([send.spec], around_store=picky.under) as group:
        await group.say("Ann", "/send")
        assert [one.private_to for one in group.platform.sent] == [ANN, None]
