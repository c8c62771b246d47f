"""Rapid messages of one member are answered as one turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.base import Accepted
from bot.testing import Group, ScriptedModel, a_group
from config.texts import Texts
from function_calls.context import Attachment, Kind, Quoted
from services.llm.model import ModelAnswer, ModelRequest
from services.llm.offline.offline import OfflineModel
from services.refs import MemberRef
from tests.fakes.functions import Recorder
from tests.fakes.kept import heard, reasons

GATHER: dict[str, Any] = {"limits": {"gather_seconds": 1.5}}
ANNA = MemberRef("test", "bot", "anna")


async def after(group: Group, seconds: float) -> list[str]:
    """Advance the clock; returns all texts that the bot has sent."""
    await group.clock.advance(seconds)
    await group.daemon.engine.idle()
    await group.daemon.delivery.idle()
    return [one.text for one in group.platform.sent]


class Thinking(ScriptedModel):
    """Never answers."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        await asyncio.Event().wait()
        return ModelAnswer()


def asked_text(request: ModelRequest) -> str:
    """The message that the model is asked to answer."""
    return request.messages[-1].content


async def test_messages_that_follow_an_addressed_one_are_answered_with_it() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("All three.")
        await group.hear("Ann", "@Rollcall where do we eat?")
        await group.clock.advance(1)
        await group.hear("Bob", "no idea")
        await group.hear("Ann", "somewhere cheap")
        await group.clock.advance(1)
        await group.hear("Ann", "and near", attachments=(Attachment("https://example.org/map.png", "image/png"),))
        assert await after(group, 1.4) == []
        assert await after(group, 0.2) == ["All three."]
        assert asked_text(group.model.requests[0]).endswith("where do we eat?\nsomewhere cheap\nand near")
        assert [code for code, _ in await reasons(group)] == ["chat", "not_addressed", "gathered", "gathered"]
        assert [text for _, text in await heard(group)] == [
            "where do we eat?", "no idea", "somewhere cheap", "and near\n[picture]", "All three."
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "facts", "reason"),
    [
        ("@anna you know", {}, "not_addressed"),
        ("you know it", {"mentions": (ANNA,)}, "not_addressed"),
        ("yes", {"reply_to": Quoted("m0", "Anna", "hi")}, "not_addressed"),
        ("/note milk", {}, "command"),
        ("", {}, "empty"),
        ("hello", {"is_bot": True}, "from_bot"),
    ],
)
async def test_what_is_for_somebody_else_or_a_command_is_not_gathered(
    text: str, facts: dict[str, Any], reason: str
) -> None:
    note = Recorder("note", {"text": {"type": "string", "required": False}}, commands=["note"], gives="noted")
    async with a_group([note.spec], settings=GATHER) as group:
        group.model.says("Hello.")
        await group.hear("Ann", "@Rollcall hello", id="m1")
        await group.hear("Ann", text, **facts)
        await after(group, 2)
        assert [code for code, _ in await reasons(group)] == ["chat", reason]
        assert asked_text(group.model.requests[0]).endswith("\nhello")


async def test_a_command_waits_for_nobody_and_ends_the_wait_of_its_sender() -> None:
    note = Recorder("note", commands=["note"], gives="noted")
    async with a_group([note.spec], settings=GATHER) as group:
        group.model.says("Hello.")
        assert await group.say("Bob", "/note") == ["noted"]
        await group.hear("Ann", "@Rollcall hello")
        await group.hear("Bob", "/note")
        assert await after(group, 0) == ["noted", "noted"]
        await group.hear("Ann", "/note")
        assert await after(group, 0) == ["noted", "noted", "Hello.", "noted"]


async def test_two_members_are_answered_each_for_their_own_messages() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("One.", "Two.")
        await group.hear("Ann", "@Rollcall what is 1")
        await group.hear("Bob", "@Rollcall what is 2")
        await group.hear("Ann", "of 3")
        await group.hear("Bob", "of 4")
        assert await after(group, 2) == ["One.", "Two."]
        assert [asked_text(one).rpartition("\n---\n")[2] for one in group.model.requests] == [
            "what is 1\nof 3", "what is 2\nof 4"
        ]  # fmt: skip


async def test_a_message_after_the_window_is_a_turn_of_its_own() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("First.", "Second.")
        await group.hear("Ann", "@Rollcall one")
        await after(group, 1.6)
        await group.hear("Ann", "@Rollcall two")
        assert await after(group, 1.6) == ["First.", "Second."]


async def test_a_process_that_dies_in_the_window_answers_all_messages_after_the_start(tmp_path: Path) -> None:
    async with a_group(settings=GATHER, home=tmp_path) as group:
        await group.hear("Ann", "@Rollcall one")
        await group.hear("Ann", "two")
        await group.hear("Ann", "three")
        clock = group.clock
        await group.crash()
    async with a_group(settings=GATHER, home=tmp_path, clock=clock) as group:
        group.model.says("All.")
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["All."]
        assert asked_text(group.model.requests[0]).endswith("one\ntwo\nthree")
        assert [code for code, _ in await reasons(group)] == ["chat", "gathered", "gathered"]


async def test_redelivered_messages_are_gathered_once() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("Good.")
        await group.hear("Ann", "an older message", id="m0")
        for native_id, text in (("m1", "@Rollcall one"), ("m2", "two"), ("m1", "@Rollcall one"), ("m2", "two")):
            await group.hear("Ann", text, id=native_id)
        await group.hear("Ann", "an older message", id="m0")
        assert await after(group, 2) == ["Good."]
        assert asked_text(group.model.requests[0]).endswith("\none\ntwo")
        assert [code for code, _ in await reasons(group)] == ["not_addressed", "chat", "gathered"]


async def test_concurrent_deliveries_are_gathered_once_and_none_is_lost() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("Good.")
        texts = {"m1": "@Rollcall one", "m2": "two", "m3": "three"}
        twice = [group.hear("Ann", texts[id_], id=id_) for id_ in ("m1", "m1", "m2", "m3", "m2", "m3")]
        accepted = await asyncio.gather(*twice)
        assert accepted.count(Accepted.NEW) == 3
        assert await after(group, 2) == ["Good."]
        assert asked_text(group.model.requests[0]).endswith("\none\ntwo\nthree")
        assert [code for code, _ in await reasons(group)] == ["chat", "gathered", "gathered"]


async def test_edits_and_deletions_change_the_gathered_text() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("Good.")
        for native_id, text in (("m1", "@Rollcall one"), ("m2", "two"), ("m3", "three")):
            await group.hear("Ann", text, id=native_id)
        await group.hear("Ann", "@Rollcall ONE", id="m1", kind=Kind.EDIT)
        await group.hear("Ann", "", id="m2", kind=Kind.DELETE)
        await group.hear("Ann", "THREE", id="m3", kind=Kind.EDIT)
        assert await after(group, 2) == ["Good."]
        assert asked_text(group.model.requests[0]).endswith("\nONE\nTHREE")


async def test_a_deleted_first_message_is_not_answered() -> None:
    async with a_group(settings=GATHER) as group:
        await group.hear("Ann", "@Rollcall one", id="m1")
        await group.hear("Ann", "two", id="m2")
        await group.hear("Ann", "", id="m1", kind=Kind.DELETE)
        assert await after(group, 2) == []
        assert [code for code, _ in await reasons(group)] == ["deleted", "gathered", "deleted"]


async def test_stop_ends_a_turn_that_still_waits() -> None:
    async with a_group(settings=GATHER, model=Thinking()) as group:
        await group.hear("Ann", "@Rollcall a long question")
        await group.hear("Ann", "/stop")
        assert await after(group, 0) == ["Stopped."]
        assert [code for code, _ in await reasons(group)] == ["stopped", "silent"]


async def test_messages_of_a_private_chat_are_gathered() -> None:
    async with a_group(settings=GATHER) as group:
        group.model.says("Both.")
        await group.hear("Ann", "one", is_group=False)
        await group.hear("Ann", "two", is_group=False)
        assert await after(group, 2) == ["Both."]


async def test_without_a_model_nothing_waits() -> None:
    async with a_group(settings=GATHER, model=OfflineModel(Texts())) as group:
        await group.hear("Ann", "@Rollcall hello")
        assert len(await after(group, 0)) == 1
