"""Errands: what is old is forgotten, but a message is known for as long as networks deliver it again."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Column

from bot.platforms.base import Accepted
from bot.testing import Group, a_group
from services.script_memory import ScriptMemory, bots_own
from services.store import audit, history, script_memory, summaries
from services.store.inbox import INBOX
from services.store.outbox import OUTBOX
from services.store.pending import PENDING
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held
from tests.fakes.kept import heard, kept

DAY_SECONDS = 24 * 3600
SHORT = {"store": {"days_kept": 1}, "chats": {"allow": ["*"]}}


async def rows(group: Group, *columns: Column[str] | Column[int]) -> list[int]:
    return [len(await kept(group, column)) for column in columns]


async def test_what_ended_long_ago_is_forgotten_and_history_stays() -> None:
    function = Recorder("rain", CITY, commands=["rain"])
    async with a_group([function.spec], settings={"store": {"days_kept": 10}, "chats": {"allow": ["*"]}}) as group:
        await group.say("Ann", "/rain")
        await group.say("Ann", "Oslo")
        everything = (INBOX.c.key, OUTBOX.c.state, PENDING.c.state)
        await group.clock.advance(9 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await rows(group, *everything) == [2, 2, 1]
        await group.clock.advance(2 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await rows(group, *everything) == [0, 0, 0]
        assert len(await heard(group)) == 4


async def test_summaries_and_what_was_done_to_settings_are_kept_no_longer_than_the_rest() -> None:
    now = 0
    async with a_group(settings={"store": {"days_kept": 10}}) as group:
        await group.daemon.store.commit(
            [
                history.said(
                    id=1,
                    chat="c",
                    sender_name="Ann",
                    text="long",
                    at_ms=0,
                    reply_to=None,
                    asked_by="a",
                    answers=0,
                )
            ]
        )
        for days in (0, 9, 11):
            await group.clock.advance(days * DAY_SECONDS - now)
            now = days * DAY_SECONDS
            at_ms = group.clock.now_ms()
            made = summaries.put("c", f"thread:{days}", "short", after=0, until_id=1, changed=0, at_ms=at_ms)
            done = audit.note(id=days, at_ms=at_ms, actor="a", chat="c", action="set", detail="language")
            await group.daemon.store.commit([made, done])
            await group.daemon.housekeeping.forget()
        assert await kept(group, summaries.SUMMARIES.c.part) == [("thread:11",), ("thread:9",)]
        assert await kept(group, audit.AUDIT.c.id) == [(9,), (11,)]


async def test_what_scripts_remember_for_a_time_is_forgotten_then_and_the_rest_stays() -> None:
    async with a_group() as group:
        memory = ScriptMemory(group.daemon.store, group.clock)
        await memory.put(bots_own("default"), "short", 1, seconds=60)
        await memory.put(bots_own("default"), "long", 1)
        await group.clock.advance(61)
        await group.daemon.housekeeping.forget()
        assert await kept(group, script_memory.SCRIPT_MEMORY.c.name) == [("long",)]


@pytest.mark.parametrize("hours", [25, 71])
async def test_a_message_that_is_delivered_again_within_three_days_is_known_whatever_is_kept(hours: int) -> None:
    async with a_group(settings=SHORT) as group:
        await group.say("Ann", "/id", id="x1")
        await group.clock.advance(hours * 3600)
        await group.daemon.housekeeping.forget()
        assert await group.hear("Ann", "/id", id="x1") is Accepted.DUPLICATE


async def test_what_is_not_finished_is_never_forgotten(tmp_path: Path) -> None:
    held = Held()
    async with a_group([held.spec], home=tmp_path, settings=SHORT) as group:
        await group.hear("Ann", "/hold it")
        await held.has_begun("it")
        await group.clock.advance(100 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        await group.crash()
    held.let_go()
    async with a_group([held.spec], home=tmp_path, settings=SHORT) as group:
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["done: it"]


async def test_an_open_question_is_never_forgotten() -> None:
    function = Recorder("rain", CITY, commands=["rain"])
    settings = {**SHORT, "questions": {"expires_seconds": 7 * DAY_SECONDS}}
    async with a_group([function.spec], settings=settings) as group:
        await group.say("Ann", "/rain")
        await group.clock.advance(6 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await group.say("Ann", "Oslo") == ["done"]


async def test_the_errands_are_on_the_tickers_list() -> None:
    async with a_group() as group:
        ticker = group.daemon.ticker()
        ticker.start()
        ticker.stop()


async def test_ids_rise_through_a_restart_even_when_the_clock_was_set_back(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.clock.advance(3600)
        await group.say("Ann", "before")
        await group.say("Ann", "/id")
    async with a_group(home=tmp_path) as group:
        await group.say("Ann", "after")
        assert [text for _, text in await heard(group)][::3] == ["before", "after"]


async def test_what_is_old_is_forgotten_although_the_clock_was_ahead_once(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.clock.advance(1000 * DAY_SECONDS)
        await group.say("Ann", "/id", id="from the future")
    settings = {"store": {"days_kept": 10}, "chats": {"allow": ["*"]}}
    async with a_group(home=tmp_path, settings=settings) as group:
        await group.say("Ann", "/id", id="old")
        await group.clock.advance(9 * DAY_SECONDS)
        await group.say("Ann", "/id", id="young")
        await group.daemon.housekeeping.forget()
        assert await rows(group, INBOX.c.key) == [3]
        await group.clock.advance(2 * DAY_SECONDS)
        await group.daemon.housekeeping.forget()
        assert await kept(group, INBOX.c.native_id) == [("young",)]
