"""Scripts run in chats: messages, results, look-ups and ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import FAMILY, Group, call
from config.texts import Texts
from services.refs import ChatRef, MemberRef, Role
from tests.bot.basic_group import a_group_with
from tests.fakes.functions import Recorder
from tests.fakes.held import until
from tests.fakes.kept import last_reason
from tests.fakes.timers import tick

EN, ZH = Texts().of("en"), Texts().of("zh")
WORK = ChatRef("test", "bot", "work")
ORDER = """\
PARAM customer_name AS string LIKE "John Doe" DESCRIPTION "Customer's full name"
PARAM order_amount AS number LIKE 99.99 DESCRIPTION "Total order amount"
PARAM shipping_address AS string LIKE "123 Main St" DESCRIPTION "Delivery address"

DESCRIPTION "Process a new customer order"

# Script logic here
TALK "Processing order for " + customer_name
# ...
RETURN order_amount * 2
"""


def told(group: Group) -> Any:
    """Result of the last run in the request."""
    return json.loads(group.model.requests[-1].messages[-1].content)


@pytest.mark.requirement("B5", "B14")
async def test_a_script_has_its_parameters_as_variables_and_says_what_it_talks(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, process_order=ORDER) as group:
        said = await group.say("Ann", '/process_order "John Doe" 99.99 "123 Main St"')
        assert said == ["Processing order for John Doe"]
        assert await last_reason(group) == ("command", "process_order")


@pytest.mark.requirement("B14")
async def test_variables_know_no_upper_and_lower_case(tmp_path: Path) -> None:
    script = 'PARAM Name AS string LIKE "Ann" DESCRIPTION "Who"\nTALK "Hi " + NAME + name + Name'
    async with a_group_with(tmp_path, hi=script) as group:
        assert await group.say("Ann", "/hi Bo") == ["Hi BoBoBo"]


@pytest.mark.requirement("B12", "B15", "A44")
async def test_a_model_is_told_what_was_returned_and_what_was_said_which_the_chat_hears_once(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, process_order=ORDER) as group:
        group.model.says(
            call("process_order", customer_name="Zoe", order_amount=1.5, shipping_address="Here"), "It is on its way."
        )
        said = await group.say("Ann", "@Rollcall process an order for Zoe, 1.5, here")
        assert said == ["Processing order for Zoe", "It is on its way."]
        assert told(group) == {"ok": True, "result": 3, "said_in_chat": ["Processing order for Zoe"]}


@pytest.mark.requirement("B13")
async def test_arguments_that_do_not_fit_never_reach_a_script(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, process_order=ORDER) as group:
        group.model.says(call("process_order", customer_name="Zoe", order_amount="lots"), "I need the amount.")
        assert await group.say("Ann", "@Rollcall order it for Zoe") == ["I need the amount."]
        told_model = told(group)
        assert told_model["error"] == "bad_arguments"
        assert set(told_model["fields"]) == {"order_amount", "shipping_address"}


async def test_a_text_that_is_returned_is_the_answer_where_nothing_was_said(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, motto='RETURN "Be " + "kind"', number="RETURN 6 * 7") as group:
        assert await group.say("Ann", "/motto") == ["Be kind"]
        assert await group.say("Ann", "/number") == ["42"]
        group.model.says(call("motto"), "They say: be kind.")
        assert await group.say("Ann", "@Rollcall what is our motto?") == ["They say: be kind."]
        assert told(group)["result"] == "Be kind"


async def test_a_script_that_says_nothing_has_been_done(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiet="x = 1") as group:
        assert await group.say("Ann", "/quiet") == [EN.say("claims.done", names="quiet")]


async def test_a_script_that_says_nothing_by_the_clock_is_silent(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, quiet="x = 1", loud='TALK "Wake up"') as group:
        await group.say("Ann", "/schedule daily 10:00 quiet", role=Role.ADMIN)
        await group.say("Ann", "/schedule daily 10:05 loud", role=Role.ADMIN)
        await group.clock.advance(3900)
        assert await tick(group) == ["Wake up"]


SESSION = """\
TALK username + "|" + user.name + "|" + user.role + "|" + user.id + "|" + from
TALK chat + "|" + is_group + "|" + language + "|" + bot + "|" + mobile
TALK Shop + "|" + VAT
"""


async def test_a_script_finds_who_asks_where_and_what_the_settings_say(tmp_path: Path) -> None:
    settings = {"bots": {"default": {"parameters": {"shop": "Corner", "vat": 0.25}}}}
    async with a_group_with(tmp_path, who=SESSION, settings=settings) as group:
        assert await group.say("Ann", "/who", role=Role.ADMIN) == [
            "Ann|Ann|admin|test:bot:ann|test:bot:ann",
            "test:bot:family|true|en|default|",
            "Corner|0.25",
        ]


async def test_a_parameter_hides_what_the_settings_say(tmp_path: Path) -> None:
    script = 'PARAM shop AS string LIKE "x" DESCRIPTION "Which"\nTALK shop'
    async with a_group_with(tmp_path, s=script, settings={"bots": {"default": {"parameters": {"Shop": "c"}}}}) as group:
        assert await group.say("Ann", "/s mine") == ["mine"]


async def test_the_time_of_a_script_is_that_on_the_chats_wall(tmp_path: Path) -> None:
    settings = {"timezone": "Asia/Shanghai"}
    async with a_group_with(tmp_path, clock='TALK FORMAT(NOW(), "HH:mm")', settings=settings) as group:
        assert await group.say("Ann", "/clock") == ["17:00"]


async def test_words_for_one_member_go_to_them_alone(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, tell='TALK TO "Bob", "psst"\nTALK "told"') as group:
        await group.say("Bob", "hello all")
        assert await group.say("Ann", "/tell") == ["psst", "told"]
        assert [one.private_to for one in group.platform.sent[-2:]] == [MemberRef("test", "bot", "bob"), None]


async def test_many_lines_in_a_row_are_one_message(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, count="FOR i = 1 TO 7\nPRINT i\nNEXT") as group:
        assert await group.say("Ann", "/count") == ["1\n2\n3\n4\n5\n6\n7"]


# -- ends of scripts


async def test_a_script_that_fails_says_where_and_keeps_what_it_has_said(tmp_path: Path) -> None:
    script = 'TALK "Begun"\nx = 1 / 0\nTALK "never"'
    async with a_group_with(tmp_path, bad=script) as group:
        stopped = EN.say("basic.stopped.division", name="bad", line=3)
        with capture_logs() as events:
            assert await group.say("Ann", "/bad") == ["Begun", stopped]
        assert await last_reason(group) != ("command", "bad")
        [event] = [one for one in events if one["event"] == "function_did_not_work"]
        assert (event["line"], event["code"], event["function"]) == (3, "division", "bad")
        assert "bad.bas" in event["file"]
        group.model.says(call("bad"), "That went wrong.")
        await group.say("Ann", "@Rollcall do the bad thing")
        await group.say("Ann", "yes")
        assert told(group) == {"error": "failed", "message": stopped, "result": {"said": ["Begun"]}}


async def test_a_failure_is_told_in_the_chats_language(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, bad="x = 1 / 0", settings={"language": "zh"}) as group:
        assert await group.say("Ann", "/bad") == [ZH.say("basic.stopped.division", name="bad", line=2)]


async def test_what_a_script_throws_is_said_in_its_own_words(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, no='THROW "We are closed"', be="ASSERT 1 = 2") as group:
        assert await group.say("Ann", "/no") == ["We are closed"]
        assert await group.say("Ann", "/be") == [EN.say("basic.stopped.assertion", name="be", line=2)]


async def test_an_error_may_be_held_by_the_script(tmp_path: Path) -> None:
    script = 'ON ERROR RESUME NEXT\nCALL "nothing_of_the_kind"\nTALK "on: " + ERROR MESSAGE'
    async with a_group_with(tmp_path, hold=script) as group:
        assert await group.say("Ann", "/hold") == ["on: " + EN.say("basic.call.unknown", name="nothing_of_the_kind")]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("WHILE TRUE\nx = 1\nWEND", "steps"),
        ('A = "x"\nWHILE TRUE\nA = A + A\nWEND', "memory"),
        ("SUB again()\nagain()\nEND SUB\nagain()", "depth"),
        ('WHILE TRUE\nTALK "spam spam spam spam spam spam"\nWEND', "output"),
        ('ON ERROR RESUME NEXT\nWHILE TRUE\nPRINT "spam spam spam spam spam spam"\nWEND', "output"),
    ],
)
async def test_a_script_that_takes_too_much_is_stopped(tmp_path: Path, script: str, code: str) -> None:
    settings = {"basic": {"steps": 20_000, "output_chars": 300, "memory_megabytes": 1}}
    async with a_group_with(tmp_path, greedy=script, settings=settings) as group:
        said = await group.say("Ann", "/greedy")
        beginning, end = EN.say(f"basic.stopped.{code}", name="greedy", line="#").split("#")
        assert said[-1].startswith(beginning)
        assert said[-1].endswith(end)


async def test_a_script_that_reckons_too_long_is_stopped_by_its_time(tmp_path: Path) -> None:
    settings = {"basic": {"steps": 100_000_000, "cpu_seconds": 0.05}}
    async with a_group_with(tmp_path, slow="WHILE TRUE\nx = 1\nWEND", settings=settings) as group:
        [said] = await group.say("Ann", "/slow")
        assert said.startswith("slow took too long, so I stopped it at line ")


async def test_empty_words_without_end_are_stopped_by_time_too(tmp_path: Path) -> None:
    settings = {"basic": {"steps": 100_000_000, "cpu_seconds": 0.05}}
    async with a_group_with(tmp_path, slow='WHILE TRUE\nTALK ""\nWEND', settings=settings) as group:
        [said] = await group.say("Ann", "/slow")
        assert said.startswith("slow took too long, so I stopped it at line ")


async def test_a_slow_script_does_not_hold_up_other_chats(tmp_path: Path) -> None:
    slow = 'FOR i = 1 TO 20000\nx = i * 2\nNEXT\nTALK "slow"'
    async with a_group_with(tmp_path, slow=slow, quick='TALK "quick"') as group:
        await group.hear("Ann", "/slow")
        await asyncio.sleep(0)
        await group.hear("Bob", "/quick", chat=WORK)
        await group.settle()
        assert [(one.chat, one.text) for one in group.platform.sent] == [(WORK, "quick"), (FAMILY, "slow")]


async def test_wait_is_by_the_clock(tmp_path: Path) -> None:
    mark = Recorder("mark")
    async with a_group_with(tmp_path, [mark.spec], later='CALL "mark"\nWAIT 5\nTALK "now"') as group:
        await group.hear("Ann", "/later")
        await until(lambda: bool(mark.runs))
        await group.clock.advance(4)
        assert group.platform.sent == []
        await group.clock.advance(2)
        await group.settle()
        assert [one.text for one in group.platform.sent] == ["now"]


async def test_help_lists_scripts_under_more(tmp_path: Path) -> None:
    async with a_group_with(tmp_path, one='TALK "1"', two='TALK "2"') as group:
        [said] = await group.say("Ann", "/help")
        assert "• More: /one · /two" in said.splitlines()
