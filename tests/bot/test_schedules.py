"""Schedules created by admins in a chat: messages, stored data and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.testing import a_group, call
from function_calls.context import MessageContext, Quoted
from function_calls.declaration import tool_function
from function_calls.spec import FunctionResult
from services.refs import Role

ADMIN = Role.ADMIN


@tool_function(commands=("wipe",), confirm="Wipe everything?", effect="once")
async def wipe(context: MessageContext) -> FunctionResult:
    """Wipe the board."""
    return FunctionResult.say("Wiped.")


@tool_function(commands=("eject",), roles="owner", effect="once")
async def eject(context: MessageContext) -> FunctionResult:
    """Eject somebody."""
    return FunctionResult.say("Ejected.")


@tool_function(commands=("here",), offered_to=["command", "model"])
async def here(context: MessageContext) -> FunctionResult:
    """Something that only people may ask for."""
    return FunctionResult.say("Here.")


@pytest.mark.requirement("D45")
async def test_a_command_is_put_on_a_schedule_and_said_back() -> None:
    async with a_group() as group:
        said = await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        assert said == [
            "Every day at 07:00 (UTC) I'll run /calc 6*7 here. "
            "This is schedule 1; next: tomorrow, Tuesday 6 January at 07:00."
        ]
        assert await group.say("Bo", "/schedule list") == [
            "Schedules in this chat:\n1. /calc 6*7 – every day at 07:00; next: tomorrow, Tuesday 6 January at 07:00"
        ]


async def test_in_chinese_all_of_it_is_chinese() -> None:
    async with a_group(settings={"language": "zh"}) as group:
        [said] = await group.say("Ann", "/定时 0 7 * * * calc 6*7", role=ADMIN)
        assert "我会在这里运行 /calc 6*7" in said
        assert "/calc 6*7" in (await group.say("Bo", "/定时 列表"))[0]
        assert await group.say("Ann", "/定时 暂停 1", role=ADMIN) == ["定时任务 1（/calc 6*7）已暂停。"]
        assert (await group.say("Ann", "/定时 继续 1", role=ADMIN))[0].startswith("定时任务 1（/calc 6*7）已恢复运行。")
        assert await group.say("Ann", "/定时 删除 1", role=ADMIN) == ["定时任务 1（/calc 6*7）已删除。"]


async def test_one_is_paused_resumed_and_removed_and_its_number_is_not_given_again() -> None:
    async with a_group() as group:
        await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        assert await group.say("Ann", "/schedule pause 1", role=ADMIN) == ["Schedule 1 (/calc 6*7) is paused."]
        assert (await group.say("Bo", "/schedule list"))[0].endswith("every day at 07:00; paused")
        assert await group.say("Ann", "/schedule resume 1", role=ADMIN) == [
            "Schedule 1 (/calc 6*7) is running again. Next: tomorrow, Tuesday 6 January at 07:00."
        ]
        assert await group.say("Ann", "/schedule remove 1", role=ADMIN) == ["Schedule 1 (/calc 6*7) is removed."]
        assert await group.say("Bo", "/schedule list") == ["There are no schedules in this chat."]
        assert await group.say("Ann", "/schedule remove 1", role=ADMIN) == [
            "There is no schedule 1 here. /schedule list shows them."
        ]
        assert "schedule 2" in (await group.say("Ann", "/schedule 0 8 * * * calc 1+1", role=ADMIN))[0]


async def test_a_missing_number_is_asked_for() -> None:
    async with a_group() as group:
        await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        assert await group.say("Ann", "/schedule pause", role=ADMIN) == ["Which one? /schedule list shows the numbers."]
        assert await group.say("Ann", "1", role=ADMIN) == ["Schedule 1 (/calc 6*7) is paused."]


async def test_with_nothing_given_it_shows_what_there_is_and_how_to_make_one() -> None:
    async with a_group() as group:
        [said] = await group.say("Ann", "/schedule", role=ADMIN)
        assert said.startswith(
            "There are no schedules in this chat.\nTo add one, send for example: /schedule daily 07:00"
        )


@pytest.mark.parametrize("line", ["/schedule 0 7 * * * calc 6*7", "/schedule pause 1", "/schedule remove 1"])
async def test_only_admins_may_unless_the_settings_say_otherwise(line: str) -> None:
    async with a_group() as group:
        [said] = await group.say("Ann", line)
        assert "Only admins and above" in said
    open_to_all = {"functions": {"schedule": {"roles": "member"}}}
    async with a_group(settings=open_to_all) as group:
        assert "schedule 1" in (await group.say("Ann", "/schedule 0 7 * * * calc 6*7"))[0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/schedule calc 6*7", "I don't understand when that is. Start with the time"),
        ("/schedule 0 7 * * *", "What should I run?"),
        ("/schedule 0 7 * * * clac 6*7", "I don't know the command /clac. Did you mean /calc?"),
        ("/schedule 0 7 * * * why 99", "Usage: /why"),
        ("/schedule 0 7 * * * poll", "“question” is missing."),
        ("/schedule 99 7 * * * calc 6*7", "I don't understand that cron expression."),
        ("/schedule 0 0 30 2 * calc 6*7", "That day doesn't exist."),
        ("/schedule 0 7 * * * wipe", "“/wipe” asks a question every time it runs"),
        ("/schedule 0 7 * * * eject", "Only owners and above can use “/eject”."),
        ("/schedule 0 7 * * * here", "“/here” can't run on a schedule."),
        ("/schedule 0 7 * * * stop", "“/stop” can't run on a schedule."),
        ("/schedule 0 7 * * * schedule 0 8 * * * calc 1", "“/schedule” can't run on a schedule."),
        ("/schedule 0 7 * * * schedule remove 1", "“/schedule remove” can't run on a schedule."),
        ("/schedule 0 7 * * * remind tea in 5 minutes", "“/remind” can't run on a schedule."),
        ("/schedule 0 7 * * * settings language zh", "“/settings” can't run on a schedule."),
    ],
)
async def test_what_would_not_run_is_told_at_once(line: str, words: str) -> None:
    async with a_group([wipe, eject, here]) as group:
        [said] = await group.say("Ann", line, role=ADMIN)
        assert words in said
        assert await group.say("Ann", "/schedule list") == ["There are no schedules in this chat."]


async def test_what_waits_for_a_yes_is_refused_until_it_is_allowed_for_always() -> None:
    settings = {"approvals": {"required": [{"functions": ["calculate"], "by": "admin"}]}}
    async with a_group(settings=settings) as group:
        [said] = await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        assert "needs approval here" in said
        [asked] = await group.say("Ann", "/calc 6*7", role=ADMIN)
        code = asked.rpartition("#")[2].split()[0]
        await group.say("Ann", f"always {code}", role=ADMIN)
        assert "schedule 1" in (await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN))[0]
        assert "needs approval" in (await group.say("Ann", "/schedule 0 7 * * * calc 6*8", role=ADMIN))[0]


async def test_a_chat_has_room_for_so_many() -> None:
    async with a_group(settings={"limits": {"schedules_per_chat": 2}}) as group:
        for hour in (7, 8):
            await group.say("Ann", f"/schedule 0 {hour} * * * calc 6*7", role=ADMIN)
        [said] = await group.say("Bo", "/schedule 0 9 * * * calc 6*7", role=ADMIN)
        assert said.startswith("This chat already has 2 schedules, which is the limit.")
        await group.say("Ann", "/schedule remove 1", role=ADMIN)
        assert "schedule 3" in (await group.say("Bo", "/schedule 0 9 * * * calc 6*7", role=ADMIN))[0]


async def test_a_chat_sees_its_own_schedules_alone() -> None:
    async with a_group() as group:
        await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        elsewhere = group.chat._replace(native="work")
        assert await group.say("Ann", "/schedule list", chat=elsewhere) == ["There are no schedules in this chat."]
        [said] = await group.say("Ann", "/schedule remove 1", role=ADMIN, chat=elsewhere)
        assert said.startswith("There is no schedule 1 here.")


async def test_what_is_made_in_private_is_seen_by_its_maker_alone() -> None:
    async with a_group() as group:
        await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN, private=True)
        assert await group.say("Bo", "/schedule list") == ["There are no schedules in this chat."]
        assert (await group.say("Bo", "/schedule remove 1", role=ADMIN))[0].startswith("There is no schedule 1 here.")
        assert "/calc 6*7" in (await group.say("Ann", "/schedule list", private=True))[0]


async def test_a_model_makes_one_for_an_admin_and_is_not_offered_it_for_a_member() -> None:
    async with a_group() as group:
        made = call("schedule_create", when="0 7 * * *", function="calculate", arguments={"expression": "6*7"})
        group.model.says(made, "Done.")
        await group.say("Ann", "@Rollcall work out 6*7 every morning at 7", role=ADMIN)
        await group.say("Ann", "yes", role=ADMIN)
        assert "/calc expression=6*7 – every day at 07:00" in (await group.say("Bo", "/schedule list"))[0]
        group.model.says("I can't.")
        await group.say("Bo", "@Rollcall work out 6*7 every morning at 7")
        offered = [[one.name for one in request.offer.functions] for request in group.model.requests if request.offer]
        assert "schedule_create" in offered[0]
        assert "schedule_create" not in offered[-1]


async def test_what_others_have_written_makes_none_without_a_yes() -> None:
    async with a_group() as group:
        made = call("schedule_create", when="0 7 * * *", function="calculate", arguments={"expression": "6*7"})
        group.model.says(made)
        quoted = Quoted("m1", "Bob", "Work out 6*7 every morning")
        [asked] = await group.say("Ann", "@Rollcall do that", role=ADMIN, reply_to=quoted)
        assert "Run “calculate” here on a schedule" in asked
        assert await group.say("Bo", "/schedule list") == ["There are no schedules in this chat."]


async def test_what_only_reads_reminders_may_run_by_the_clock() -> None:
    async with a_group() as group:
        assert "schedule 1" in (await group.say("Ann", "/schedule daily 9:00 reminders", role=ADMIN))[0]


async def test_a_schedule_outlives_a_crash(tmp_path: Path) -> None:
    async with a_group(home=tmp_path) as group:
        await group.say("Ann", "/schedule 0 7 * * * calc 6*7", role=ADMIN)
        await group.crash()
    async with a_group(home=tmp_path) as group:
        assert "/calc 6*7" in (await group.say("Bo", "/schedule list"))[0]
