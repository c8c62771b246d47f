"""Filters of a turn: their order, and alternatives to routing."""

from __future__ import annotations

import asyncio

import pytest

from function_calls.context import MessageContext
from function_calls.filters.builtin import classifier
from function_calls.filters.turn import TurnFilter, turn_chain
from function_calls.invocation import Invoker
from function_calls.llm import FunctionCallLLM
from function_calls.outcome import Dispatch, TurnOutcome, sent
from function_calls.router import FunctionCallRouter
from function_calls.spec import Message
from function_calls.turn import Turn
from services.clock import Deadlines, VirtualClock
from services.refs import ReasonCode
from tests.fakes.functions import Recorder
from tests.function_calls.routing import Routing, said


def noting(events: list[str], name: str) -> TurnFilter:
    async def around(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        events.append(f"{name} before")
        outcome = await dispatch(context, turn)
        events.append(f"{name} after")
        return outcome

    return around


def routed_through(*filters: TurnFilter, functions: list[Recorder]) -> Routing:
    """A router with `filters` for every turn."""

    class Filtered(FunctionCallRouter):
        def __init__(self, invoker: Invoker, llm: FunctionCallLLM) -> None:
            super().__init__(invoker, llm, filters)

    return Routing(*functions, router=Filtered)


@pytest.mark.requirement("F6")
async def test_the_first_turn_filter_is_the_outermost() -> None:
    events: list[str] = []
    note = Recorder("note", commands=["note"])
    routing = routed_through(noting(events, "a"), noting(events, "b"), functions=[note])
    assert said(await routing.hears("/note")) == ["done"]
    assert events == ["a before", "b before", "b after", "a after"]


async def test_a_turn_filter_that_does_not_dispatch_answers_itself_and_nothing_runs() -> None:
    events: list[str] = []

    async def instead(context: MessageContext, turn: Turn, dispatch: Dispatch) -> TurnOutcome:
        return sent(ReasonCode.FILTERED, [Message("not today")])

    note = Recorder("note", commands=["note"])
    routing = routed_through(noting(events, "outer"), instead, noting(events, "inner"), functions=[note])
    outcome = await routing.hears("/note")
    assert (said(outcome), note.runs, events) == (["not today"], [], ["outer before", "outer after"])


async def test_without_filters_nothing_stands_between() -> None:
    async def dispatch(context: MessageContext, turn: Turn) -> TurnOutcome:
        raise AssertionError

    assert turn_chain(dispatch, []) is dispatch


@pytest.mark.requirement("D55")
async def test_a_message_that_a_classifier_has_not_judged_in_time_does_not_pass() -> None:
    clock, asked = VirtualClock(), asyncio.Event()
    deadlines = Deadlines(clock)

    async def classify(message: MessageContext) -> str | None:
        asked.set()
        await asyncio.Event().wait()
        return None

    note = Recorder("note", commands=["note"])
    slow = classifier(classify, "filters.turn[0].classifier", 2, deadlines, clock, reply=False)
    turn = asyncio.create_task(routed_through(slow, functions=[note]).hears("/note"))
    await asked.wait()
    await clock.advance(3)
    deadlines.expire()
    outcome = await turn
    assert (outcome.reason, outcome.detail) == (ReasonCode.FILTERED, "filters.turn[0].classifier.timeout_seconds")
    assert note.runs == []
