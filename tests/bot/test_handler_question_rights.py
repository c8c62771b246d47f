"""A run that asked and resumes is one run: approved once, charged once, and subject to current rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.testing import a_group, call
from config.texts import Texts
from function_calls.call import Path as Way
from function_calls.spec import FunctionResult
from services.refs import ErrorCode, MemberRef, Role
from services.store.turns.audit import AUDIT
from tests.bot.test_approvals import ADMIN, code_in
from tests.fakes.asking import Asking
from tests.fakes.functions import CITY, Recorder
from tests.fakes.kept import kept
from tests.function_calls.routing import Routing

EN = Texts().of("en")
BEGAN, ANSWERED = ("began", ""), ("answered", "Ann")


@pytest.mark.requirement("C18", "C25")
async def test_what_was_allowed_is_not_asked_for_again_when_the_run_goes_on() -> None:
    fill = Asking(questions=["Name?", "Age?"], effect="once", approval="admin", parameters=CITY)
    async with a_group([fill.spec]) as group:
        code = code_in(await group.say("Ann", "/fill Oslo"))
        assert await group.say("Bob", f"approve {code}", **ADMIN) == ["Name?"]
        assert await group.say("Bob", "Bob") == []
        assert await group.say("Ann", "Ann") == ["Age?"]
        assert await group.say("Ann", "7") == ["Thanks: Ann, 7."]
        assert len(await kept(group, AUDIT.c.action)) == 1
        # The approval was for that run.
        code_in(await group.say("Ann", "/fill Oslo"))


async def test_a_yes_that_was_not_needed_before_is_asked_for_once_it_is(tmp_path: Path) -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
    stricter = {"functions": {"fill": {"approval": "admin"}}}
    async with a_group([fill.spec], home=tmp_path, settings=stricter) as group:
        code_in(await group.say("Ann", "Ann"))
    assert fill.runs == [BEGAN]


async def test_what_was_confirmed_is_not_confirmed_again() -> None:
    fill = Asking(confirm="Really?")
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill") == ["Really?"]
        assert await group.say("Ann", "yes") == ["Your name?"]
        assert await group.say("Ann", "Ann") == ["Thanks: Ann."]


async def test_what_the_run_has_read_itself_asks_for_no_yes_when_it_goes_on() -> None:
    fill = Asking(effect="once", touches=["reads_outside", "reaches_out"])
    async with a_group([fill.spec]) as group:
        assert await group.say("Ann", "/fill") == ["Your name?"]
        assert await group.say("Ann", "Ann") == ["Thanks: Ann."]


async def test_a_run_is_paid_for_once() -> None:
    fill = Asking()
    settings = {"budgets": {"member": {"units": 3}, "functions": {"fill": 2}}}
    async with a_group([fill.spec], settings=settings) as group:
        await group.say("Ann", "/fill")
        assert await group.say("Ann", "Ann") == ["Thanks: Ann."]
        assert await group.say("Ann", "/fill") == [EN.say("budgets.units_member", name="fill")]


async def test_a_right_that_was_lost_meanwhile_is_missed() -> None:
    fill = Asking(roles="admin", effect="once")
    async with a_group([fill.spec]) as group:
        await group.say("Ann", "/fill", role=Role.ADMIN)
        group.platform.roles[MemberRef("test", "bot", "ann")] = Role.MEMBER
        assert await group.say("Ann", "Ann") == [EN.say("refusals.role", name="/fill", detail="admin")]
    # The run is informed that it ends, and gets no answer.
    assert fill.runs == [BEGAN, ("expired", "")]


async def test_a_function_that_has_changed_meanwhile_does_not_go_on(tmp_path: Path) -> None:
    fill = Asking()
    async with a_group([fill.spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        await group.say("Bob", "/fill")
        clock = group.clock
    changed = Asking(parameters=CITY)
    async with a_group([changed.spec], home=tmp_path, clock=clock) as group:
        assert await group.say("Ann", "Ann") == [EN.say("questions.changed", name="/fill")]
        assert await group.say("Ann", "Ann") == []
        await group.clock.advance(301)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert [one.text for one in group.platform.sent] == [EN.say("questions.changed", name="/fill")]
    assert changed.runs == []


async def test_a_function_that_is_gone_is_told_of_and_needs_no_expiry(tmp_path: Path) -> None:
    async with a_group([Asking().spec], home=tmp_path) as group:
        await group.say("Ann", "/fill")
        await group.say("Bob", "/fill")
        clock = group.clock
    await clock.advance(200)
    async with a_group(home=tmp_path, clock=clock) as group:
        assert await group.say("Ann", "Ann") == [EN.say("questions.changed", name="fill")]
        await group.clock.advance(301)
        await group.daemon.housekeeping.expire_questions()
        await group.settle()
        assert len(group.platform.sent) == 1


# -- within another function


async def passes_on(context: Any, arguments: Any, own: Any) -> FunctionResult:
    result: FunctionResult = await own.invoke("fill", {"city": "Oslo"})
    return result


async def test_the_answer_to_an_inner_function_leads_to_it_and_what_it_gives_is_the_answer(tmp_path: Path) -> None:
    fill = Asking(questions=["Name?", "Age?"], parameters=CITY, commands=[], offered_to=["model"])
    outer = Recorder("outer", does=passes_on, commands=["outer"], effect="once")
    async with a_group([fill.spec, outer.spec], home=tmp_path) as group:
        assert await group.say("Ann", "/outer") == ["Name?"]
    async with a_group([fill.spec, outer.spec], home=tmp_path) as group:
        assert await group.say("Ann", "Ann") == ["Age?"]
        assert await group.say("Ann", "7") == ["Thanks: Ann, 7."]
    assert fill.recorder.runs == [{"city": "Oslo"}] * 3
    assert len(outer.runs) == 1


async def test_a_models_inner_function_gives_its_result_to_the_model() -> None:
    fill = Asking(parameters=CITY, commands=[], offered_to=["command"])
    outer = Recorder("outer", does=passes_on, effect="idempotent", touches="stays_here")
    async with a_group([fill.spec, outer.spec]) as group:
        group.model.says(call("outer"))
        assert await group.say("Ann", "@Rollcall do it please") == ["Your name?"]
        group.model.says("Good.")
        assert await group.say("Ann", "Ann") == ["Good."]
        told = group.model.requests[-1].messages[-1].content
    assert '"result":["Ann"]' in told.replace(" ", "")
    # The question is included, so that the model does not repeat it.
    assert "Your name?" in told


async def test_a_model_is_told_all_that_was_said_in_the_midst() -> None:
    fill = Asking(questions=["Name?", "Age?"], first="Hold on.", commands=[], effect="idempotent", touches="stays_here")
    async with a_group([fill.spec]) as group:
        group.model.says(call("fill"))
        assert await group.say("Ann", "@Rollcall do it please") == ["Hold on.", "Name?"]
        assert await group.say("Ann", "Ann") == ["Age?"]
        group.model.says("")
        assert await group.say("Ann", "7") == ["Thanks: Ann, 7."]
        told = group.model.requests[-1].messages[-1].content
    assert '"said_in_chat":["Hold on.","Name?","Age?","Thanks: Ann, 7."]' in told


# -- no member can answer


async def test_where_nobody_can_answer_it_is_an_error_and_the_run_hears_so() -> None:
    for way in (Way.TIMER, Way.CLI, Way.MCP, Way.API):
        fill = Asking(effect="once")
        result = await Routing(fill.recorder).invoke("fill", path=way)
        assert result.error is not None
        assert result.error.code is ErrorCode.REFUSED
        assert "Your name?" in result.error.text
        assert fill.runs == [BEGAN, ("expired", "")]


async def test_the_same_where_a_function_within_asks() -> None:
    fill = Asking(parameters=CITY, commands=[], offered_to=["model"])
    outer = Recorder("outer", does=passes_on)
    result = await Routing(fill.recorder, outer).invoke("outer", path=Way.CLI)
    assert result.error is not None
    assert result.error.code is ErrorCode.REFUSED
    assert fill.runs == [BEGAN, ("expired", "")]
