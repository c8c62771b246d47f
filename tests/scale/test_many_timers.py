"""Thousands of timers that are due in the same second: each is sent once, and other messages are answered without
delay."""

from __future__ import annotations

from collections import Counter

import pytest

from bot.testing import Group, a_group
from services.refs import ChatRef
from services.store.turns.occurrences import OCCURRENCES
from tests.fakes.drafts import a_draft, later
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import kept
from tests.fakes.noting import a_note
from tests.fakes.timers import pass_time

MANY = 1500
CHATS = 500
LATER = 500


async def ask_for_many(group: Group) -> None:
    """Create `MANY` timers in the same second, three in each chat, and `LATER` more for another day."""
    soon, some_day = later(group.clock.now(), seconds=60), later(group.clock.now(), days=30)
    drafts = [
        a_draft(f"t{number}", soon if number < MANY else some_day, chat=ChatRef("test", "bot", f"c{number % CHATS}"))
        for number in range(MANY + LATER)
    ]
    for first in range(0, len(drafts), 500):
        part = drafts[first : first + 500]
        await group.daemon.timetable.add(part, call_key=f"part {first}", most_per_owner=len(drafts))


async def test_thousands_that_are_due_in_one_second_are_said_once_each_and_in_order_within_a_chat() -> None:
    async with a_group([a_note().spec]) as group:
        await ask_for_many(group)
        await pass_time(group, 80, step=10)
        said = [(one.chat.native, int(one.text.rpartition("t")[2])) for one in group.platform.sent]
        assert sorted(number for _, number in said) == list(range(MANY))
        by_chat = {chat: [number for where, number in said if where == chat] for chat, _ in said}
        assert all(numbers == sorted(numbers) for numbers in by_chat.values())
        assert Counter(state for (state,) in await kept(group, OCCURRENCES.c.state)) == {"fired": MANY, "due": LATER}


@pytest.mark.parametrize("limit", [4, 16])
async def test_who_asks_meanwhile_does_not_wait_for_them(limit: int) -> None:
    rain = Recorder("rain", commands=["rain"], gives="rain")
    async with a_group([a_note().spec, rain.spec], settings={"timers": {"at_once": limit}}) as group:
        await ask_for_many(group)
        await group.clock.advance(61)
        await group.daemon.timers.tick()
        await until(lambda: len(group.platform.sent) > limit)
        asked_at = len(group.platform.sent)
        await group.hear("Bob", "/rain", chat=ChatRef("test", "bot", "quiet"))
        await until(lambda: any(one.text == "rain" for one in group.platform.sent))
        answered_at = next(place for place, one in enumerate(group.platform.sent) if one.text == "rain")
        assert answered_at - asked_at <= 20 * limit
        assert group.daemon.engine.running + group.daemon.engine.waiting <= limit + 1
        await pass_time(group, 3)
        assert len(group.platform.sent) == MANY + 1
