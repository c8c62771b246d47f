"""A turn starts after its message is committed, and leaves nothing behind if the message was not accepted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.base import Accepted
from bot.testing import Group, a_group
from function_calls.context import Kind, Quoted
from function_calls.spec import FunctionResult
from services.refs import Role
from services.store.port import BadUnit, StoreFull
from services.store.turns.inbox import INBOX
from services.store.turns.ledger import LEDGER
from tests.bot.basic_group import a_group_with
from tests.fakes.full_disk import FullDisk
from tests.fakes.functions import Recorder
from tests.fakes.held import Held
from tests.fakes.kept import heard, kept
from tests.fakes.slow_commit import SlowCommit


async def while_written(group: Group, slow: SlowCommit, text: str) -> asyncio.Task[Accepted]:
    """Deliver `text`, and let everything else happen before its commit completes."""
    arriving = asyncio.create_task(group.hear("Ann", text, id="x1"))
    await slow.holds_a_commit()
    for _ in range(50):
        await asyncio.sleep(0)
    return arriving


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_a_run_waits_until_its_message_is_written(effect: str) -> None:
    function, slow = Recorder("act", commands=["act"], effect=effect), SlowCommit()
    async with a_group([function.spec], around_store=slow.under) as group:
        arriving = await while_written(group, slow, "/act")
        assert function.runs == []
        slow.let_go()
        assert await arriving is Accepted.NEW
        await group.settle()
        assert len(function.runs) == 1
        assert [one.text for one in group.platform.sent] == ["done"]


async def test_no_model_is_asked_before_the_message_is_written() -> None:
    slow = SlowCommit()
    async with a_group(around_store=slow.under) as group:
        group.model.says("In words, then.")
        arriving = await while_written(group, slow, "@Rollcall hello")
        assert group.model.requests == []
        slow.let_go()
        await arriving
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["In words, then."]


async def test_a_read_of_the_store_finds_its_own_message() -> None:
    async with a_group() as group:
        assert "• Ann: admin" in (await group.say("Ann", "/roles", role=Role.ADMIN))[0]


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_nothing_remains_of_a_turn_whose_message_was_known(effect: str, tmp_path: Path) -> None:
    function = Recorder("act", commands=["act"], effect=effect)
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.say("Ann", "/act", id="x1") == ["done"]
    async with a_group([function.spec], home=tmp_path) as group:
        assert await group.hear("Ann", "/act", id="x1") is Accepted.DUPLICATE
        await group.settle()
        assert group.platform.sent == []
        assert len(await kept(group, INBOX.c.id)) == 1
        assert len(await kept(group, LEDGER.c.key)) == 1
        assert await heard(group) == [("Ann", "/act"), ("Rollcall", "done")]
    assert len(function.runs) == 1


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_a_message_that_found_no_room_is_answered_once_when_it_comes_again(effect: str) -> None:
    function, disk = Recorder("act", commands=["act"], effect=effect), FullDisk()
    async with a_group([function.spec], around_store=disk.under) as group:
        disk.is_full = True
        for _ in range(3):
            with pytest.raises(StoreFull):
                await group.hear("Ann", "/act", id="x1")
        await group.settle()
        assert group.platform.sent == []
        assert function.runs == []
        disk.is_full = False
        assert await group.hear("Ann", "/act", id="x1") is Accepted.NEW
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done"]
    assert len(function.runs) == 1


async def test_a_message_whose_acknowledgement_was_cut_off_is_answered_after_a_restart(tmp_path: Path) -> None:
    function, slow = Recorder("act", commands=["act"]), SlowCommit()
    async with a_group([function.spec], around_store=slow.under, home=tmp_path) as group:
        arriving = await while_written(group, slow, "/act")
        arriving.cancel()
        await asyncio.wait([arriving])
        slow.let_go()
        await group.settle()
    async with a_group([function.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done"]
    assert len(function.runs) == 1


async def test_a_message_that_is_taken_back_while_its_command_runs_is_answered_and_gone_from_the_past() -> None:
    held = Held()
    async with a_group([held.spec]) as group:
        await group.hear("Ann", "/hold it", id="x1")
        await held.has_begun("it")
        await group.hear("Ann", "", id="x1", kind=Kind.DELETE)
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]
        assert await heard(group) == [("Ann", ""), ("Rollcall", "done: it")]


async def test_a_second_command_of_the_chat_waits_for_the_first() -> None:
    held, slow = Held(), SlowCommit()
    async with a_group([held.spec], around_store=slow.under) as group:
        first = await while_written(group, slow, "/hold first")
        second = asyncio.create_task(group.hear("Bob", "/hold second"))
        for _ in range(50):
            await asyncio.sleep(0)
        slow.let_go()
        await first
        await second
        assert held.begun == ["first"]
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: first", "done: second"]


@pytest.mark.parametrize("effect", ["read", "once"])
async def test_a_command_does_not_overtake_what_the_chat_heard_before(effect: str) -> None:
    slow = SlowCommit()
    first = Recorder("first", gives="first", commands=["first"], effect="idempotent")
    second = Recorder("second", gives="second", commands=["second"], effect=effect)
    async with a_group([first.spec, second.spec], around_store=slow.under) as group:
        earlier = await while_written(group, slow, "/first")
        later = asyncio.create_task(group.hear("Bob", "/second"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert second.runs == []
        slow.let_go()
        await asyncio.gather(earlier, later)
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["first", "second"]


async def test_a_message_that_was_known_begins_no_chat(tmp_path: Path) -> None:
    function = Recorder("act", commands=["act"])
    home = tmp_path / "home"
    home.mkdir()
    async with a_group([function.spec], home=home) as group:
        await group.say("Ann", "/act", id="x1")
    async with a_group_with(tmp_path, functions=[function.spec], start='TALK "Welcome"', home=home) as group:
        assert await group.hear("Ann", "/act", id="x1") is Accepted.DUPLICATE
        await group.settle()
        assert await group.say("Ann", "/act", id="x2") == ["Welcome", "done"]


async def test_what_passes_to_a_model_is_told_with_the_thread_that_its_message_belongs_to() -> None:
    settings = {"chats": {"allow": ["*"], "settings": {"*": {"context_scope": "thread"}}}}
    gives = FunctionResult(handled=False)
    passes = Recorder("passes", gives=gives, commands=["passes"])
    async with a_group([passes.spec], settings=settings) as group:
        group.model.says("Tea it is.", "Because.")
        await group.say("Ann", "@Rollcall what do I like?")
        quoted = Quoted(f"sent-{group.platform.sent[0].key}", "Rollcall", "", from_bot=True)
        await group.say("Bob", "/passes", reply_to=quoted)
        told = "\n".join(message.content for message in group.model.requests[-1].messages)
        assert "what do I like?" in told
        assert "Tea it is." in told


async def test_what_a_turn_remembers_is_not_changed_by_a_message_that_was_known() -> None:
    async def counts(context: object, arguments: object, call: Any) -> str:
        call.state["runs"] = call.state.get("runs", 0) + 1
        return f"{call.state['runs']}"

    function = Recorder("count", does=counts, commands=["count"])
    async with a_group([function.spec], settings={"filters": {"turn": [{"memory": {"minutes": 10}}]}}) as group:
        assert await group.say("Ann", "/count", id="x1") == ["1"]
        assert await group.hear("Ann", "/count", id="x1") is Accepted.DUPLICATE
        await group.settle()
        assert await group.say("Ann", "/count", id="x2") == ["2"]


async def test_a_message_that_was_known_does_not_count_against_a_limit() -> None:
    function = Recorder("act", commands=["act"])
    settings = {"filters": {"call": [{"limits": {"calls_per_minute": 2}}]}}
    async with a_group([function.spec], settings=settings) as group:
        assert await group.say("Ann", "/act", id="x1") == ["done"]
        assert await group.hear("Ann", "/act", id="x1") is Accepted.DUPLICATE
        await group.settle()
        assert await group.say("Ann", "/act", id="x2") == ["done"]


async def test_a_message_that_the_store_cannot_hold_ends_nothing_else() -> None:
    function = Recorder("act", commands=["act"])
    async with a_group([function.spec]) as group:
        failed = asyncio.create_task(group.daemon.engine.failed())
        await asyncio.sleep(0)
        with pytest.raises((BadUnit, TypeError)):
            await group.hear("Ann", "/act", id="x\ud800")
        await group.settle()
        assert not failed.done()
        failed.cancel()
        assert await group.say("Ann", "/act") == ["done"]


async def test_two_copies_that_come_at_once_are_answered_once() -> None:
    function, slow = Recorder("act", commands=["act"], effect="once"), SlowCommit()
    async with a_group([function.spec], around_store=slow.under) as group:
        arriving = await while_written(group, slow, "/act")
        again = asyncio.create_task(group.hear("Ann", "/act", id="x1"))
        for _ in range(50):
            await asyncio.sleep(0)
        slow.let_go()
        assert [await arriving, await again] == [Accepted.NEW, Accepted.DUPLICATE]
        await group.settle()
        assert len(function.runs) == 1
        assert [one.text for one in group.platform.sent] == ["done"]


async def test_a_command_that_is_written_while_the_daemon_stops_is_run_at_the_next_start(tmp_path: Path) -> None:
    held, slow = Held(), SlowCommit()
    async with a_group([held.spec], around_store=slow.under, home=tmp_path) as group:
        arriving = await while_written(group, slow, "/hold it")
        await group.daemon.engine.drain(0)
        slow.let_go()
        assert await arriving is Accepted.NEW
    held.let_go()
    async with a_group([held.spec], home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]
