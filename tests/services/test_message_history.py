from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from bot.testing import FAMILY, Group, a_group
from function_calls.context import Kind
from services.chats.message_history import MessageHistory, Period
from services.clock import VirtualClock
from services.refs import ChatRef, MemberRef
from services.store.ids import Ids
from services.store.turns.audit import AUDIT
from tests.fakes.kept import heard, kept

WORK = ChatRef("test", "bot", "work")
MIA = MemberRef("test", "bot", "mia")
EVERYTHING = Period()


@asynccontextmanager
async def a_past(count: int, most_lines: int = 5) -> AsyncIterator[tuple[Group, MessageHistory]]:
    """A chat in which Ann has sent `0`, `1` and so on, one per minute, with these ids."""
    clock = VirtualClock()
    async with a_group(clock=clock) as group:
        for number in range(count):
            await group.hear("Ann", str(number), id=f"n{number}")
            await clock.advance(60)
        await group.settle()
        yield group, MessageHistory(group.daemon.store, clock, Ids(clock), most_lines=most_lines)


@pytest.mark.parametrize(
    ("period", "texts", "is_cut"),
    [
        (Period(count=3), "567", False),
        (Period(count=5), "34567", False),
        (Period(count=9), "34567", True),
        (EVERYTHING, "34567", True),
        (Period(count=20, since_ms=0), "34567", True),
        (Period(since_ms=VirtualClock().now_ms() + 6 * 60_000), "67", False),
        (Period(until_ms=VirtualClock().now_ms() + 2 * 60_000), "01", False),
        (Period(since_ms=VirtualClock().now_ms() + 60_000, until_ms=VirtualClock().now_ms() + 120_000), "1", False),
    ],
)
async def test_the_latest_lines_of_a_part_are_given_oldest_first(period: Period, texts: str, is_cut: bool) -> None:
    async with a_past(8) as (_, past):
        excerpt = await past.read(FAMILY, period, "no such message")
    assert ("".join(line.text for line in excerpt.lines), excerpt.is_cut) == (texts, is_cut)


async def test_what_was_said_since_the_question_is_not_in_it() -> None:
    async with a_past(4) as (_, past):
        excerpt = await past.read(FAMILY, EVERYTHING, "n2")
    assert [line.text for line in excerpt.lines] == ["0", "1"]


async def test_an_id_of_another_chat_is_none_of_this_one() -> None:
    async with a_past(2) as (group, past):
        await group.hear("Bo", "elsewhere", chat=WORK, id="w")
        await group.hear("Ann", "2")
        await group.settle()
        assert [line.text for line in (await past.read(FAMILY, EVERYTHING, "w")).lines] == ["0", "1", "2"]
        assert [line.text for line in (await past.read(WORK, EVERYTHING, "")).lines] == ["elsewhere"]


async def test_a_command_is_no_part_of_the_conversation() -> None:
    async with a_past(2) as (group, past):
        await group.say("Ann", "/id")
        texts = [line.text for line in (await past.read(FAMILY, EVERYTHING, "")).lines]
    assert texts[:2] == ["0", "1"]
    assert "/id" not in texts


async def test_what_is_empty_or_taken_back_is_left_out() -> None:
    async with a_past(2) as (group, past):
        await group.say("Ann", "", id="n0", kind=Kind.DELETE)
        await group.say("Ann", "one", id="n1", kind=Kind.EDIT)
        assert [line.text for line in (await past.read(FAMILY, EVERYTHING, "")).lines] == ["one"]


async def test_what_is_said_after_the_wish_to_forget_stays_and_a_second_time_leaves_no_second_mark() -> None:
    async with a_past(4) as (group, past):
        until = VirtualClock().now() + timedelta(minutes=2)
        assert await past.forget(FAMILY, until, MIA) == 3
        assert await past.forget(FAMILY, until, MIA) == 0
        assert await heard(group) == [("Ann", "3")]
        assert await kept(group, AUDIT.c.actor, AUDIT.c.detail) == [(MIA.key, "3 messages")]
