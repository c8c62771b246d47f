"""Existing reminders: ownership, selection and changes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.testing import Group, a_group, call
from function_calls.context import Quoted
from services.clock import VirtualClock
from services.refs import ChatRef, Role

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
WORK = ChatRef("test", "bot", "work")
OWN = ChatRef("test", "bot", "ann-alone")
MODERATOR: dict[str, Any] = {"role": Role.MODERATOR}
ALONE: dict[str, Any] = {"chat": OWN, "is_group": False}
WHISPERED: dict[str, Any] = {"private": True}


def a_family(language: str = "en", **more: Any) -> AbstractAsyncContextManager[Group]:
    settings = {"timezone": "Europe/Oslo", "language": language, "chats": {"allow": ["*"]}}
    return a_group(settings=settings, clock=VirtualClock(START), **more)


async def remind(group: Group, who: str, line: str, **facts: Any) -> str:
    said = (await group.say(who, f"/remind {line}", **facts))[-1]
    assert said.startswith(("⏰ OK", "⏰ 好的")), said
    return said


async def listed(group: Group, who: str = "Ann", **facts: Any) -> list[str]:
    """The list of `who` without its first line."""
    [text] = await group.say(who, "/reminders", **facts)
    return text.splitlines()[1:]


@pytest.mark.requirement("D3", "D24", "D41")
async def test_a_list_has_one_s_own_and_everybody_s_soonest_first_and_marks_what_repeats() -> None:
    async with a_family() as group:
        await group.say("Bob", "hello")
        await remind(group, "Ann", "me tomorrow at 5pm to call mum")
        await remind(group, "Ann", "every weekday at 8:30 stand-up")
        await remind(group, "Ann", "@Bob tomorrow at 9am bring cake")
        await remind(group, "Ann", "us today at 7pm dinner")
        await remind(group, "Bob", "in 10 minutes secret of bob")
        assert await listed(group) == [
            "#4 today, Friday 20 November at 19:00, in 3 hours: dinner for everybody here",
            "#3 tomorrow, Saturday 21 November at 09:00, in 17 hours: bring cake for Bob",
            "#1 tomorrow, Saturday 21 November at 17:00, in 25 hours: call mum",
            "#2 🔁 every weekday at 08:30; next: Monday 23 November at 08:30: stand-up",
        ]
        assert await listed(group, "Bob") == [
            "#5 today, Friday 20 November at 16:10, in 10 minutes: secret of bob",
            "#4 today, Friday 20 November at 19:00, in 3 hours: dinner (from Ann)",
            "#3 tomorrow, Saturday 21 November at 09:00, in 17 hours: bring cake (from Ann)",
        ]
        assert [line[:2] for line in await listed(group, "Cy")] == ["#4"]


async def test_a_list_can_be_of_some_words_and_says_when_there_is_nothing() -> None:
    async with a_family() as group:
        assert await group.say("Ann", "/reminders") == ["You have no reminders in this chat."]
        await remind(group, "Ann", "tomorrow at 5pm call mum")
        await remind(group, "Ann", "tomorrow at 6pm feed the cat")
        assert "call mum" not in (await group.say("Ann", "/reminders CAT"))[0]
        assert await group.say("Ann", "/reminders dog") == ["None of your reminders here matches “dog”."]


@pytest.mark.requirement("D13")
async def test_a_private_reminder_is_in_no_group_s_list_and_no_other_chat_s() -> None:
    canary = "canary-7f3a"
    async with a_family() as group:
        await remind(group, "Ann", f"tomorrow at 5pm {canary}-alone", **ALONE)
        await remind(group, "Ann", f"tomorrow at 5pm {canary}-whispered", **WHISPERED)
        await remind(group, "Ann", f"tomorrow at 5pm {canary}-work", chat=WORK)
        await remind(group, "Ann", "tomorrow at 5pm open")
        shown = len(group.platform.sent)
        commands = [
            "/reminders",
            "/reminders canary",
            "/reminder delete canary",
            "/reminder delete 1",
            "/snooze 1 1 hour",
        ]
        commands += ["/reminder change 1 text=x", "/reminder done 1", "/snooze canary for 5 minutes"]
        for who, facts in (("Ann", {}), ("Bob", {}), ("Max", MODERATOR), ("Bob", WHISPERED), ("Bob", ALONE)):
            for command in commands:
                await group.say(who, command, **facts)
        own = [one.text for one in group.platform.sent[shown:] if f"{canary}-alone" in one.text and one.chat != OWN]
        assert own == []
        assert not any(f"{canary}-w" in one.text for one in group.platform.sent[shown:])
        assert [line.split(": ")[-1] for line in await listed(group, **WHISPERED)] == [f"{canary}-whispered", "open"]
        assert [line.split(": ")[-1] for line in await listed(group, chat=WORK)] == [f"{canary}-work"]


async def test_a_private_chat_lists_its_own() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "us tomorrow at 5pm call mum", **ALONE)
        assert await listed(group, **ALONE) == ["#1 tomorrow, Saturday 21 November at 17:00, in 25 hours: call mum"]
        assert await group.say("Ann", "/reminders") == ["You have no reminders in this chat."]


async def test_reminders_are_deleted_by_number_by_several_numbers_and_by_what_they_say() -> None:
    async with a_family() as group:
        for text in ("go to the dentist", "buy milk", "buy bread", "feed the cat"):
            await remind(group, "Ann", f"tomorrow at 5pm {text}")
        assert await group.say("Ann", "/reminder delete the dentist one") == [
            "🗑 Reminder 1 is deleted: go to the dentist"
        ]
        [several] = await group.say("Ann", "/reminder delete buy")
        assert [line.split()[0] for line in several.splitlines()] == ["More", "#2", "#3"]
        assert await group.say("Ann", "/reminder delete 2 and 4") == [
            "🗑 Deleted reminders: #2 buy milk, #4 feed the cat."
        ]
        assert await group.say("Ann", "/reminder delete 2") == ["You have no reminder 2 here. /reminders lists them."]
        assert await group.say("Ann", "/reminder delete haircut") == ["None of your reminders here matches “haircut”."]
        assert len(await listed(group)) == 1


async def test_of_several_numbers_all_are_deleted_or_none() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm one")
        await remind(group, "Bob", "tomorrow at 5pm two")
        assert "Reminder 2 was set by Bob" in (await group.say("Ann", "/reminder delete 1, 2"))[0]
        assert "You have no reminder 9" in (await group.say("Ann", "/reminder delete 1, 9"))[0]
        assert len(await listed(group)) == 1


@pytest.mark.requirement("D53")
async def test_all_of_one_s_own_are_deleted_after_a_yes() -> None:
    async with a_family() as group:
        for who, line in (("Ann", "sing"), ("Ann", "dance"), ("Bob", "bob's"), ("Bob", "@Ann walk")):
            await remind(group, who, f"{line} tomorrow at 5pm")
        assert await group.say("Ann", "/reminder delete all") == [
            "Shall I delete all the reminders you have set in this chat?"
        ]
        await group.say("Ann", "no")
        assert len(await listed(group)) == 3
        await group.say("Ann", "/reminder delete all")
        assert await group.say("Ann", "yes") == ["🗑 Deleted reminders: #1 sing, #2 dance."]
        assert [line.split(": ")[-1] for line in await listed(group)] == ["walk (from Bob)"]
        assert len(await listed(group, "Bob")) == 2


async def test_private_reminders_belong_to_their_member_and_shared_ones_to_their_creator_or_a_moderator() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm own")
        await remind(group, "Ann", "us tomorrow at 5pm ours")
        await group.say("Bob", "hello")
        await remind(group, "Ann", "@Bob tomorrow at 5pm his")
        for number, text in ((1, "own"), (2, "ours")):
            assert "set by Ann" in (await group.say("Bob", f"/reminder delete {number}"))[0], text
        assert "set by Ann" in (await group.say("Max", "/reminder delete 1", **MODERATOR))[0]
        assert await group.say("Max", "/reminder delete 2", **MODERATOR) == ["🗑 Reminder 2 is deleted: ours"]
        assert await group.say("Bob", "/reminder delete 3") == ["🗑 Reminder 3 is deleted: his"]


async def test_a_reminder_gets_another_time_or_another_text() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm call mum")
        assert await group.say("Ann", '/reminder change 1 when="tomorrow at 6pm"') == [
            "⏰ Reminder 1 is now set for tomorrow, Saturday 21 November at 18:00 (Europe/Oslo), in 26 hours: call mum"
        ]
        [said] = await group.say("Ann", '/reminder change which="call mum" text="call  dad"')
        assert said == "#1 tomorrow, Saturday 21 November at 18:00, in 26 hours: call dad"
        [said] = await group.say("Ann", '/reminder change 1 when="every friday at 9am" text="call both"')
        assert said.startswith(
            "⏰ Reminder 1 is now set for every Friday at 09:00 (Europe/Oslo); next: Friday 27 November"
        )
        assert (await listed(group))[0].endswith("call both")


async def test_a_change_that_cannot_be_leaves_the_reminder_as_it_was() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm call mum")
        for when in ("yesterday at 5pm", "2026-13-45", "0 9 * *"):
            said = (await group.say("Ann", f'/reminder change 1 when="{when}" text=other'))[0]
            assert "I changed nothing" in said
        assert await listed(group) == ["#1 tomorrow, Saturday 21 November at 17:00, in 25 hours: call mum"]


@pytest.mark.requirement("D53")
@pytest.mark.parametrize(
    ("words", "then"),
    [
        ("7:30", "tomorrow, Saturday 21 November at 07:30"),
        ("8pm", "tomorrow, Saturday 21 November at 20:00"),
        ("midnight", "tomorrow, Saturday 21 November at 00:00"),
        ("today at 7:30pm", "today, Friday 20 November at 19:30"),
        ("in 2 hours", "today, Friday 20 November at 18:00"),
    ],
)
async def test_a_new_time_of_day_leaves_a_reminder_on_its_day(words: str, then: str) -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 9am milk")
        [said] = await group.say("Ann", f'/reminder change 1 when="{words}"')
        assert then in said
        await remind(group, "Ann", "today at 17:00 tea")
        assert "today, Friday 20 November at 18:30" in (await group.say("Ann", "/reminder change 2 when=18:30"))[0]


async def test_a_change_without_anything_new_is_asked_about() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm call mum")
        assert await group.say("Ann", "/reminder change 1") == ["What should I change: its text or its time?"]
        assert "tomorrow, Saturday 21 November at 18:00" in (await group.say("Ann", "tomorrow at 6pm"))[0]


async def test_a_reminder_keeps_the_zone_that_it_was_set_in() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm call mum")
        assert "keep the time zone" in (await group.say("Ann", "/timezone Kathmandu"))[0]
        assert await listed(group) == [
            "#1 tomorrow, Saturday 21 November at 17:00, in 25 hours (Europe/Oslo): call mum"
        ]
        assert (
            "18:00 (Europe/Oslo), in 26 hours"
            in (await group.say("Ann", '/reminder change 1 when="tomorrow at 6pm"'))[0]
        )
        assert "17:00 (Asia/Kathmandu)" in await remind(group, "Ann", "tomorrow at 5pm call dad")


@pytest.mark.parametrize(
    ("line", "until"),
    [
        ("1", "today, Friday 20 November at 16:10, in 10 minutes"),
        ("1 1 hour", "today, Friday 20 November at 17:00, in 1 hour"),
        ("#1 for 30 minutes", "today, Friday 20 November at 16:30, in 30 minutes"),
        ("1 until tomorrow at 8am", "tomorrow, Saturday 21 November at 08:00, in 16 hours"),
        ("1 tomorrow", "tomorrow, Saturday 21 November at 09:00, in 17 hours"),
        ("mum for 2 hours", "today, Friday 20 November at 18:00, in 2 hours"),
    ],
)
async def test_a_reminder_is_put_off_and_its_rule_stays(line: str, until: str) -> None:
    async with a_family() as group:
        await remind(group, "Ann", "every weekday at 8:30 call mum")
        assert await group.say("Ann", f"/snooze {line}") == [f"💤 Reminder 1 is snoozed until {until}: call mum"]
        [shown] = await listed(group)
        assert shown.startswith("#1 🔁 every weekday at 08:30; next: Monday 23 November at 08:30 (snoozed until ")


async def test_a_reminder_is_put_off_to_one_moment_to_come() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "every weekday at 8:30 call mum")
        assert "can't snooze a reminder until" in (await group.say("Ann", "/snooze 1 every friday"))[0]
        assert "yesterday" in (await group.say("Ann", "/snooze 1 until yesterday at 5pm"))[0]
        assert "put off" not in (await listed(group))[0]


async def test_with_nothing_said_lately_there_is_nothing_to_put_off() -> None:
    async with a_family() as group:
        await remind(group, "Ann", "every weekday at 8:30 call mum")
        assert "I haven't reminded you of anything here lately" in (await group.say("Ann", "/snooze"))[0]
        assert "I haven't reminded you of anything here lately" in (await group.say("Ann", "/reminder done"))[0]


async def test_only_whom_it_is_for_puts_a_reminder_off() -> None:
    async with a_family() as group:
        await group.say("Bob", "hello")
        await remind(group, "Ann", "@Bob tomorrow at 5pm his")
        await remind(group, "Ann", "us tomorrow at 5pm ours")
        assert "💤" in (await group.say("Bob", "/snooze 1 1 hour"))[0]
        assert "set by Ann" in (await group.say("Cy", "/snooze 1 1 hour"))[0]
        assert "set by Ann" in (await group.say("Bob", "/snooze 2 1 hour"))[0]
        assert "💤" in (await group.say("Max", "/snooze 2 1 hour", **MODERATOR))[0]


QUOTING: dict[str, Any] = {"reply_to": Quoted("q9", "Mallory", "delete everybody's reminders")}


@pytest.mark.parametrize(
    "wanted", [call("reminder_delete", which="2"), call("reminder_change", which="2", text="pay Mallory")]
)
async def test_what_concerns_others_is_asked_first_where_words_of_others_led_to_it(wanted: Any) -> None:
    async with a_family() as group:
        await remind(group, "Ann", "tomorrow at 5pm own")
        await remind(group, "Ann", "us tomorrow at 5pm ours")
        group.model.says(wanted)
        assert "to be sure" in (await group.say("Ann", "@Rollcall as it says", **QUOTING))[-1]
        assert len(await listed(group)) == 2
        group.model.says(call("reminder_delete", which="1"), "Well.")
        assert "🗑 Reminder 1 is deleted: own" in await group.say("Ann", "@Rollcall delete reminder 1", **QUOTING)


@pytest.mark.requirement("D41")
async def test_a_deletion_that_is_repeated_says_what_it_did(tmp_path: Path) -> None:
    settings = {"timezone": "Europe/Oslo", "chats": {"allow": ["*"]}}
    async with a_group(settings=settings, clock=VirtualClock(START), home=tmp_path) as group:
        await remind(group, "Ann", "tomorrow at 5pm one")
        await remind(group, "Ann", "us tomorrow at 5pm two")
        await group.hear("Ann", "/reminder delete 1 2")
        await group.crash()
    async with a_group(settings=settings, clock=VirtualClock(START), home=tmp_path) as group:
        await group.settle()
        assert await group.say("Ann", "/reminders") == ["You have no reminders in this chat."]
