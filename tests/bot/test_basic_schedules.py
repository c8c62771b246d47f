"""Schedules of scripts: rights, functions and limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.chats.chat_notes import GRACE_SECONDS
from function_calls.spec import Touch
from services.refs import MemberRef, Role
from tests.bot.basic_group import a_group_with
from tests.bot.test_basic_calls import EN, MAY_POST, post, stopped
from tests.fakes.held import Held
from tests.fakes.sources import ToldChanges
from tests.fakes.timers import pass_time

DAY = 24 * 3600
SET = 'TALK SET SCHEDULE("every day at 9am", "post", #{city: "Oslo"})'
PUT = 'PARAM w AS string LIKE "x" DESCRIPTION "W"\nDESCRIPTION "p"\nSAVE "t", #{id: "1", city: w}\nTALK "ok"'


@pytest.mark.requirement("A29")
async def test_a_script_lets_nothing_run_by_the_clock_that_it_may_not_call(tmp_path: Path) -> None:
    out = post(touches=[Touch.REACHES_OUT])
    async with a_group_with(tmp_path, [out.spec], plan=SET) as group:
        said = await group.say("Ann", "/plan", role=Role.ADMIN)
        assert said == [stopped("not_allowed", "plan", 2, EN.say("basic.call.not_granted", name="post"))]
        await pass_time(group, DAY, 600)
    assert out.runs == []


async def test_what_the_operator_lets_it_call_runs_by_the_clock(tmp_path: Path) -> None:
    out = post(touches=[Touch.REACHES_OUT])
    async with a_group_with(tmp_path, [out.spec], settings=MAY_POST, plan=SET) as group:
        assert await group.say("Ann", "/plan", role=Role.ADMIN) == ["true"]
        await pass_time(group, DAY, 600)
    assert out.runs == [{"city": "Oslo"}]


@pytest.mark.parametrize(
    "statement",
    [
        'SET SCHEDULE "every day at 9am", "post", "Oslo"',
        'SET SCHEDULE "0 9 * * *" "post.bas" "Oslo"',
        'SET SCHEDULE "0 9 * * *", "post", #{city: "Oslo"}',
        'town = "Oslo"\nSET SCHEDULE "0 9 * * *" "post" town',
    ],
)
async def test_what_a_tool_is_given_by_the_clock_may_stand_behind_it(tmp_path: Path, statement: str) -> None:
    out = post(touches=[Touch.REACHES_OUT])
    async with a_group_with(tmp_path, [out.spec], settings=MAY_POST, plan=statement) as group:
        await group.say("Ann", "/plan", role=Role.ADMIN)
        await pass_time(group, DAY, 600)
    assert out.runs == [{"city": "Oslo"}]


async def test_more_than_a_tool_takes_is_told_and_sets_nothing(tmp_path: Path) -> None:
    out = post(touches=[Touch.REACHES_OUT])
    plan = 'SET SCHEDULE "every day at 9am", "post", "Oslo", "Rome"'
    async with a_group_with(tmp_path, [out.spec], settings=MAY_POST, plan=plan) as group:
        said = await group.say("Ann", "/plan", role=Role.ADMIN)
        told = EN.say("basic.call.too_many", name="post", most=1, count=2)
        assert said == [stopped("bad_value", "plan", 2, told)]
        await pass_time(group, DAY, 600)
    assert out.runs == []


async def test_a_script_that_has_read_words_of_others_still_sets_itself(tmp_path: Path) -> None:
    plan = 'r = FIND "t", "1"\nTALK SET SCHEDULE("every day at 9am")'
    async with a_group_with(tmp_path, put=PUT, plan=plan) as group:
        await group.say("Mallory", "/put evil")
        assert await group.say("Ann", "/plan", role=Role.ADMIN) == ["true"]


@pytest.mark.parametrize("statement", ['SET SCHEDULE("every day at 9am")', "CLEAR SCHEDULE()"])
async def test_who_is_no_admin_any_more_changes_no_schedule(tmp_path: Path, statement: str) -> None:
    async with a_group_with(tmp_path, plan=f"TALK {statement}") as group:
        assert await group.say("Ann", "/plan", role=Role.ADMIN) == ["true"]
        group.platform.roles[MemberRef("test", "bot", "ann")] = Role.MEMBER
        assert await group.say("Ann", "/plan", role=Role.ADMIN) == ["false"]


async def test_a_chat_has_no_more_schedules_of_scripts_than_it_may_have(tmp_path: Path) -> None:
    parameters = [f'PARAM {name} AS string LIKE "x" DESCRIPTION "{name}"' for name in ("tool", "hour")]
    plan = "\n".join([*parameters, 'DESCRIPTION "Plans"', 'TALK SET SCHEDULE("every day at " + hour, tool)'])
    names = dict.fromkeys(("one", "two", "three"), 'TALK "x"')
    limit = {"limits": {"schedules_per_chat": 2}}
    async with a_group_with(tmp_path, settings=limit, plan=plan, **names) as group:
        said = [await group.say("Ann", f"/plan {name} 9am", role=Role.ADMIN) for name in names]
        assert said[:2] == [["true"], ["true"]]
        assert said[2] == [stopped("not_allowed", "plan", 4, EN.say("basic.schedule.full", most=2))]
        assert await group.say("Ann", "/plan two 8am", role=Role.ADMIN) == ["true"]
        full = EN.say("schedules.full", most=2)
        assert await group.say("Ann", "/schedule daily 07:00 one", role=Role.ADMIN) == [full]


async def test_what_a_run_sets_after_its_script_is_gone_does_not_stay(tmp_path: Path) -> None:
    changes, slow = ToldChanges(), Held("slow")
    other = 'TALK SET SCHEDULE("every day at 8am")'
    late = 'CALL "slow", "a"\nTALK SET SCHEDULE("every day at 9am", "hi")'
    async with a_group_with(tmp_path, [slow.spec], changes=changes, other=other, late=late, hi='TALK "hi"') as group:
        await group.say("Ann", "/other", role=Role.ADMIN)
        await group.hear("Ann", "/late", role=Role.ADMIN)
        await slow.has_begun("a")
        (tmp_path / "late.bas").unlink()
        await changes.told_and_heard()
        await group.daemon.script_schedules.sync()
        await group.clock.advance(GRACE_SECONDS + 1)
        slow.let_go()
        await group.settle()
        assert "hi" in "".join(await group.say("Ann", "/schedules", role=Role.ADMIN))
        await group.daemon.script_schedules.sync()
        await group.clock.advance(GRACE_SECONDS + 1)
        await group.daemon.script_schedules.sync()
        listed = "".join(await group.say("Ann", "/schedules", role=Role.ADMIN))
        assert "the script other" in listed
        assert "the script late" not in listed


@pytest.mark.parametrize(("away_seconds", "is_kept"), [(GRACE_SECONDS - 1, True), (GRACE_SECONDS + 1, False)])
async def test_a_folder_that_is_empty_for_a_moment_costs_no_schedule(
    tmp_path: Path, away_seconds: int, is_kept: bool
) -> None:
    changes, plan = ToldChanges(), tmp_path / "plan.bas"
    async with a_group_with(tmp_path, changes=changes, plan='SET SCHEDULE "every day at 9am"\nTALK "hi"') as group:
        await group.say("Ann", "/plan", role=Role.ADMIN)
        text = plan.read_text()
        plan.unlink()
        await changes.told_and_heard()
        await group.daemon.script_schedules.sync()
        await group.clock.advance(away_seconds)
        await group.daemon.script_schedules.sync()
        plan.write_text(text)
        await changes.told_and_heard()
        await group.daemon.script_schedules.sync()
        listed = "".join(await group.say("Ann", "/schedules", role=Role.ADMIN))
        assert ("the script plan" in listed) is is_kept
