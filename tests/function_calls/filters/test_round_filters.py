"""Filters of model requests: permitted and impossible changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from function_calls.filters.round import Ask, Round, RoundFilter, round_chain
from function_calls.llm import FunctionCallLLM
from services.llm.model import ModelAnswer, ModelError, ModelMessage, Offer
from services.refs import ErrorCode, ReasonCode
from tests.fakes.functions import Recorder
from tests.fakes.model import Scripted, call, calls, says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.fakes.wired_model import over_each_protocol
from tests.function_calls.routing import Routing, said


def filtering(*filters: RoundFilter) -> type[FunctionCallLLM]:
    """A FunctionCallLLM with `filters` for every request."""

    class Filtered(FunctionCallLLM):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, filters=filters, **options)

    return Filtered


def routed_through(*filters: RoundFilter, functions: list[Recorder], script: list[Scripted]) -> Routing:
    return Routing(*functions, llm=filtering(*filters), script=script)


@pytest.mark.requirement("F6", "D28")
@over_each_protocol
async def test_round_filters_see_every_request_the_first_one_outermost() -> None:
    events: list[tuple[str, int]] = []

    def noting(name: str) -> RoundFilter:
        async def around(round_: Round, ask: Ask) -> ModelAnswer:
            events.append((f"{name} before", round_.number))
            answer = await ask(round_)
            events.append((f"{name} after", round_.number))
            return answer

        return around

    routing = routed_through(
        noting("a"), noting("b"), functions=[Recorder("note")], script=[calls(call("note")), says("Noted.")]
    )
    assert said(await routing.hears("write it down")) == ["Noted."]
    one = ["a before", "b before", "b after", "a after"]
    assert events == [*((name, 0) for name in one), *((name, 1) for name in one)]


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_round_filter_may_change_what_is_asked_and_what_is_answered() -> None:
    async def change(round_: Round, ask: Ask) -> ModelAnswer:
        extra = ModelMessage("user", "Be brief.")
        round_.request = replace(round_.request, messages=[*round_.request.messages, extra])
        answer = await ask(round_)
        return replace(answer, text=answer.text.upper())

    routing = routed_through(change, functions=[], script=[says("hello")])
    assert said(await routing.hears("hi")) == ["HELLO"]
    assert routing.model.requests[0].messages[-1].content == "Be brief."


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_a_round_filter_may_answer_instead_and_may_ask_again() -> None:
    async def instead(round_: Round, ask: Ask) -> ModelAnswer:
        return ModelAnswer(text="by heart", finish="stop")

    routing = routed_through(instead, functions=[], script=[])
    assert (said(await routing.hears("hi")), routing.model.requests) == (["by heart"], [])

    async def again(round_: Round, ask: Ask) -> ModelAnswer:
        try:
            return await ask(round_)
        except ModelError:
            return await ask(round_)

    routing = routed_through(again, functions=[], script=[ModelError(ErrorCode.PROVIDER_ERROR, "down"), says("up")])
    assert said(await routing.hears("hi")) == ["up"]


async def invented(round_: Round, ask: Ask) -> ModelAnswer:
    """Calls a function that the sender may not call."""
    return calls(call("ban")) if round_.number == 0 else says("Done.")


async def offered(round_: Round, ask: Ask) -> ModelAnswer:
    """Offers all functions."""
    functions = round_.turn.input.functions
    round_.request = replace(round_.request, offer=Offer(functions.offer(functions.specs).functions))
    return await ask(round_)


@pytest.mark.requirement("E35", "D28")
@over_each_protocol
@pytest.mark.parametrize(("filter_", "script"), [(invented, []), (offered, [calls(call("ban")), says("Sorry, no.")])])
async def test_whatever_a_round_filter_does_nobody_calls_what_they_may_not(
    filter_: RoundFilter, script: list[Scripted]
) -> None:
    ban = Recorder("ban", roles="admin")
    await routed_through(filter_, functions=[ban], script=script).hears("ban Bob")
    assert ban.runs == []


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_an_answer_is_noted_as_the_filters_left_it() -> None:
    async def change(round_: Round, ask: Ask) -> ModelAnswer:
        return replace(await ask(round_), text="other words")

    routing = routed_through(change, functions=[], script=[says("said")])
    noted: list[str] = []
    turn = routing.a_turn()
    note: Callable[[int, ModelAnswer], None] = lambda number, answer, writes=(): noted.append(answer.text)  # noqa: E731
    turn.input.log.answer = note  # type: ignore[method-assign]
    outcome = await routing.router.dispatch(_message(), turn)
    assert (said(outcome), outcome.reason, noted) == (["other words"], ReasonCode.CHAT, ["other words"])


def _message() -> Any:
    from tests.fakes.builders import a_message

    return a_message("hi")


async def test_without_filters_nothing_stands_between() -> None:
    async def ask(round_: Round) -> ModelAnswer:
        raise AssertionError

    assert round_chain(ask, []) is ask
