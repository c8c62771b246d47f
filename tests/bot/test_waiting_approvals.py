"""Limits of open approval questions, and their end while they wait."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.testing import a_group
from function_calls.context import Kind
from services.store.turns.pending import PENDING
from tests.bot.test_approvals import ADMIN, WORK, asked, code_in, needing, post
from tests.fakes.functions import CITY, Recorder
from tests.fakes.held import Held, until
from tests.fakes.kept import kept, last_reason, reasons


def codes(texts: list[str]) -> list[str]:
    return re.findall(r"#([0-9a-f]{5})", texts[-1])


async def test_of_one_member_three_wait_and_the_next_is_refused_in_plain_words() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        first, *_ = [await asked(group, f"Place {number}") for number in range(3)]
        [refused] = await group.say("Ann", "/post Oslo")
        assert refused.startswith("Ann, 3 of your requests are already waiting for approval.")
        assert await last_reason(group) == ("refused", "approvals.open_per_member")
        assert await kept(group, PENDING.c.state) == [("open",)] * 3
        # Other members and chats have separate limits, and so has a member after a withdrawal.
        await asked(group, "Oslo", "Cleo")
        await asked(group, "Oslo", chat=WORK)
        await group.say("Ann", f"reject {first}")
        code = await asked(group)
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]


async def test_of_one_chat_ten_wait_unless_set_otherwise() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        for number in range(10):
            await asked(group, f"Place {number}", f"Member {number}")
        [refused] = await group.say("Ann", "/post Oslo")
        assert refused.startswith("10 requests are already waiting for approval in this chat.")
        assert await last_reason(group) == ("refused", "approvals.open_per_chat")
    settings = needing(open_per_chat=1)
    async with a_group([function.spec], settings=settings) as group:
        await asked(group)
        assert not codes(await group.say("Cleo", "/post Oslo"))


async def test_what_waits_already_is_not_asked_twice() -> None:
    function = post()
    async with a_group([function.spec], settings=needing()) as group:
        code = await asked(group)
        assert await group.say("Ann", "/post Oslo") == [
            f"The same request for “post” is already waiting for approval: #{code}"
        ]
        assert codes(await group.say("Cleo", "/post Oslo")) != [code]
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]
        assert codes(await group.say("Ann", "/post Oslo")) != [code]


@pytest.mark.parametrize(
    ("edited", "answer", "reason"),
    [
        ("wait, I look at it first", [], "not_addressed"),
        ("@Rollcall wait, I look at it first", ["I wait."], "chat"),
        ("/rain Oslo", ["it rains"], "command"),
    ],
)
async def test_an_answer_that_is_edited_into_other_words_leaves_the_question_open(
    edited: str, answer: list[str], reason: str
) -> None:
    function, held = post(), Held(effect="read")
    rain = Recorder("rain", CITY, commands=["rain"], gives="it rains")
    async with a_group([function.spec, held.spec, rain.spec], settings=needing()) as group:
        code = await asked(group)
        await group.hear("Cleo", "/hold it")
        await held.has_begun("it")
        await group.hear("Bob", f"approve {code}", id="b", **ADMIN)
        before = len(group.platform.sent)
        await group.hear("Bob", edited, id="b", kind=Kind.EDIT, **ADMIN)
        group.model.says("I wait.")
        held.let_go()
        await group.settle()
        assert [one.text for one in group.platform.sent[before + 1 :]] == answer
        assert reason in [one for one, _ in await reasons(group)]
        assert function.runs == []
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["posted"]


async def test_the_asker_can_stop_what_somebody_else_has_allowed() -> None:
    held = Held(effect="once")
    settings = needing(rule={"functions": ["hold"]})
    async with a_group([held.spec], settings=settings) as group:
        code = code_in(await group.say("Ann", "/hold it"))
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await held.has_begun("it")
        await group.hear("Cleo", "/stop")
        await until(lambda: group.platform.sent[-1].text == "I'm not working on anything of yours right now.")
        assert held.running == ["it"]
        assert "Stopped." in await group.say("Ann", "/stop")
        assert held.running == []


async def test_what_was_asked_for_can_be_allowed_no_more_once_its_message_is_deleted(tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        code = await asked(group, id="a")
        other = await asked(group, "Rome", id="b")
        await group.say("Ann", "", id="a", kind=Kind.DELETE)
        await group.say("Bob", f"approve {code}", **ADMIN)
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        await group.say("Bob", f"approve {code}", **ADMIN)
        assert function.runs == []
        assert await group.say("Bob", f"approve {other}", **ADMIN) == ["posted"]
        assert await kept(group, PENDING.c.state) == [("withdrawn",), ("allowed",)]


async def test_a_yes_that_waits_while_the_request_is_deleted_allows_nothing() -> None:
    function, held = post(), Held(effect="read")
    async with a_group([function.spec, held.spec], settings=needing()) as group:
        code = await asked(group, id="a")
        await group.hear("Cleo", "/hold it")
        await held.has_begun("it")
        await group.hear("Bob", f"approve {code}", **ADMIN)
        await group.hear("Ann", "", id="a", kind=Kind.DELETE)
        held.let_go()
        await group.settle()
        assert group.platform.sent[-1].text == "The request for “post” was withdrawn before anybody decided."
        assert function.runs == []
