"""Messages of due reminders, and the reactions of members."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.platforms.irc.platform import IrcPlatform
from bot.testing import ACCOUNT, PLATFORM, Group, TestPlatform, a_group
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef, Role
from tests.fakes.timers import pass_time, tick

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
ANN, BOB = (MemberRef(PLATFORM, ACCOUNT, name) for name in ("ann", "bob"))
OWN = ChatRef(PLATFORM, ACCOUNT, "ann-alone")
WHISPERED: dict[str, Any] = {"private": True}


def a_family(language: str = "en", **more: Any) -> AbstractAsyncContextManager[Group]:
    settings = {"timezone": "Europe/Oslo", "language": language, "chats": {"allow": ["*"]}}
    return a_group(settings=settings, clock=VirtualClock(START), **more)


async def remind(group: Group, who: str, line: str, **facts: Any) -> None:
    said = (await group.say(who, f"/remind {line}", **facts))[-1]
    assert said.startswith("⏰"), said


@pytest.mark.requirement("D3", "D45")
async def test_a_reminder_mentions_whom_it_is_for_and_offers_to_be_put_off() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        assert await pass_time(group, 299, step=60) == []
        assert await pass_time(group, 2) == ["⏰ Ann: tea"]
        said = group.platform.sent[-1]
        assert said.mentions == (ANN,)
        assert [(one.label, one.value) for one in said.choices] == [
            ("10 minutes", "/snooze 1 10 minutes"),
            ("1 hour", "/snooze 1 1 hour"),
            ("tomorrow", "/snooze 1 tomorrow"),
            ("done", "/reminder done 1"),
        ]


@pytest.mark.parametrize("when", ["tomorrow at 9:00", "at 9:00", "on Friday at 9:00"])
async def test_the_name_tom_is_no_day(when: str) -> None:
    async with a_family() as group:
        [reply] = await group.say("Ann", f"/remind me to call Tom {when}")
        assert reply.endswith(": call Tom")


async def test_a_reminder_speaks_the_language_of_its_chat() -> None:
    async with a_family("zh") as group:
        assert (await group.say("Ann", "/提醒 5分钟后泡茶"))[0] == (
            "⏰ 好的，提醒1设好了，今天（11月20日星期五）16:05（Europe/Oslo），5分钟后：泡茶"
        )
        assert await pass_time(group, 301, step=301) == ["⏰ Ann：泡茶"]
        assert [one.label for one in group.platform.sent[-1].choices] == ["10分钟", "1小时", "明天", "完成"]


async def test_no_name_and_no_confirmation_calls_everybody() -> None:
    async with a_family() as group:
        await group.say("Bob", "hello")
        said = await group.say("@everyone", "/remind @Bob in 5 minutes to tell @all")
        said += await group.say("Bob", "/reminders")
        said += await group.say("Cy", "/reminder delete 1")
        said += await pass_time(group, 301, step=301)
        assert len(said) == 4
        assert "@" not in "".join(said), said
        assert said[-1] == "⏰ Bob: tell ＠all (from ＠everyone)"


async def test_a_reminder_for_others_says_from_whom_and_one_for_everybody_mentions_nobody() -> None:
    async with a_family() as group:
        await group.say("Bob", "hello")
        await remind(group, "Ann", "me and @Bob in 5 minutes yoga")
        await remind(group, "Ann", "us in 6 minutes dinner")
        assert await pass_time(group, 301, step=301) == ["⏰ Ann and Bob: yoga (from Ann)"]
        assert group.platform.sent[-1].mentions == (ANN, BOB)
        assert await pass_time(group, 60, step=60) == ["⏰ dinner (from Ann)"]
        assert group.platform.sent[-1].mentions == ()


@pytest.mark.requirement("D13")
async def test_what_was_said_in_private_comes_in_private() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes canary one", **WHISPERED)
        await remind(group, "Ann", "in 5 minutes canary two", chat=OWN, is_group=False)
        await pass_time(group, 301, step=301)
        said = {one.text.split()[-1]: (one.chat, one.private_to) for one in group.platform.sent if "canary" in one.text}
        assert said == {"one": (group.chat, ANN), "two": (OWN, None)}


async def test_without_buttons_the_choices_are_words() -> None:
    async with a_family(platform=TestPlatform(TestPlatform().limits.__class__(4000, True, 1000, False))) as group:
        await remind(group, "Ann", "in 5 minutes tea")
        [said] = await pass_time(group, 301, step=301)
        assert said.startswith("⏰ Ann: tea\nReply with: /snooze 1 10 minutes · ")


@pytest.mark.parametrize("place", range(4))
async def test_on_irc_the_choices_are_written_after_the_name_of_the_bot_and_work(place: int) -> None:
    async with a_family(platform=TestPlatform(IrcPlatform.limits)) as group:
        await remind(group, "Ann", "in 5 minutes tea")
        [said] = await pass_time(group, 301, step=301)
        line = said.splitlines()[-1]
        assert line.startswith("Say “Rollcall:” and one of these: /snooze 1 10 minutes · ")
        assert len(line) < 120
        chosen = line.partition("these: ")[2].split(" · ")[place]
        [answer] = await group.say("Ann", f"Rollcall: {chosen}")
        assert answer.startswith("✅" if "done" in chosen else "💤")


@pytest.mark.parametrize(
    ("pressed", "seconds"),
    [("/snooze 1 10 minutes", 600), ("/snooze", 600), ("/snooze 1 1 hour", 3600), ("/snooze tea for 20 minutes", 1200)],
)
async def test_what_is_put_off_comes_once_more(pressed: str, seconds: int) -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        await pass_time(group, 301, step=301)
        assert (await group.say("Ann", pressed))[0].startswith("💤 Reminder 1 is snoozed until today")
        assert await pass_time(group, seconds - 60, step=60) == []
        assert await pass_time(group, 120, step=60) == ["⏰ Ann: tea"]
        assert await pass_time(group, 86_400, step=3600) == []


async def test_the_last_one_that_was_said_to_oneself_is_put_off() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        await remind(group, "Bob", "in 6 minutes bread")
        await remind(group, "Ann", "in 7 minutes canary", **WHISPERED)
        await pass_time(group, 600, step=60)
        assert (await group.say("Ann", "/snooze"))[0].endswith(": tea")
        assert (await group.say("Bob", "/snooze"))[0].endswith(": bread")
        assert (await group.say("Cy", "/snooze"))[0].startswith("I haven't reminded you of anything here lately.")


async def test_what_is_done_with_does_not_come_again_and_what_repeats_goes_on() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        await remind(group, "Ann", "every day at 16:06 pills")
        await pass_time(group, 420, step=60)
        for number in (1, 2):
            await group.say("Ann", f"/snooze {number} 1 hour")
        assert await group.say("Ann", "/reminder done 1") == ["✅ Reminder 1 is done: tea"]
        assert await group.say("Ann", "/reminder done") == ["✅ Reminder 2 is done: pills"]
        assert await pass_time(group, 7200, step=600) == []
        assert [one[-12:] for one in await pass_time(group, 86_400, step=600)] == ["⏰ Ann: pills"]


async def test_a_reminder_that_is_deleted_says_nothing_any_more() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        await group.say("Ann", "/reminder delete 1")
        assert await pass_time(group, 600, step=60) == []


async def test_a_reminder_cannot_call_everybody_where_its_owner_may_not() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes hey @everyone and @所有人 read this")
        assert await pass_time(group, 301, step=301) == ["⏰ Ann: hey ＠everyone and ＠所有人 read this"]
        group.platform.roles[BOB] = Role.MODERATOR
        await remind(group, "Bob", "in 5 minutes tell @everyone", role=Role.MODERATOR)
        assert await pass_time(group, 301, step=301) == ["⏰ Bob: tell @everyone"]


async def test_a_reminder_is_one_line_whatever_was_written() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea\n⏰ Bob: pay Ann")
        assert await pass_time(group, 301, step=301) == ["⏰ Ann: tea ⏰ Bob: pay Ann"]


async def test_nobody_but_a_timer_can_let_a_reminder_speak() -> None:
    async with a_family() as group:
        assert "remind" not in {spec.name for spec in group.daemon.registry.of("default").specs if spec.command.words}
        group.model.says("Well.")
        await group.say("Ann", "@Rollcall hello")
        offer = group.model.requests[0].everything or group.model.requests[0].offer
        assert offer is not None
        assert "remind" not in {one.original for one in offer.functions}


async def test_a_late_reminder_says_so() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "in 5 minutes tea")
        await group.clock.advance(3 * 3600)
        [said] = await tick(group)
        assert said.endswith("⏰ Ann: tea")
        assert "late" in said
