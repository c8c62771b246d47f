"""Answered, cancelled and expired questions: input of the run, and messages to members and models."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from config.texts import Texts
from function_calls.call import Path
from function_calls.context import Kind, TimerCall
from function_calls.outcome import OutcomeKind
from function_calls.spec import ArgumentQuestion, ConfirmQuestion, FunctionResult, ToolError
from services.refs import ErrorCode
from tests.fakes.asking import Asking
from tests.fakes.builders import a_message
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says
from tests.function_calls.routing import Routing, restarted, said

EN = Texts().of("en")


@pytest.mark.parametrize("left", [{}, {"sum": 5}], ids=["nothing", "something"])
@pytest.mark.parametrize(("kind", "word"), [("answered", "Ann"), ("cancelled", "cancel"), ("expired", "")])
async def test_whatever_comes_of_its_question_a_run_is_given_what_it_has_left(
    kind: str, word: str, left: dict[str, int]
) -> None:
    states: list[Any] = []

    async def does(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Your name?", resume=left)
        states.append((own.resumed.kind, own.resumed.state))
        return FunctionResult.say("Thanks.")

    routing = Routing(Recorder("fill", does=does, commands=["fill"]))
    asked = await routing.hears("/fill")
    message = a_message(word, kind=Kind.MESSAGE if word else Kind.EXPIRY)
    await routing.hears(message, answering=(restarted(asked), word))
    assert states == [(kind, left)]


async def test_a_model_gets_the_messages_of_the_nested_run_that_asks() -> None:
    async def asks_and_hands_on(context: Any, arguments: Any, own: Any) -> FunctionResult:
        if own.resumed is None:
            return FunctionResult.ask("Which form?")
        result: FunctionResult = await own.invoke("fill", {})
        return result

    fill = Asking(questions=["Name?", "Age?"], effect="once")
    outer = Recorder("outer", does=asks_and_hands_on, effect="once")
    routing = Routing(outer, fill.spec, script=[calls(call("outer")), says("Good.")])
    outcome = await routing.hears("fill it in")
    for question, answer in (("Which form?", "A1"), ("Name?", "Ann"), ("Age?", "7")):
        assert said(outcome) == [question]
        outcome = await routing.hears_answer(outcome, answer)
    assert said(outcome)[-1] == "Good."
    assert '"said_in_chat":["Name?","Age?"' in routing.model.requests[-1].messages[-1].content


async def test_a_model_hears_that_what_an_answer_completed_has_failed() -> None:
    rain = Recorder("rain", CITY, ask={"city": "Where?"}, gives=ToolError("No such place.", ErrorCode.NOT_FOUND))
    routing = Routing(rain, script=[calls(call("rain")), says("I know of no such place.")])
    outcome = await routing.hears_answer(await routing.hears("rain?"), "Atlantis")
    assert said(outcome) == ["I know of no such place."]
    assert '"not_found"' in routing.model.requests[-1].messages[-1].content


@pytest.mark.parametrize(("effect", "kind"), [("read", OutcomeKind.SILENT), ("once", OutcomeKind.SENT)])
async def test_an_answer_that_leads_to_nothing_to_say_is_acknowledged_where_something_was_done(
    effect: str, kind: OutcomeKind
) -> None:
    note = Recorder("note", CITY, commands=["note"], gives=FunctionResult(), effect=effect)
    routing = Routing(note)
    outcome = await routing.hears_answer(await routing.hears("/note"), "Oslo")
    assert (outcome.kind, len(note.runs)) == (kind, 1)


async def test_a_question_about_a_function_that_is_not_there_is_asked_and_leads_nowhere() -> None:
    odd = Recorder("odd", commands=["odd"], gives=FunctionResult(question=ConfirmQuestion("Sure?", "gone", {})))
    routing = Routing(odd)
    asked = await routing.hears("/odd")
    assert said(asked) == ["Sure?"]
    assert said(await routing.hears_answer(asked, "yes")) == [EN.say("questions.changed", name="gone")]


async def test_a_function_that_wants_the_same_argument_again_may_not_ask_for_it_twice() -> None:
    again = FunctionResult(question=ArgumentQuestion("Where?", "rain", {}, field="city"))
    rain = Recorder("rain", CITY, commands=["rain"], gives=again)
    routing = Routing(rain)
    outcome = await routing.hears_answer(await routing.hears("/rain"), "Oslo")
    assert (outcome.question, rain.runs) == (None, [{"city": "Oslo"}])


async def test_a_run_goes_on_by_the_way_by_which_it_began() -> None:
    fill = Asking(questions=["Name?", "Age?"])
    routing = Routing(fill.recorder)
    outcome = await routing.hears("/fill")
    for answer in ("Ann", "7"):
        outcome = await routing.hears_answer(outcome, answer)
    assert [run.path for run, _ in routing.recorded] == [Path.COMMAND] * 3


async def test_what_is_due_asks_for_one_argument_after_another_and_needs_no_other_door() -> None:
    day = {"day": {"type": "string", "description": "Which day", "required": True}}
    rain = Recorder("rain", {**CITY, **day}, offered_to=["timer"], effect="once")
    routing = Routing(rain)
    outcome = await routing.hears(a_message("", timer=TimerCall("rain", {}, 1, 2, routing.clock.now(), "the rain")))
    for answer in ("Oslo", "today"):
        outcome = await routing.hears_answer(outcome, answer)
    assert (said(outcome), rain.runs) == (["done"], [{"city": "Oslo", "day": "today"}])


@pytest.mark.parametrize("is_known", [True, False], ids=["kept", "of an older release"])
async def test_what_was_asked_for_counts_from_the_message_that_led_to_the_question(is_known: bool) -> None:
    asked_at: list[datetime | None] = []

    async def does(context: Any, arguments: Any, own: Any) -> None:
        asked_at.append(own.asked_at)

    routing = Routing(Recorder("note", CITY, does=does, commands=["note"]))
    first = a_message("/note")
    later = a_message("Oslo", sent_at=first.sent_at + timedelta(minutes=4))
    asked = restarted(await routing.hears(first))
    if not is_known:
        asked = replace(asked, continuation=replace(asked.continuation, asked_at=None))
    await routing.hears(later, answering=(asked, "Oslo"))
    assert asked_at == [first.sent_at if is_known else later.sent_at]
