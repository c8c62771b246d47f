"""Turns and messages that end abnormally: effects are reported, and known results are kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import BaseModel
from sqlalchemy import select

from bot.testing import FAMILY, PLATFORM, TestPlatform, a_group, call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult, Message
from services.llm.model import ModelAnswer, ModelRequest, ToolCall
from services.refs import ChatRef
from services.store.port import Statement
from services.store.turns.ledger import LEDGER
from tests.fakes.full_disk import FullDisk
from tests.fakes.held import Held

WORK = ChatRef(PLATFORM, "bot", "work")
_RUNS = Statement("test.runs", select(LEDGER.c.function, LEDGER.c.arguments, LEDGER.c.code, LEDGER.c.result))


class Note(BaseModel, frozen=True):
    text: str
    pin: str = ""


@tool_function(name="note", description="Note something.", commands=("note",), effect="once", sensitive=["pin"])
async def note(context: MessageContext, args: Note) -> FunctionResult:
    return FunctionResult.say(f"Noted {args.text}.")


@tool_function(name="look", description="Look.", commands=("look",))
async def look(context: MessageContext) -> FunctionResult:
    return FunctionResult.say("I looked.")


class CallsThenHangs:
    """A model that calls a function and then hangs."""

    name = "hangs"

    def __init__(self, wanted: ToolCall) -> None:
        self._wanted = [wanted]
        self.hangs = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if self._wanted:
            return ModelAnswer(calls=(self._wanted.pop(),))
        self.hangs.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody waits for ever")

    async def probe(self) -> str:
        return "hangs"

    async def close(self) -> None:
        return None


async def test_what_an_effect_said_is_said_although_the_turn_is_stopped() -> None:
    model = CallsThenHangs(call("note", text="milk"))
    async with a_group([note], model=model) as group:
        await group.hear("Ann", "@Rollcall note milk and tell me more")
        await model.hangs.wait()
        await group.say("Ann", "/stop")
        assert [one.text for one in group.platform.sent] == ["Noted milk.", "Stopped."]


async def test_a_result_that_is_known_is_not_forgotten_while_the_disk_is_full() -> None:
    disk, paid = FullDisk(), asyncio.Event()

    @tool_function(name="pay", description="Pay.", commands=("pay",), effect="once")
    async def pay(context: MessageContext) -> FunctionResult:
        assert not paid.is_set(), "it must run once"
        disk.is_full = True
        paid.set()
        return FunctionResult.say("Paid, receipt 77.")

    async with a_group([pay], around_store=disk.under) as group:
        await group.hear("Ann", "/pay")
        await paid.wait()
        await group.clock.settle()
        assert group.platform.sent == []
        disk.is_full = False
        await group.clock.advance(5)
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["Paid, receipt 77."]


async def test_the_model_sees_what_the_bot_said_while_the_message_waited() -> None:
    async with a_group([note]) as group:
        group.model.says("It was milk.")
        await asyncio.gather(group.hear("Ann", "/note milk"), group.hear("Ann", "@Rollcall what did you just note?"))
        await group.daemon.settle()
        told = [message.content for message in group.model.requests[-1].messages]
        assert "Noted milk." in told


async def test_a_network_that_breaks_its_promise_about_errors_mutes_nobody() -> None:
    network = TestPlatform()
    async with a_group([look], platform=network) as group:
        network.failures.append(KeyError("a bug of the platform"))
        assert await group.say("Ann", "/look") == []
        assert await group.say("Ann", "/look") == ["I looked."]
        assert group.daemon.delivery.failed == 1


@tool_function(name="shout", description="Shout elsewhere.", commands=("shout",))
async def shout(context: MessageContext) -> FunctionResult:
    return FunctionResult(messages=(Message("Hey!", to=WORK), Message("I shouted.")))


async def test_a_message_to_a_chat_that_is_not_served_is_not_sent() -> None:
    async with a_group([shout], settings={"chats": {"allow": [FAMILY.key]}}) as group:
        assert await group.say("Ann", "/shout") == ["I shouted."]


async def test_a_turn_of_a_chat_that_is_no_longer_served_is_not_run_again(tmp_path: Path) -> None:
    held = Held(effect="idempotent")
    async with a_group([held.spec], home=tmp_path) as group:
        await group.hear("Ann", "/hold milk")
        await group.clock.settle()
        await group.crash()
    assert held.begun == ["milk"]
    async with a_group([held.spec], home=tmp_path, settings={"chats": {"allow": ["other:*"]}}) as group:
        await group.settle()
        assert group.platform.sent == []
    assert held.begun == ["milk"]


async def test_the_ledger_hides_what_is_sensitive_and_keeps_no_results_of_reads() -> None:
    async with a_group([note, look]) as group:
        await group.say("Ann", "/note milk pin=4711secret")
        await group.say("Ann", "/look")
        rows = {row["function"]: row for row in await group.daemon.store.read(_RUNS.query())}
    assert rows["note"]["arguments"] == '{"text":"milk","pin":"***"}'
    assert rows["look"]["code"] == "ok"
    assert rows["look"]["result"] is None
