"""Late and missing answers after a change: which code runs, and who is informed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.testing import FAMILY, Group, a_group, call
from config.texts import Texts
from function_calls.spec import FunctionResult
from tests.bot.test_approvals import ADMIN, asked, needing, post
from tests.bot.test_ends_of_questions import BY_ADMIN, CANCELLED, EXPIRED, held_up
from tests.bot.test_handler_questions import BEGAN, expire
from tests.bot.test_reload import reload
from tests.fakes.asking import Asking
from tests.fakes.functions import Recorder
from tests.fakes.held import Held

EN = Texts().of("en")
OFF = {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"enabled": False}}}}
FUNCTIONS_OFF = {"chats": {"allow": ["*"], "settings": {FAMILY.key: {"functions_on": False}}}}


async def test_an_unknown_outcome_of_an_unanswered_run_is_reported_once() -> None:
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


# -- a function that was removed or replaced when an approval expires


@pytest.mark.parametrize("is_there", [False, True], ids=["gone", "changed"])
async def test_that_nobody_said_yes_is_told_where_the_run_cannot_be_ended_any_more(
    is_there: bool, tmp_path: Path
) -> None:
    fill, changed = Asking(effect="once"), Asking(effect="idempotent")
    async with a_group([fill.spec], home=tmp_path) as group:
        await held_up(group)
        clock = group.clock
    now = [changed.spec] if is_there else []
    async with a_group(now, home=tmp_path, clock=clock, settings=BY_ADMIN) as group:
        with capture_logs() as logs:
            await expire(group, 4000)
        assert [one.text for one in group.platform.sent] == [EN.say("approvals.expired", function="fill")]
    noted = [(one["function"], one["source"]) for one in logs if one["event"] == "waiting_run_not_ended"]
    assert noted == [("fill", changed.spec.origin.source if is_there else "")]
    assert (fill.runs, changed.runs) == ([BEGAN], [])


async def test_among_several_it_is_said_whose_run_got_no_yes_in_time() -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec]) as group:
        await held_up(group)
        await group.clock.advance(300)
        await group.say("Cleo", "/fill")
        await expire(group, 301)
        said = group.platform.sent[-1].text
    assert said == EN.say("approvals.expired_of", function="fill", asker="Ann")


# -- a chat that was switched off before the answer's turn


async def answered_while_off(group: Group, held: Held, who: str, text: str, **facts: Any) -> None:
    """Answer as `who`, and switch the chat off before the turn of the answer."""
    await group.hear("Dora", f"/{held.spec.name} it")
    await held.has_begun("it")
    await group.hear(who, text, **facts)
    assert await reload(group, **OFF)
    held.let_go()
    await group.settle()


async def test_an_answer_in_a_chat_that_is_switched_off_ends_the_run_that_waited() -> None:
    fill, held = Asking(effect="once"), Held(effect="read")
    async with a_group([fill.spec, held.spec]) as group:
        await group.say("Ann", "/fill")
        await answered_while_off(group, held, "Ann", "Ann")
        await expire(group)
    assert fill.runs == [BEGAN, EXPIRED]


async def test_a_yes_in_a_chat_that_is_switched_off_runs_nothing() -> None:
    wipe, held = Recorder("wipe", commands=["wipe"], confirm="Really?", effect="once"), Held(effect="read")
    async with a_group([wipe.spec, held.spec]) as group:
        assert await group.say("Ann", "/wipe") == ["Really?"]
        await answered_while_off(group, held, "Ann", "yes")
        await expire(group)
    assert wipe.runs == []


async def test_a_decision_in_a_chat_that_is_switched_off_leaves_the_run_waiting() -> None:
    fill, held = Asking(effect="once"), Held(effect="read")
    async with a_group([fill.spec, held.spec]) as group:
        code = await held_up(group)
        await answered_while_off(group, held, "Bob", f"approve {code}", **ADMIN)
        assert fill.runs == [BEGAN]
        await expire(group, 4000)
    assert fill.runs == [BEGAN, EXPIRED]


# -- function calling was switched off before the answer to a nested function


def outer_of(fill: Asking) -> Recorder:
    """A function that returns the result of `fill`."""

    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        result: FunctionResult = await own.invoke(fill.spec.name, {})
        return result

    return Recorder("outer", does=does, effect="idempotent")


async def asked_within(group: Group) -> None:
    """A function called by a model calls another one, which asks Ann; then function calling is switched off."""
    group.model.says(call("outer"))
    assert await group.say("Ann", "@Rollcall fill it in please") == ["Your name?"]
    assert await reload(group, **FUNCTIONS_OFF)


FILL_IS_OFF = " – I can't run “/fill”: functions are switched off in this chat"


@pytest.mark.parametrize(
    ("text", "told", "reason", "end"),
    [("Ann", "refused", FILL_IS_OFF, EXPIRED), ("cancel", "cancelled", "", CANCELLED)],
)
async def test_an_inner_run_only_ends_once_function_calling_is_off(text: str, told: str, reason: str, end: Any) -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec, outer_of(fill).spec]) as group:
        await asked_within(group)
        group.model.says("So it is.")
        assert await group.say("Ann", text) == ["So it is.", EN.say("claims.not_done", names=f"/fill{reason}")]
        assert f'"{told}"' in group.model.requests[-1].messages[-1].content
    assert fill.runs == [BEGAN, end]


async def test_an_inner_run_that_nobody_answers_hears_of_it_though_function_calling_is_off() -> None:
    fill = Asking(effect="once")
    async with a_group([fill.spec, outer_of(fill).spec]) as group:
        await asked_within(group)
        await expire(group)
        await expire(group)
        assert len(group.platform.sent) == 1
    assert fill.runs == [BEGAN, EXPIRED]
