"""Deletion of history: permissions, confirmation, and the deleted data."""

from __future__ import annotations

import asyncio

import pytest

from bot.testing import Group, a_group
from services.llm.model import ModelAnswer, ModelRequest
from services.refs import ChatRef, Role
from services.store.chats.summaries import SUMMARIES
from services.store.turns.audit import AUDIT
from tests.fakes.kept import heard, kept, last_reason

WORK = ChatRef("test", "bot", "work")
SMALL = {"router": {"history_messages": 4}, "memory": {"summarise_after_tokens": 20, "summary_tokens": 50}}


class Summarising:
    """A model that answers `Ok.`, and returns summaries only after `go_on` is set."""

    name = "summarising"

    def __init__(self) -> None:
        self.told: list[str] = []
        self.summarises = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.told.append("\n".join(message.content for message in request.messages))
        if self.told[-1].startswith("Put in short"):
            self.summarises.set()
            await self.go_on.wait()
            return ModelAnswer(text="They spoke of hunter2.", finish="stop")
        return ModelAnswer(text="Ok.", finish="stop")

    async def probe(self) -> str:
        return "summarising"

    async def close(self) -> None:
        return None


async def talk(group: Group) -> None:
    for number in range(10):
        await group.hear("Ann", f"hunter2 number {number} is about many things, all of them long")


@pytest.mark.requirement("D3", "D56")
@pytest.mark.parametrize("command", ["/clearmessages", "/forget history", "/清除历史"])
async def test_a_moderator_lets_the_bot_forget_the_chat_after_a_yes(command: str) -> None:
    model = Summarising()
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group)
        await group.hear("Bo", "of another chat", chat=WORK)
        await group.say("Ann", "@Rollcall hello")
        assert await kept(group, SUMMARIES.c.text) == [("They spoke of hunter2.",)]
        [question] = await group.say("Mia", command, role=Role.MODERATOR)
        assert "can't be undone" in question
        assert len(await heard(group)) > 10
        [reply] = await group.say("Mia", "yes", role=Role.MODERATOR)
        assert "I have forgotten what was said here (15 messages)" in reply
        assert [text for _, text in await heard(group) if "hunter2" in text] == []
        assert ("Bo", "of another chat") in await heard(group)
        assert await kept(group, SUMMARIES.c.text) == []
        assert await kept(group, AUDIT.c.actor, AUDIT.c.chat, AUDIT.c.action, AUDIT.c.detail) == [
            ("test:bot:mia", "test:bot:family", "history.forget", "15 messages")
        ]
        model.told.clear()
        await group.say("Ann", "@Rollcall what do you know?")
        assert "hunter2" not in model.told[0]


async def test_a_member_may_not_and_a_no_changes_nothing() -> None:
    async with a_group() as group:
        await talk(group)
        [refusal] = await group.say("Ann", "/clearmessages")
        assert "moderators" in refusal
        await group.say("Mia", "/clearmessages", role=Role.MODERATOR)
        await group.say("Mia", "no", role=Role.MODERATOR)
        assert sum("hunter2" in text for _, text in await heard(group)) == 10
        assert await kept(group, AUDIT.c.action) == []


async def test_a_summary_that_is_being_made_meanwhile_does_not_bring_back_what_is_forgotten() -> None:
    model = Summarising()
    async with a_group(settings=SMALL, model=model) as group:
        await talk(group)
        model.go_on.clear()
        await group.hear("Ann", "@Rollcall hello")
        await asyncio.wait_for(model.summarises.wait(), 10)
        await group.daemon.settle()
        await group.hear("Mia", "/clearmessages", role=Role.MODERATOR)
        await group.daemon.settle()
        await group.hear("Mia", "yes", role=Role.MODERATOR)
        await group.daemon.settle()
        assert "hunter2" not in str(await heard(group))
        model.go_on.set()
        await group.settle()
        assert await kept(group, SUMMARIES.c.text) == []


async def test_it_is_for_groups_alone() -> None:
    async with a_group() as group:
        [refusal] = await group.say(
            "Ann", "/clearmessages", chat=ChatRef("test", "bot", "ann"), is_group=False, role=Role.OWNER
        )
        assert "only in groups" in refusal
        assert (await last_reason(group))[0] == "refused"
