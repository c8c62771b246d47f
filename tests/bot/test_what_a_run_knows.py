"""Information of a run about its turn, and program identities: conditions that no other test covers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from bot.chats.chats import Chats
from bot.mcp.callers import program
from bot.testing import a_group
from config.sections.mcp import McpClientSettings
from config.settings import Settings
from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from services.refs import Role
from tests.fakes.functions import Recorder


async def test_only_a_run_that_goes_on_from_a_question_is_told_when_it_was_asked_for() -> None:
    told: list[datetime | None] = []

    async def notes(context: MessageContext, arguments: dict[str, Any], call: Call) -> str:
        told.append(call.asked_at)
        return "done"

    plain = Recorder("plain", commands=["plain"], does=notes)
    wipe = Recorder("wipe", commands=["wipe"], confirm="Really wipe?", does=notes)
    async with a_group([plain.spec, wipe.spec]) as group:
        await group.say("Ann", "/plain")
        asked_at = group.clock.now()
        await group.say("Ann", "/wipe")
        await group.clock.advance(5)
        await group.say("Ann", "yes")
        assert told == [None, asked_at]


async def test_what_may_not_be_called_here_is_not_listed_as_a_tool_to_take() -> None:
    act = Recorder("act", activation="on_request", roles="admin")
    async with a_group([act.spec]) as group:
        assert "act" not in "\n".join(await group.say("Ann", "/tools")).split()
        [listed] = await group.say("Bob", "/tools", role=Role.ADMIN)
        assert "act" in listed


@pytest.mark.parametrize(
    ("chat", "allowed", "setting"),
    [(None, [], ""), ("test:bot:family", [], "chats.allow"), ("test:bot:family", ["test:bot:*"], "")],
)
def test_a_program_acts_in_a_chat_of_its_own_and_else_only_where_chats_are_allowed(
    chat: str | None, allowed: list[str], setting: str
) -> None:
    chats = Chats(Settings.model_validate({"chats": {"allow": allowed}}), Texts())
    client = McpClientSettings.model_validate({"name": "tool", "token": "x" * 32, "chat": chat})
    unserved = program(client, chats).unserved(chats)
    assert (unserved[1] if unserved is not None else "") == setting
