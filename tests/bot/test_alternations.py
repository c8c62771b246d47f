"""Two bots without a bot mark do not answer each other endlessly; people are never mistaken for bots."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.intake.gate import GateDecision
from bot.intake.notices import PAUSE_SECONDS, SETTING, BotLoopLimit
from bot.platforms.base import Limits
from bot.testing import FAMILY, Group, TestPlatform, a_group
from config.texts import Texts
from function_calls.context import Quoted
from services.clock import VirtualClock
from services.refs import ReasonCode
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import last_reason

EN = Texts().of("en")
PAUSE = EN.say("alternations.pause")
UNMARKED = Limits(
    text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, choices=True, bots_are_marked=False
)
MOST = 8


@asynccontextmanager
async def a_channel(limits: Limits = UNMARKED, **options: Any) -> AsyncIterator[Group]:
    function = Recorder("post", CITY, commands=["post"], gives="posted")
    async with a_group([function.spec], platform=TestPlatform(limits), **options) as group:
        group.model.says(*["Hm."] * 60)
        yield group


async def talk(group: Group, times: int, who: str = "Botty", seconds: float = 1, **facts: Any) -> list[str]:
    said: list[str] = []
    for _ in range(times):
        await group.clock.advance(seconds)
        said += await group.say(who, "@Rollcall really?", **facts)
    return said


async def test_who_answers_at_once_again_and_again_is_not_talked_with_for_ten_minutes_and_hears_it_once() -> None:
    async with a_channel() as group:
        assert await talk(group, 12) == [*["Hm."] * MOST, PAUSE]
        assert await last_reason(group) == ("like_a_bot", "limits.bot_alternations")
        assert (await group.say("Ann", "/why"))[0].count("as fast as a bot") == 1
        # Other conversations continue.
        assert await talk(group, 1, "Ann") == ["Hm."]
        assert await group.say("Botty", "/post Oslo") == ["posted"]
        await group.clock.advance(600)
        assert await talk(group, 1) == ["Hm."]


async def test_a_reply_to_the_bot_counts_like_its_name() -> None:
    async with a_channel() as group:
        said: list[str] = []
        for _ in range(10):
            quoted = Quoted("any", "Rollcall", "Hm.", True)
            said += await group.say("Botty", "really?", reply_to=quoted)
        assert said[-1] == PAUSE


@pytest.mark.parametrize("seconds", [2.1, 5])
async def test_who_takes_the_time_to_read_is_never_taken_for_a_bot(seconds: float) -> None:
    async with a_channel() as group:
        assert await talk(group, 20, seconds=seconds) == ["Hm."] * 20


async def test_commands_are_quick_with_people_too() -> None:
    async with a_channel() as group:
        said = [one for _ in range(20) for one in await group.say("Ann", "/post Oslo")]
        assert said == ["posted"] * 20


async def test_one_slow_message_or_a_word_of_another_member_begins_the_count_again() -> None:
    async with a_channel() as group:
        for _ in range(3):
            assert await talk(group, MOST - 1) == ["Hm."] * (MOST - 1)
            assert await talk(group, 1, seconds=3) == ["Hm."]
            assert await talk(group, MOST - 2) == ["Hm."] * (MOST - 2)
            assert await talk(group, 1, "Ann") == ["Hm."]


async def test_where_scripts_may_speak_and_alone_with_the_bot_nobody_is_counted() -> None:
    marked = Limits(text_chars=4000, sends_are_idempotent=True, sends_per_minute=100_000, choices=True)
    async with a_channel(marked) as group:
        assert await talk(group, 20) == ["Hm."] * 20
    async with a_channel() as group:
        assert await talk(group, 20, is_group=False) == ["Hm."] * 20


async def test_the_settings_say_how_often_and_never() -> None:
    async with a_channel(settings={"chats": {"allow": ["*"]}, "limits": {"bot_alternations": 2}}) as group:
        assert await talk(group, 4) == ["Hm.", "Hm.", PAUSE]
    async with a_channel(settings={"chats": {"allow": ["*"]}, "limits": {"bot_alternations": 0}}) as group:
        assert await talk(group, 20) == ["Hm."] * 20


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["Ann", "Botty"]), st.floats(0.1, 6), st.booleans()), max_size=60))
def test_only_so_many_quick_answers_in_a_row_of_one_member_are_a_bots(heard: list[tuple[str, float, bool]]) -> None:
    asyncio.run(_holds(heard))


async def _holds(heard: list[tuple[str, float, bool]]) -> None:
    clock, sent_at, heard_at = VirtualClock(), 0.0, -1.0
    brake = BotLoopLimit(lambda chat: sent_at, clock, 3)
    in_a_row, last, paused = 0, "", dict[str, float]()
    for who, seconds, answers in heard:
        await clock.advance(seconds)
        now = clock.monotonic()
        verdict = brake.judge(a_message("really?", sender=who, chat=FAMILY), GateDecision(addressed=True))
        if paused.get(who, 0) > now:
            assert verdict == GateDecision(ReasonCode.LIKE_A_BOT, SETTING)
            continue
        is_quick = who == last and sent_at > heard_at and now - sent_at <= 2
        in_a_row = in_a_row + 1 if is_quick else 0
        last, heard_at = who, now
        if in_a_row == 3:
            assert verdict == GateDecision(ReasonCode.LIKE_A_BOT, SETTING, notice_key="alternations.pause")
            paused[who], last, in_a_row = now + PAUSE_SECONDS, "", 0
        else:
            assert verdict is None
        if answers:
            await clock.advance(0.01)
            sent_at = clock.monotonic()
