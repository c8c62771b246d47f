"""Moderation by members and models: who may do it, whom it may concern, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from bot.platforms.base import SendFailed
from bot.platforms.web_api import Refused
from bot.testing import FAMILY, Group, TestPlatform, a_group, call
from config.texts import Phrases, Texts
from function_calls.ports import Measure
from services.refs import MemberRef, Role
from tests.fakes.kept import last_reason

EN, ZH = Texts().of("en"), Texts().of("zh")
ADMIN: dict[str, Any] = {"role": Role.ADMIN}
BEN = MemberRef("test", "bot", "ben")


def did(group: Group) -> list[tuple[str, str]]:
    """Measures taken, each with its member."""
    return [(one.measure.value, one.who) for one in group.platform.moderated]


async def with_ben(group: Group, role: Role = Role.MEMBER) -> None:
    await group.say("Ben", "hello", role=role)


@pytest.mark.parametrize(
    ("texts", "line", "measure"),
    [
        (EN, "/kick Ben", Measure.KICK),
        (EN, "/ban @Ben", Measure.BAN),
        (EN, "/silence Ben 30 minutes", Measure.SILENCE),
        (ZH, "/踢出 Ben", Measure.KICK),
        (ZH, "/封禁 Ben", Measure.BAN),
        (ZH, "/禁言 Ben 30分钟", Measure.SILENCE),
    ],
)
async def test_an_admin_moderates_by_command_without_a_question(texts: Phrases, line: str, measure: Measure) -> None:
    async with a_group(settings={"language": texts.language}) as group:
        await with_ben(group)
        (said,) = await group.say("Ann", line, **ADMIN)
        assert did(group) == [(measure.value, "ben")]
        done = texts.say(f"moderation.done.{measure}", name="Ben", moment="?")
        assert said.startswith(done.partition("?")[0])
        if measure is Measure.SILENCE:
            assert group.platform.moderated[0].seconds == 1800


@pytest.mark.parametrize("line", ["/kick Ben", "/ban Ben", "/silence Ben", "/pin", "/invite"])
@pytest.mark.parametrize("role", [Role.MEMBER, Role.MODERATOR])
async def test_nobody_else_moderates(line: str, role: Role) -> None:
    async with a_group() as group:
        await with_ben(group)
        await group.say("Cem", line, role=role, reply_to_bot=True)
        assert did(group) == []
        assert (await last_reason(group))[0] == "refused"


async def test_the_role_of_this_moment_counts() -> None:
    async with a_group() as group:
        await with_ben(group)
        await group.say("Ann", "hello", **ADMIN)
        group.platform.roles[MemberRef("test", "bot", "ann")] = Role.MEMBER
        await group.say("Ann", "/kick Ben", **ADMIN)
        assert did(group) == []


@pytest.mark.parametrize("theirs", [Role.ADMIN, Role.OWNER])
async def test_nothing_is_done_to_members_with_as_many_rights(theirs: Role) -> None:
    async with a_group() as group:
        await with_ben(group, theirs)
        assert await group.say("Ann", "/kick Ben", **ADMIN) == [EN.say("moderation.not_below", name="Ben")]
        assert await group.say("Ann", "/kick Ann", **ADMIN) == [EN.say("moderation.not_below", name="Ann")]
        assert did(group) == []


async def test_roles_of_the_settings_protect_and_empower_too() -> None:
    members = {"test:bot:ben": "admin", "test:bot:ann": "owner"}
    async with a_group(settings={"members": members}) as group:
        await with_ben(group)
        await group.say("Cem", "/kick Ben", **ADMIN)
        assert did(group) == []
        await group.say("Ann", "/kick Ben", role=Role.MEMBER)
        assert did(group) == [("kick", "ben")]


async def test_nothing_is_done_to_a_member_whose_role_the_network_does_not_tell() -> None:
    async with a_group() as group:
        await group.say("Ben", "hello")
        assert await group.say("Ann", "/ban Ben", **ADMIN) == [EN.say("moderation.role_unknown", name="Ben")]
        unknown = EN.say("moderation.unknown_member", name="Eve")
        assert await group.say("Ann", "/ban Eve", **ADMIN) == [unknown]
        assert did(group) == []


async def test_one_of_several_members_with_a_name_has_to_be_mentioned() -> None:
    async with a_group() as group:
        await group.say("Ben Bo", "hello", role=Role.MEMBER)
        await group.say("Ben Li", "hello", role=Role.MEMBER)
        (said,) = await group.say("Ann", "/kick Ben", **ADMIN)
        assert "Ben Bo" in said
        assert did(group) == []
        li = MemberRef("test", "bot", "ben li")
        await group.say("Ann", "/kick @ben", mentions=(li,), **ADMIN)
        assert did(group) == [("kick", "ben li")]


@pytest.mark.parametrize(
    ("words", "name", "arguments"),
    [
        ("kick Ben", "kick", {"member": "Ben"}),
        ("ban Ben from this group", "ban", {"member": "Ben"}),
        ("silence Ben for 30 minutes", "silence", {"member": "Ben", "until": "30 minutes"}),
    ],
)
async def test_a_model_always_needs_the_admins_yes(words: str, name: str, arguments: dict[str, Any]) -> None:
    async with a_group() as group:
        await with_ben(group)
        group.model.says(call(name, **arguments), "Done.")
        (asked,) = await group.say("Ann", f"@Rollcall {words}", **ADMIN)
        assert "Ben" in asked
        assert did(group) == []
        await group.say("Ben", "yes")
        assert did(group) == [], "another member's yes does not count"
        await group.say("Ann", "@Rollcall yes", **ADMIN)
        assert did(group) == [(name, "ben")]


async def test_a_model_of_a_member_is_not_offered_moderation() -> None:
    async with a_group() as group:
        await with_ben(group)
        group.model.says(call("kick", member="Ben"), "No.")
        await group.say("Cem", "@Rollcall kick Ben", role=Role.MEMBER)
        assert did(group) == []


@pytest.mark.parametrize("texts", [EN, ZH])
@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        (SendFailed("no rights", retryable=False), "not_permitted"),
        (Refused("HTTP 403", 403), "not_permitted"),
        (SendFailed("no connection", retryable=True), "not_reached"),
        (SendFailed("no answer", retryable=True, unknown_outcome=True), "unknown"),
        (Refused("HTTP 500", 500), "unknown"),
    ],
)
async def test_what_the_network_did_not_confirm_is_not_claimed(
    texts: Phrases, problem: Exception, outcome: str
) -> None:
    async with a_group(settings={"language": texts.language}) as group:
        await with_ben(group)
        group.platform.refusals.append(problem)
        said = await group.say("Ann", "/kick Ben", **ADMIN)
        assert said == [texts.say(f"moderation.{outcome}", what=texts.say("moderation.what.kick"))]


class Plain(TestPlatform):
    """A network without moderation."""

    measures = frozenset()


async def test_a_network_without_a_measure_says_so() -> None:
    async with a_group(platform=Plain()) as group:
        await with_ben(group)
        unsupported = EN.say("moderation.unsupported", what=EN.say("moderation.what.kick"))
        assert await group.say("Ann", "/kick Ben", **ADMIN) == [unsupported]
        assert did(group) == []


async def test_the_message_replied_to_is_pinned() -> None:
    async with a_group() as group:
        assert await group.say("Ann", "/pin", **ADMIN) == [EN.say("moderation.no_message")]
        assert await group.say("Ann", "/pin", reply_to_bot=True, **ADMIN) == [EN.say("moderation.done.pin")]
        assert [(one.chat, one.message_id) for one in group.platform.moderated] == [(FAMILY, "q")]


async def test_an_invitation_is_a_link_or_for_one_account() -> None:
    async with a_group() as group:
        (said,) = await group.say("Ann", "/invite", **ADMIN)
        assert "https://chat.example/join" in said
        await group.say("Ann", "/invite u7", **ADMIN)
        assert did(group) == [("link", ""), ("invite", "u7")]


@pytest.mark.parametrize("line", ["/silence Ben 5 seconds", "/silence Ben 60 days", "/silence until=soon member=Ben"])
async def test_a_silence_lasts_from_a_minute_to_four_weeks(line: str) -> None:
    async with a_group() as group:
        await with_ben(group)
        (said,) = await group.say("Ann", line, **ADMIN)
        assert "28" in said
        assert did(group) == []
