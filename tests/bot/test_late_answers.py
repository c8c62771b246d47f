"""Answers, and missing ones, that find things changed: what runs then, and who hears what of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.testing import a_group, call
from config.texts import Texts
from function_calls.spec import FunctionResult, Message
from services.refs import MemberRef
from tests.bot.test_approvals import ADMIN, asked, needing, post
from tests.bot.test_handler_questions import BEGAN, expire
from tests.fakes.asking import Asking
from tests.fakes.functions import Recorder

EN = Texts().of("en")
BOB = MemberRef("test", "bot", "bob")


async def test_that_nobody_knows_how_a_run_ended_which_nobody_answered_is_told_once() -> None:
    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Go on?")
        raise RuntimeError("gone")

    fill = Recorder("fill", does=does, commands=["fill"], effect="once")
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill") == ["Go on?"]
        await expire(group)
        await expire(group)
        unknown = EN.say("failures.unknown_outcome", name="/fill")
        assert [one.text for one in group.platform.sent] == ["Go on?", unknown]


async def test_a_function_of_another_form_hears_nothing_of_a_question_of_the_one_before(tmp_path: Path) -> None:
    fill, changed = Asking(), Asking(effect="idempotent")
    async with a_group([fill.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        clock = group.clock
    async with a_group([changed.spec], home=tmp_path, clock=clock) as group:
        await expire(group)
        assert group.platform.sent == []
    assert (fill.runs, changed.runs) == ([BEGAN], [])


@pytest.mark.parametrize("answer", ["approve", "reject"])
async def test_a_decision_about_a_function_that_is_gone_is_told_so(answer: str, tmp_path: Path) -> None:
    function = post()
    async with a_group([function.spec], settings=needing(), home=tmp_path) as group:
        code = await asked(group)
    async with a_group(settings=needing(), home=tmp_path) as group:
        said = await group.say("Bob", f"{answer} {code}", **ADMIN)
        assert said == [EN.say("questions.changed", name="post")]
    assert function.runs == []


async def test_what_a_cancelled_run_says_to_somebody_else_no_model_reads() -> None:
    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Your name?")
        return FunctionResult(messages=(Message("psst", to=BOB), Message("Put away.")))

    fill = Recorder("fill", does=does)
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"), "As you like.")
        assert await group.say("Ann", "@Rollcall fill it in please") == ["Your name?"]
        assert await group.say("Ann", "cancel") == ["psst", "Put away.", "As you like."]
        told = group.model.requests[-1].messages[-1].content
    assert ("Put away." in told, "psst" in told) == (True, False)
