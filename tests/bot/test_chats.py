"""Settings of a chat, changes by the chat itself, and rights."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from bot.testing import FAMILY, Group, a_group, call
from config.texts import Texts
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from function_calls.ports import Members
from services.refs import ChatRef, MemberRef, Role
from services.store.chats import chat_settings
from services.store.turns import audit
from tests.fakes.functions import Recorder
from tests.fakes.kept import last_reason

WORK = ChatRef("test", "bot", "work")
EN = Texts().of("en")


class Who(BaseModel, frozen=True):
    """Whom."""

    id: str = Field(description="The member's id")


@tool_function(commands=["whois"])
async def whois(context: MessageContext, args: Who, *, members: Members) -> str:
    """Say what a member is here."""
    role = await members.role(context.chat, MemberRef("test", "bot", args.id))
    return str(role and role.value)


@tool_function(commands=["spoke"])
async def who_spoke(context: MessageContext, *, members: Members) -> str:
    """Say who spoke lately."""
    return ", ".join(await members.names(context.chat))


def settings(**sections: Any) -> dict[str, Any]:
    return {"chats": {"allow": ["*"]}, **sections}


def offered(group: Group) -> set[str]:
    """Functions offered in the latest request."""
    offer = group.model.requests[-1].offer
    return {function.original for function in offer.functions} if offer is not None else set()


@pytest.mark.requirement("D40")
async def test_a_function_that_is_switched_off_is_neither_offered_nor_run() -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec], settings=settings(functions={"note": {"enabled": False}})) as group:
        assert await group.say("Ann", "/note") == [EN.say("refusals.disabled", name="/note")]
        assert await last_reason(group) == ("refused", "functions.note.enabled")
        group.model.says(call("note"), "No.")
        await group.say("Ann", "@Rollcall please write it down")
        assert "note" not in offered(group)
        assert note.runs == []


@pytest.mark.requirement("D40", "D65")
async def test_a_function_may_be_on_in_one_chat_alone() -> None:
    note = Recorder("note", commands=["note"])
    chats = {"allow": ["*"], "settings": {WORK.key: {"functions": {"note": {"enabled": True}}}}}
    async with a_group([note.spec], settings={"functions": {"note": {"enabled": False}}, "chats": chats}) as group:
        assert await group.say("Ann", "/note", chat=WORK) == ["done"]
        assert await group.say("Ann", "/note") == [EN.say("refusals.disabled", name="/note")]


async def test_roles_of_a_function_may_differ_in_a_chat() -> None:
    note = Recorder("note", commands=["note"])
    chats = {"allow": ["*"], "settings": {WORK.key: {"functions": {"note": {"roles": "moderator"}}}}}
    async with a_group([note.spec], settings={"chats": chats}) as group:
        assert await group.say("Ann", "/note") == ["done"]
        assert await group.say("Ann", "/note", chat=WORK) != ["done"]
        assert await group.say("Ann", "/note", chat=WORK, role=Role.ADMIN) == ["done"]


@pytest.mark.requirement("D30", "D64", "D67")
@pytest.mark.parametrize(
    ("sections", "layer"),
    [
        ({"router": {"enabled": False}}, "router.enabled"),
        (
            {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"functions_on": False}}}},
            f"chats.settings.{FAMILY.key}.functions_on",
        ),
    ],
)
async def test_without_function_calling_commands_and_chat_go_on(sections: dict[str, Any], layer: str) -> None:
    note = Recorder("note", commands=["note"])
    async with a_group([note.spec], settings=settings(**sections)) as group:
        group.model.says("Just words.")
        assert await group.say("Ann", "@Rollcall please write it down") == ["Just words."]
        assert (offered(group), note.runs) == (set(), [])
        assert await last_reason(group) == ("functions_off", layer)
        assert await group.say("Ann", "/note") == ["done"]


@pytest.mark.requirement("D64", "D65")
async def test_function_calling_is_switched_for_each_chat() -> None:
    chats = {"allow": ["*"], "settings": {WORK.key: {"functions_on": False}}}
    async with a_group(settings={"chats": chats}) as group:
        group.model.says("One.", "Two.")
        await group.say("Ann", "@Rollcall hello", chat=WORK)
        assert offered(group) == set()
        await group.say("Ann", "@Rollcall hello")
        assert offered(group)


@pytest.mark.requirement("D64", "D66", "D67")
async def test_what_a_chat_sets_for_itself_holds_as_soon_as_the_daemon_notices() -> None:
    async with a_group() as group:
        group.model.says("One.", "Two.", "Three.")
        await group.say("Ann", "@Rollcall hello")
        assert offered(group)
        change = chat_settings.put(FAMILY.key, "functions_on", "off", "test:bot:ann", 1)
        await group.daemon.store.commit([change, audit.touch("chat_settings")])
        await group.daemon.housekeeping.notice_changes()
        await group.say("Ann", "@Rollcall hello")
        assert (offered(group), await last_reason(group)) == (set(), ("functions_off", "chat"))
        back = chat_settings.clear(FAMILY.key, "functions_on")
        await group.daemon.store.commit([back, audit.touch("chat_settings")])
        await group.daemon.housekeeping.notice_changes()
        await group.say("Ann", "@Rollcall hello")
        assert offered(group)


async def test_what_a_chat_set_for_itself_is_there_after_a_restart(tmp_path: Any) -> None:
    async with a_group(home=tmp_path) as group:
        await group.daemon.store.commit([chat_settings.put(FAMILY.key, "language", "zh", "test:bot:ann", 1)])
    async with a_group(home=tmp_path) as group:
        assert group.daemon.chats.profile(FAMILY).texts.language == "zh"
        assert group.daemon.chats.profile(WORK).texts.language == "en"


async def test_a_chat_may_not_change_what_the_settings_keep_for_themselves() -> None:
    async with a_group(settings={"chats": {"allow": ["*"], "changeable": []}}) as group:
        await group.daemon.store.commit([chat_settings.put(FAMILY.key, "language", "zh", "test:bot:ann", 1)])
        await group.daemon.chats.load(group.daemon.store)
        assert group.daemon.chats.profile(FAMILY).texts.language == "en"


@pytest.mark.parametrize(
    ("said", "role"),
    [(Role.MEMBER, Role.ADMIN), (Role.OWNER, Role.OWNER), (None, None)],
)
async def test_a_role_is_the_stronger_of_settings_and_network_and_none_without_the_network(
    said: Role | None, role: Role | None
) -> None:
    ann = MemberRef("test", "bot", "ann")
    async with a_group([whois], settings=settings(members={ann.key: "admin"})) as group:
        if said is not None:
            group.platform.roles[ann] = said
        assert await group.say("Bob", "/whois ann") == [f"{role and role.value}"]


async def test_the_names_of_a_chat_are_those_who_spoke_latest_first() -> None:
    async with a_group([who_spoke]) as group:
        for who in ("Ann", "Bob", "Ann", "Eve"):
            await group.say(who, "hello")
        await group.say("Dan", "elsewhere", chat=WORK)
        assert await group.say("Ann", "/spoke") == ["Ann, Eve, Bob"]
