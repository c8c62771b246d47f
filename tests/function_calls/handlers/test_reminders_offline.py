"""Reminders in natural language without a model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.testing import a_group
from config.texts import Texts
from services.clock import VirtualClock
from services.llm.offline.offline import OfflineModel

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
SETTINGS = {"timezone": "Europe/Oslo", "chats": {"allow": ["*"]}}


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    ("sentence", "when", "text"),
    [
        ("remind me to call mum tomorrow at 5pm", "tomorrow, Saturday 21 November at 17:00", "call mum"),
        ("remind me tomorrow at 5pm to call mum", "tomorrow, Saturday 21 November at 17:00", "call mum"),
        ("remind me to order pizza at 7pm", "today, Friday 20 November at 19:00", "order pizza"),
        ("remind me in 20 minutes to check the oven", "today, Friday 20 November at 16:20", "check the oven"),
        ("remind me to stretch every 45 minutes", "every 45 minutes", "stretch"),
        ("remind me in an hour to stretch", "today, Friday 20 November at 17:00", "stretch"),
        ("remind me to stretch in a minute", "today, Friday 20 November at 16:01", "stretch"),
        ("remind me in 20 minutes that tea is ready", "today, Friday 20 November at 16:20", "tea is ready"),
        (
            "remind Bob tomorrow at 9am to bring cake",
            "for Bob is set for tomorrow, Saturday 21 November at 09:00",
            "bring cake",
        ),
        ("set a reminder for 8am tomorrow to feed the cat", "tomorrow, Saturday 21 November at 08:00", "feed the cat"),
        (
            "remind Bob to bring cake tomorrow at 9am",
            "for Bob is set for tomorrow, Saturday 21 November at 09:00",
            "bring cake",
        ),
        ("remind everyone to vote tomorrow at 9am", "for everybody here is set for tomorrow", "vote"),
        ("提醒我明天下午3点开会", "tomorrow, Saturday 21 November at 15:00", "开会"),
        ("明天早上8点提醒我吃药", "tomorrow, Saturday 21 November at 08:00", "吃药"),
        ("20分钟后提醒我关火", "today, Friday 20 November at 16:20", "关火"),
        ("提醒我每天晚上10点睡觉", "every day at 22:00", "睡觉"),
        ("remind me at 7p to call mum", "today, Friday 20 November at 19:00", "call mum"),
        ("remind me to eat at 12 noon", "tomorrow, Saturday 21 November at 12:00", "eat"),
        ("remind me in an hour and a half to eat", "today, Friday 20 November at 17:30", "eat"),
        ("remind me to eat at half past seven", "today, Friday 20 November at 19:30", "eat"),
        ("remind me at quarter to nine to eat", "today, Friday 20 November at 20:45", "eat"),
        ("remind me to eat at 1030", "today, Friday 20 November at 22:30", "eat"),
        ("remind me to eat now", "today, Friday 20 November at 16:00", "eat"),
        ("20秒后提醒我关火", "today, Friday 20 November at 16:00", "关火"),
        ("一个小时又二十分钟后提醒我关火", "today, Friday 20 November at 17:20", "关火"),
        ("提醒我一个小时又二十分钟后关火", "today, Friday 20 November at 17:20", "关火"),
        ("每周一提醒我交周报", "every Monday at 09:00", "交周报"),
        ("每天提醒我喝水", "every day at 09:00", "喝水"),
        ("每两小时提醒我喝水", "every 2 hours", "喝水"),
    ],
)
async def test_a_sentence_sets_a_reminder_perhaps_after_a_yes(sentence: str, when: str, text: str) -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        await group.say("Bob", "hello")
        said = await group.say("Ann", f"@Rollcall {sentence}")
        if said[0].startswith("Set this reminder: "):
            said = await group.say("Ann", "yes")
        assert said[0].startswith("⏰ OK, reminder 1")
        assert when in said[0]
        assert said[0].partition("\n")[0].endswith(f": {text}")


@pytest.mark.parametrize(
    ("sentence", "values"),
    [
        ("remind me to call mum on Tue, Nov 27", ["2026-11-27 09:00", "2026-11-24 09:00"]),
        ("remind me to pay on Monday 25", ["2026-11-25 09:00", "2026-11-23 09:00", "2027-01-25 09:00"]),
        ("remind me in 1 mon to pay rent", ["2026-12-20 16:00", "2026-11-23 09:00"]),
        ("11月27号周二提醒我交作业", ["2026-11-27 09:00", "2026-11-24 09:00"]),
    ],
)
async def test_a_time_with_two_readings_is_asked_about(sentence: str, values: list[str]) -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        [asked] = await group.say("Ann", f"@Rollcall {sentence}")
        assert asked.endswith("can mean several times. Which one?")
        assert [one.value for one in group.platform.sent[-1].choices] == values


@pytest.mark.requirement("D14", "D53")
async def test_a_sentence_without_a_time_is_asked_for_it() -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        for sentence in ("remind me to buy milk", "提醒我开会"):
            [asked] = await group.say("Ann", f"@Rollcall {sentence}")
            assert asked.startswith("When should I remind you?")
            assert (await group.say("Ann", "tomorrow at 5pm"))[0].startswith("⏰ OK, reminder ")


async def test_sentences_look_at_reminders_and_change_them() -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        await group.say("Ann", "/remind tomorrow at 5pm call mum")
        await group.say("Ann", "/remind tomorrow at 6pm go to the dentist")
        assert "Your reminders in this chat (2)" in (await group.say("Ann", "@Rollcall show my reminders"))[0]
        assert "at 18:30" in (await group.say("Ann", "@Rollcall move reminder 1 to tomorrow at 6:30pm"))[0]
        said = await group.say("Ann", "@Rollcall cancel my reminder about the dentist")
        assert said == ["🗑 Reminder 2 is deleted: go to the dentist"]


async def test_what_is_plainly_a_reminder_needs_no_yes() -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        said = await group.say("Ann", "@Rollcall remind me in 2 seconds that tea is ready")
        assert said[0].endswith("in 2 seconds: tea is ready")


async def test_what_is_for_several_is_not_set_for_the_asker_alone() -> None:
    async with a_group(model=OfflineModel(Texts()), settings=SETTINGS, clock=VirtualClock(START)) as group:
        assert await group.say("Ann", "@Rollcall remind us to vote at 5pm") == [
            "Set this reminder: vote, at 5pm, for everyone?"
        ]
        assert "for everybody here" in (await group.say("Ann", "yes"))[0]
        assert "for everybody here" in (await group.say("Ann", "/remind us to vote at 5pm"))[0]
