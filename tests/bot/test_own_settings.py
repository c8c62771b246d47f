"""A chat changes its settings with a command, which also shows their origin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.testing import FAMILY, Group, a_group, call
from config.texts import Phrases, Texts
from services.refs import ChatRef, Role
from services.store.chats.chat_settings import CHAT_SETTINGS
from services.store.port import Statement
from services.store.turns import audit
from services.store.turns import audit as changes
from tests.fakes.kept import last_reason

EN, ZH = Texts().of("en"), Texts().of("zh")
WORK = ChatRef("test", "bot", "work")
ADMIN = {"role": Role.ADMIN}


async def rows(group: Group) -> list[tuple[str, str, str, str]]:
    found = await group.daemon.store.read(Statement("tests.own", CHAT_SETTINGS.select()).query())
    return [(row["chat"], row["name"], row["value"], row["set_by"]) for row in found]


async def acts(group: Group) -> list[tuple[str, str, str, str]]:
    found = await group.daemon.store.read(audit.last(10))
    return [(row["actor"], row["chat"], row["action"], row["detail"]) for row in found]


async def test_an_admin_changes_a_setting_and_it_holds_at_the_next_message_in_that_chat_alone() -> None:
    async with a_group() as group:
        assert "set in this chat" in (await group.say("Ann", "/settings language zh", **ADMIN))[0]
        assert await group.say("Bob", "/stop", chat=WORK) == [EN.say("stop.nothing")]
        assert await group.say("Bob", "/stop") == [ZH.say("stop.nothing")]
        assert await rows(group) == [(FAMILY.key, "language", "zh", "test:bot:ann")]


async def test_a_change_is_kept_over_a_restart_with_who_did_it_and_told_to_other_processes(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        for _ in range(2):
            await group.say("Ann", "/settings persona  Be kind,  and short.", **ADMIN)
        counters = {row["name"]: row["count"] for row in await group.daemon.store.read(changes.COUNTERS)}
        assert counters["chat_settings"] == 1
    async with a_group(home=tmp_path) as group:
        assert group.daemon.chats.profile(FAMILY).persona == "Be kind,  and short."
        change = ("test:bot:ann", FAMILY.key, "chat_settings.persona", "None -> 'Be kind,  and short.'")
        assert await acts(group) == [change]


@pytest.mark.requirement("D64", "D67")
async def test_function_calling_is_switched_off_and_on_and_why_names_the_chat_as_the_layer() -> None:
    async with a_group() as group:
        await group.say("Ann", "/settings functions_on off", **ADMIN)
        group.model.says("Just words.", "Again.")
        await group.say("Bob", "@Rollcall hello")
        assert group.model.requests[-1].offer is None
        assert "set in this chat with /settings" in (await group.say("Bob", "/why"))[0]
        await group.say("Ann", "/settings functions_on default", **ADMIN)
        await group.say("Bob", "@Rollcall hello")
        assert group.model.requests[-1].offer is not None
        assert await rows(group) == []


async def test_all_settings_are_listed_with_their_layers() -> None:
    chats = {"allow": ["*"], "changeable": ["language"], "settings": {FAMILY.key: {"timezone": "Europe/Oslo"}}}
    async with a_group(settings={"chats": chats}) as group:
        await group.say("Ann", "/settings language zh-CN", **ADMIN)
        await group.say("Ann", "/设置 language en", **ADMIN)
        (shown,) = await group.say("Ann", "/settings", **ADMIN)
        assert shown.splitlines()[:4] == [
            "language: en (set in this chat with /settings)",
            f"timezone: Europe/Oslo (chats.settings.{FAMILY.key}.timezone) – only in the settings file",
            "persona: – (the default) – only in the settings file",
            "functions_on: on (the default) – only in the settings file",
        ]
        assert await group.say("Ann", "/settings timezone", **ADMIN) == [shown.splitlines()[1]]


@pytest.mark.parametrize("value", ["Asia/Shanghai", "default"])
async def test_what_the_operator_keeps_is_refused_by_its_key(value: str) -> None:
    async with a_group(settings={"chats": {"allow": ["*"], "changeable": ["language"]}}) as group:
        (said,) = await group.say("Ann", f"/settings timezone {value}", **ADMIN)
        assert said == EN.say("settings.not_changeable", name="timezone")
        assert await last_reason(group) == ("refused", "chats.changeable: timezone")
        assert (await rows(group), await acts(group)) == ([], [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "timezone Mars/Base",
            EN.say("settings.bad_value", name="timezone", allowed=EN.say("settings.allowed.timezone")),
        ),
        ("functions_on maybe", EN.say("settings.bad_value", name="functions_on", allowed="on or off")),
        (
            "limits 5",
            EN.say(
                "settings.unknown",
                name="limits",
                names="language, timezone, persona, functions_on, memory_digest, chime_in, quiet_hours, "
                "voice_answers, model, "
                "welcome, goodbye",
            ),
        ),
    ],
)
async def test_what_is_no_setting_or_no_value_of_it_changes_nothing(line: str, said: str) -> None:
    async with a_group() as group:
        assert await group.say("Ann", f"/settings {line}", **ADMIN) == [said]
        assert await rows(group) == []


@pytest.mark.parametrize("role", [Role.MEMBER, Role.MODERATOR])
async def test_only_admins_change_settings(role: Role) -> None:
    async with a_group() as group:
        await group.say("Ann", "/settings language zh", role=role)
        assert (await last_reason(group))[0] == "refused"
        assert await rows(group) == []


async def test_no_model_is_offered_the_settings_or_can_change_them() -> None:
    async with a_group() as group:
        group.model.says(call("settings", name="language", value="zh"), "Done.")
        await group.say("Ann", "@Rollcall speak Chinese", **ADMIN)
        offer: Any = group.model.requests[0].offer
        assert "settings" not in [function.original for function in offer.functions]
        assert await rows(group) == []


async def test_the_operator_may_let_everybody_set_up_their_private_chat() -> None:
    private = {"test:bot:dm-*": {"functions": {"settings": {"roles": "member"}}}}
    alone = ChatRef("test", "bot", "dm-ann")
    async with a_group(settings={"chats": {"allow": ["*"], "settings": private}}) as group:
        await group.say("Ann", "/settings language zh", chat=alone, is_group=False)
        await group.say("Ann", "/settings language zh")
        assert [row[0] for row in await rows(group)] == [alone.key]


PRIVATE = ChatRef("test", "bot", "dm-bob")


async def stop_from(group: Group, language: str, chat: ChatRef = PRIVATE, **facts: Any) -> str:
    """The answer to /stop from a client in `language`."""
    message = group.message("Bob", "/stop", chat=chat, **{"is_group": False, **facts})
    await group.daemon.intake.accept(replace(message, sender=replace(message.sender, language=language)))
    await group.settle()
    return group.platform.sent[-1].text


@pytest.mark.parametrize(("language", "texts"), [("zh-CN", ZH), ("zh_hant", ZH), ("en-GB", EN), ("de", EN), ("", EN)])
async def test_a_private_chat_without_a_language_has_that_of_the_members_client(language: str, texts: Phrases) -> None:
    async with a_group() as group:
        assert await stop_from(group, language) == texts.say("stop.nothing")


async def test_the_language_of_a_client_is_not_used_in_groups() -> None:
    async with a_group() as group:
        await stop_from(group, "zh-CN")
        assert await stop_from(group, "zh-CN", FAMILY, is_group=True) == EN.say("stop.nothing")


async def test_a_configured_language_precedes_that_of_a_client() -> None:
    settings: list[dict[str, Any]] = [
        {"language": "en"},
        {"bots": {"default": {"language": "en"}}},
        {"chats": {"allow": ["*"], "settings": {"test:bot:dm-*": {"language": "en"}}}},
    ]
    for one in settings:
        async with a_group(settings=one) as group:
            assert await stop_from(group, "zh-CN") == EN.say("stop.nothing")
    async with a_group() as group:
        await group.say("Bob", "/settings language en", chat=PRIVATE, is_group=False, role=Role.OWNER)
        assert await stop_from(group, "zh-CN") == EN.say("stop.nothing")


async def test_a_turn_after_a_crash_has_the_language_of_the_client(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        message = group.message("Bob", "/reminders", chat=PRIVATE, is_group=False)
        await group.daemon.intake.accept(replace(message, sender=replace(message.sender, language="zh-CN")))
        await group.crash()
    async with a_group(home=tmp_path) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == [ZH.say("reminders.none")]
