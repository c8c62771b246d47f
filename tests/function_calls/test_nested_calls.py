"""Capabilities of a run: other functions, the caller's model, and questions to members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.texts import Texts
from function_calls.call import Path
from function_calls.checks.permissions import Open, Policies, PolicyDecision
from function_calls.spec import (
    START_FUNCTION,
    ApprovalQuestion,
    Approved,
    FunctionResult,
    InputQuestion,
    Message,
    Resumed,
)
from services.refs import ErrorCode
from tests.fakes.asking import Asking
from tests.fakes.builders import a_member
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.code_copies import Code
from tests.function_calls.routing import Routing, said
from tests.function_calls.waiting import ANN, OSLO, Waiting, act, rule

EN = Texts().of("en")
ANSWERED = Resumed({"answers": []}, "Ann")


def code_of(result: FunctionResult) -> ErrorCode | None:
    """Error code of the run."""
    return result.error.code if result.error else None


def calling(name: str = "inner", **options: Any) -> Recorder:
    """A function that returns the result of another one."""

    async def does(context: Any, arguments: Any, call: Any) -> FunctionResult:
        result: FunctionResult = await call.invoke(name, {}, **options)
        return result

    return Recorder("outer", does=does, effect="idempotent")


# -- the caller's model


@pytest.mark.requirement("D37")
@pytest.mark.parametrize("outside", [True, False])
async def test_a_run_that_was_given_words_of_others_does_not_ask_the_callers_model(outside: bool) -> None:
    lent: list[Any] = []

    async def does(context: Any, arguments: Any, call: Any) -> None:
        await call.invoke("inner", {})
        lent.append(call.callers_model)

    model: Any = object()
    inner = Recorder("inner", gives=FunctionResult(data=1, outside=outside))
    routing = Routing(Recorder("outer", does=does), inner)
    await routing.invoke("outer", turn=routing.a_turn(callers_model=model))
    assert lent == [None if outside else model]


@pytest.mark.requirement("D37")
@pytest.mark.parametrize(
    ("touches", "lends"), [("reads_outside", False), ("reads_private", False), ("reaches_out", True)]
)
async def test_a_run_that_reads_what_taints_does_not_ask_the_callers_model_meanwhile(touches: str, lends: bool) -> None:
    lent: list[Any] = []

    async def does(context: Any, arguments: Any, call: Any) -> None:
        lent.append(call.callers_model is not None)

    routing = Routing(Recorder("outer", does=does, touches=touches))
    await routing.invoke("outer", turn=routing.a_turn(callers_model=object()))
    assert lent == [lends]


@pytest.mark.parametrize(("role", "lends"), [("admin", False), ("member", True)])
async def test_a_run_that_may_only_end_asks_nobodys_model(role: str, lends: bool) -> None:
    lent: list[Any] = []

    async def does(context: Any, arguments: Any, call: Any) -> None:
        lent.append(call.callers_model is not None)

    routing = Routing(Recorder("outer", does=does, roles=role))
    turn = routing.a_turn(callers_model=object(), resuming={"asked": Resumed({}, "", "expired")})
    await routing.invoke("outer", turn=turn, key="asked")
    assert lent == [lends]


# -- other functions


async def test_the_beginning_of_chats_is_called_by_nobody_but_goes_on_once_it_has_asked() -> None:
    begin = Recorder("inner", metadata={START_FUNCTION: True})
    assert code_of(await Routing(calling(), begin).invoke("outer")) is ErrorCode.NOT_FOUND
    assert begin.runs == []
    assert (await Routing(calling(resumed=ANSWERED), begin).invoke("outer")).ok
    assert len(begin.runs) == 1


async def runs_of_act(function: Recorder, *runs: dict[str, Any]) -> list[FunctionResult]:
    """Results for a function that calls `act`, which needs an admin's approval, once with each of these options."""
    given: list[FunctionResult] = []

    async def does(context: Any, arguments: Any, call: Any) -> None:
        for one in runs:
            given.append(await call.invoke("act", **{"arguments": OSLO, **one}))

    await Waiting(Code(), function, Recorder("outer", does=does, effect="idempotent"), **rule()).routing.invoke("outer")
    return given


async def digest_of(function: Recorder) -> str:
    """Digest of the approval for a run of `act` in Oslo."""
    [asked] = await runs_of_act(function, {})
    assert asked.question is not None
    assert isinstance(asked.question, ApprovalQuestion)
    return asked.question.terms.digest


async def test_a_run_within_another_goes_on_by_the_yes_that_it_was_given_before_it_asked() -> None:
    fill = Asking("act", parameters=CITY, effect="once")
    digest = await digest_of(fill.recorder)
    resumed = {"resumed": ANSWERED}
    [by_it, by_another, by_none] = await runs_of_act(
        fill.recorder, {**resumed, "allowed": digest}, {**resumed, "allowed": "another"}, resumed
    )
    assert (by_it.data, by_another.question is not None, by_none.question is not None) == (["Ann"], True, True)
    assert fill.runs == [("answered", "Ann")]


async def test_a_yes_that_the_run_did_not_come_to_is_good_for_no_other() -> None:
    function = act()
    digest = await digest_of(function)
    [wrong, right] = await runs_of_act(function, {"arguments": {"city": 5}, "allowed": digest}, {})
    assert (code_of(wrong), right.question is not None) == (ErrorCode.BAD_ARGUMENTS, True)
    assert function.runs == []


# -- questions


@pytest.mark.parametrize("path", [Path.API, Path.MCP, Path.TIMER, Path.CLI])
async def test_a_yes_that_a_function_within_wants_is_handed_on_where_nobody_answers_a_run(path: Path) -> None:
    inner = Recorder("inner", confirm="Really?", effect="once")
    result = await Routing(calling(), inner).invoke("outer", path=path)
    assert (result.question and result.question.kind, inner.runs) == ("confirm", [])


@pytest.mark.parametrize("path", [Path.API, Path.MCP, Path.TIMER, Path.CLI])
async def test_who_asked_where_nobody_answers_ends_with_what_it_has_left(path: Path) -> None:
    async def does(context: Any, arguments: Any, call: Any) -> FunctionResult:
        ends.append(call.resumed)
        return FunctionResult.ask("Which one?", resume={"booked": 7})

    ends: list[Resumed | None] = []
    result = await Routing(Recorder("book", does=does)).invoke("book", path=path)
    assert code_of(result) is ErrorCode.REFUSED
    assert ends == [None, Resumed({"booked": 7}, "", "expired")]


async def test_a_yes_to_another_run_is_not_kept_with_what_a_run_asks() -> None:
    fill = Asking("act", parameters=CITY)
    chat = Waiting(Code(), fill.recorder)
    for needs, kept in ((False, False), (True, True)):
        chat.with_rules(**(rule() if needs else {}))
        digest = await digest_of(fill.recorder)
        yes = Approved(digest, ANN, always=False)
        question = (await chat.invoke(chat.a_turn(approved=yes))).question
        assert isinstance(question, InputQuestion)
        assert (question.allowed == digest) == kept


@pytest.mark.parametrize("kind", ["cancelled", "expired"])
async def test_a_run_that_is_to_end_asks_no_more(kind: Any) -> None:
    nag = Recorder("nag", gives=FunctionResult.ask("Really?", resume={}))
    routing = Routing(nag)
    turn = routing.a_turn(resuming={"asked": Resumed({}, "", kind)})
    with capture_logs() as logs:
        result = await routing.invoke("nag", turn=turn, key="asked")
    assert (result.question, len(nag.runs)) == (None, 1)
    assert [(one["event"], one["kind"]) for one in logs] == [("asked_after_the_end", kind)]


class Refuses:
    """Nobody may approve any more."""

    def judge(self, *_: Any) -> PolicyDecision:
        return PolicyDecision(FunctionResult.fail(ErrorCode.REFUSED, "Too many wait."))


async def test_a_run_that_may_not_wait_for_a_yes_now_is_refused_and_hears_that_it_is_over() -> None:
    fill = Asking()
    routing = Routing(fill.spec, policies=Policies(Open(), Refuses()))
    result = await routing.invoke("fill", turn=routing.a_turn(resuming={"asked": ANSWERED}), key="asked")
    assert (result.error and result.error.text, fill.runs) == ("Too many wait.", [("expired", "")])


async def test_an_unknown_outcome_is_reported_in_addition_to_the_result_of_the_other_run() -> None:
    async def asks(context: Any, arguments: Any, call: Any) -> FunctionResult:
        if call.resumed is None:
            return FunctionResult.ask("Go on?")
        raise RuntimeError("gone")

    async def keeps_it(context: Any, arguments: Any, call: Any) -> FunctionResult:
        await call.invoke("inner", {})
        return FunctionResult.say("All is done.")

    inner, outer = (
        Recorder("inner", does=asks, effect="once"),
        Recorder("outer", does=keeps_it, commands=["outer"], effect="idempotent"),
    )
    with capture_logs():
        outcome = await Routing(inner, outer).hears("/outer")
    assert said(outcome) == ["All is done.", EN.say("failures.unknown_outcome", name="inner")]


async def test_a_run_whose_question_is_kept_back_ends_under_its_own_key_with_what_it_has_left() -> None:
    async def keeps_it(context: Any, arguments: Any, call: Any) -> FunctionResult:
        await call.invoke("fill", {})
        return FunctionResult.say("All is done.")

    fill = Asking()
    routing = Routing(Recorder("outer", does=keeps_it), fill.spec)
    await routing.invoke("outer")
    assert [run.key for run, _ in routing.recorded] == ["turn-2:0.0", "turn-2:0.0.end", "turn-2:0"]
    assert fill.resumed == [None, Resumed({"answers": []}, "", "expired")]


async def test_what_is_said_to_somebody_else_is_no_part_of_what_was_said_when_a_run_asked() -> None:
    bob = a_member("Bob").ref
    asked = replace(FunctionResult.ask("Which one?"), messages=(Message("psst", to=bob), Message("Look.")))
    result = await Routing(Recorder("book", gives=asked)).invoke("book")
    assert isinstance(result.question, InputQuestion)
    assert result.question.said == ("Look.", "Which one?")
