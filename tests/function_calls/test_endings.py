"""However a turn ends, the chat is informed of its effects and results."""

from __future__ import annotations

from typing import Any

import pytest

from config.texts import Texts
from function_calls.call import Call
from function_calls.context import MessageContext
from function_calls.outcome import OutcomeKind
from services.llm.model import ModelError
from services.refs import ErrorCode, ReasonCode
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import Scripted, call, calls, says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

EN, ZH = Texts().of("en"), Texts().of("zh")
DOWN = ModelError(ErrorCode.PROVIDER_ERROR, "down")
DONE = EN.say("claims.done", names="/add")


def add(**options: Any) -> Recorder:
    """An effect without a message by default."""
    return Recorder("add", CITY, commands=["add", "添加"], **({"effect": "idempotent", "gives": True} | options))


def rain() -> Recorder:
    return Recorder("rain", CITY, gives="It rains.")


BOTH = calls(call("add", "a", city="x"), call("rain", "b", city="Oslo"))
ADD = calls(call("add", city="x"))


@pytest.mark.parametrize(("gives", "heard"), [("Added.", ["Added.", "It rains."]), (True, [DONE, "It rains."])])
async def test_results_and_effects_are_both_reported_when_no_model_answers(gives: Any, heard: list[str]) -> None:
    outcome = await Routing(add(gives=gives), rain(), script=[BOTH, DOWN]).hears("both")
    assert (said(outcome), outcome.reason) == (heard, ReasonCode.FUNCTION)


@pytest.mark.parametrize(("gives", "heard"), [("Added.", ["Added.", "It rains."]), (True, [DONE, "It rains."])])
async def test_results_and_effects_are_both_reported_when_the_rounds_are_used_up(gives: Any, heard: list[str]) -> None:
    routing = Routing(add(gives=gives), rain(), script=[BOTH, BOTH], settings={"max_rounds": 2})
    outcome = await routing.hears("both")
    assert (said(outcome), outcome.reason) == (heard, ReasonCode.FUNCTION)


async def test_what_was_found_after_a_doubt_is_said_instead_of_what_was_doubted() -> None:
    script = [says("I've set a reminder."), calls(call("rain", city="Oslo")), DOWN]
    assert said(await Routing(add(), rain(), script=script).hears("see to it")) == ["It rains."]


@pytest.mark.parametrize("last", [DOWN, calls(call("none")), says("")], ids=["fails", "declines", "says nothing"])
async def test_an_effect_that_says_nothing_is_named_when_the_model_says_nothing(last: Scripted) -> None:
    assert said(await Routing(add(), script=[ADD, last]).hears("add it")) == [DONE]


async def test_what_was_done_is_named_in_the_language_of_the_chat() -> None:
    outcome = await Routing(add(), script=[ADD, DOWN], texts=ZH).hears("加上")
    assert said(outcome) == [ZH.say("claims.done", names="/添加")]


async def test_only_the_effects_that_said_nothing_are_named_and_each_once() -> None:
    other = Recorder("note", effect="once", gives="Noted.")
    script = [calls(call("add", "a", city="x"), call("note", "b"), call("add", "c", city="y")), DOWN]
    assert said(await Routing(add(), other, script=script).hears("add and note")) == ["Noted.", DONE]


async def test_an_effect_within_a_function_that_says_nothing_is_named() -> None:
    async def outer(context: MessageContext, arguments: dict[str, Any], run: Call) -> bool:
        await run.invoke("add", {"city": "x"})
        return True

    outcome = await Routing(
        add(), Recorder("outer", does=outer, effect="idempotent"), script=[calls(call("outer")), DOWN]
    ).hears("go")
    assert said(outcome) == [EN.say("claims.done", names="outer")]


async def test_a_return_direct_function_may_be_silent_unless_somebody_answered_its_question() -> None:
    silent = await Routing(add(return_direct=True), script=[ADD]).hears("add it")
    assert silent.kind is OutcomeKind.SILENT
    routing = Routing(add(return_direct=True, confirm="Really?"), script=[ADD])
    assert said(await routing.hears_answer(await routing.hears("add it"), "yes")) == [DONE]


@pytest.mark.parametrize("gives", [True, False, None, ""])
async def test_whoever_answers_for_a_command_that_says_nothing_hears_that_it_ran(gives: Any) -> None:
    routing = Routing(add(gives=gives, confirm="Really?"))
    assert said(await routing.hears_answer(await routing.hears("/add x"), "yes")) == [DONE]
