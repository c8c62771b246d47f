"""A member's own time zone."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.testing import Group, a_group, call
from services.clock import VirtualClock
from services.refs import ChatRef

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
WORK = ChatRef("test", "bot", "work")


def a_family(language: str = "en", home: Path | None = None) -> AbstractAsyncContextManager[Group]:
    settings = {"timezone": "Europe/Oslo", "language": language, "chats": {"allow": ["*"]}}
    return a_group(settings=settings, clock=VirtualClock(START), home=home)


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("Kathmandu", "Asia/Kathmandu"),
        ("kathmandu", "Asia/Kathmandu"),
        ("Asia/Kathmandu", "Asia/Kathmandu"),
        ("Lord Howe", "Australia/Lord_Howe"),
        ("Norway", "Europe/Oslo"),
        ("北京", "Asia/Shanghai"),
        ("UTC", "UTC"),
    ],
)
async def test_a_city_a_country_or_a_name_of_the_zone_sets_it(said: str, zone: str) -> None:
    async with a_family() as group:
        assert f"Your time zone is now {zone}" in (await group.say("Ann", f"/timezone {said}"))[0]
        assert f"Your time zone is {zone}, where" in (await group.say("Ann", "/timezone"))[0]


async def test_it_is_the_member_s_alone_holds_in_every_chat_and_lasts(tmp_path: Path) -> None:
    async with a_family(home=tmp_path) as group:
        await group.say("Ann", "/timezone Kathmandu")
        assert "Asia/Kathmandu" in (await group.say("Ann", "/timezone", chat=WORK))[0]
        assert "You haven't set a time zone" in (await group.say("Bob", "/timezone"))[0]
    async with a_family(home=tmp_path) as group:
        assert "Asia/Kathmandu, where it is 20:45" in (await group.say("Ann", "/timezone"))[0]


@pytest.mark.parametrize("word", ["off", "OFF", "default"])
async def test_it_can_be_given_back(word: str) -> None:
    async with a_family() as group:
        await group.say("Ann", "/timezone Kathmandu")
        assert (
            "You're using this chat's time zone again: Europe/Oslo" in (await group.say("Ann", f"/timezone {word}"))[0]
        )
        assert "You haven't set a time zone" in (await group.say("Ann", "/timezone"))[0]


async def test_of_several_zones_one_is_chosen() -> None:
    async with a_family() as group:
        [text] = await group.say("Ann", "/timezone USA")
        assert text.startswith("USA has several time zones. Which one: America/New_York")
        assert "You haven't set a time zone" in (await group.say("Ann", "/timezone"))[0]
        chosen = group.platform.sent[-2].choices[0].value
        assert "now America/New_York" in (await group.say("Ann", chosen))[0]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Kathmando", "Did you mean"),
        ("nowhere at all", "I don't know where nowhere at all is"),
        ("+3", "only an offset"),
        ("UTC+5:45", "only an offset"),
        ("../../etc/passwd", "I don't know where"),
    ],
)
async def test_what_is_no_zone_changes_nothing(said: str, answer: str) -> None:
    async with a_family() as group:
        assert answer in (await group.say("Ann", f"/timezone {said}"))[0]
        assert "You haven't set a time zone" in (await group.say("Ann", "/timezone"))[0]


async def test_it_is_set_in_words_and_in_chinese() -> None:
    async with a_family("zh") as group:
        group.model.says(call("timezone", place="加德满都"), "")
        said = await group.say("Ann", "@Rollcall 我在加德满都")
        assert said[0].startswith("你的时区已设为 Asia/Kathmandu，那里现在是20:45（UTC+5:45）。")
        assert (await group.say("Ann", "/时区 off"))[0].startswith("你又改用这个聊天的时区了：Europe/Oslo")
