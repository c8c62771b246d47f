"""`pre` and `post` filters of tool modules, in the same filter chain."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from function_calls.filters.pre_post import call_filter, round_filter, steps_of
from function_calls.schema.definition import DefinitionError
from function_calls.spec import FunctionResult
from services.refs import ErrorCode
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.fakes.wired_model import over_each_protocol
from tests.function_calls.filters.test_round_filters import filtering
from tests.function_calls.routing import Routing, said


def a_module(*filters: dict[str, Any]) -> ModuleType:
    module = ModuleType("tools")
    module.filters = lambda: list(filters)  # type: ignore[attr-defined]
    return module


def noting(events: list[str], name: str, kind: str, gives: Any = None, **options: Any) -> dict[str, Any]:
    def handle(facts: dict[str, Any]) -> Any:
        events.append(name)
        return gives

    return {"name": name, "type": kind, "handler": handle, **options}


async def ran(*filters: dict[str, Any], **function: Any) -> tuple[FunctionResult, Recorder]:
    """Result of a run with these filters."""
    act = Recorder("act", CITY, **function)
    routing = Routing(act, filters=[call_filter(steps_of(a_module(*filters)))])
    return await routing.invoke("act", raw={"city": "Oslo"}), act


@pytest.mark.requirement("E28", "F6")
async def test_lower_priorities_act_first_before_and_after_the_run() -> None:
    events: list[str] = []
    await ran(
        noting(events, "late", "pre_invocation", priority=5),
        noting(events, "early", "pre_invocation", priority=-1),
        noting(events, "usual", "pre_invocation"),
        noting(events, "last", "post_invocation", priority=9),
        noting(events, "first", "post_invocation"),
    )
    assert events == ["early", "usual", "late", "first", "last"]


async def test_a_skip_takes_the_place_of_the_run_and_of_what_comes_after() -> None:
    events: list[str] = []
    result, act = await ran(
        noting(events, "skips", "pre_invocation", ("skip", "cached")),
        noting(events, "never", "pre_invocation", priority=1),
        noting(events, "after", "post_invocation"),
    )
    assert (result.reply, act.runs, events) == ("cached", [], ["skips"])


async def test_an_error_ends_the_run_with_its_reason() -> None:
    result, act = await ran(noting([], "no", "pre_invocation", ("error", "not today")))
    assert result.error is not None
    assert (result.error.code, result.error.text, act.runs) == (ErrorCode.FAILED, "not today", [])


async def test_a_run_that_failed_skips_what_comes_after() -> None:
    events: list[str] = []
    await ran(noting(events, "after", "post_invocation"), gives=("error", "broken"))
    assert events == []


async def test_changed_arguments_are_checked_like_any_others() -> None:
    result, act = await ran(noting([], "f", "pre_invocation", ("continue", {"args": {"city": "Rome"}})))
    assert (result.ok, act.runs) == (True, [{"city": "Rome"}])
    result, act = await ran(noting([], "f", "pre_invocation", ("continue", {"args": {"town": 7}})))
    assert (result.ok, act.runs) == (False, [])


async def test_what_comes_after_may_change_the_result_and_may_be_asynchronous() -> None:
    async def louder(facts: dict[str, Any]) -> Any:
        return ("continue", {"result": facts["result"].upper()})

    result, _ = await ran({"type": "post_invocation", "handler": louder}, gives="quiet")
    assert result.reply == "QUIET"


@pytest.mark.requirement("D28")
@over_each_protocol
async def test_chat_filters_stand_around_requests_to_the_model() -> None:
    def heard(facts: dict[str, Any]) -> Any:
        return ("continue", {"messages": facts["messages"][-1:]})

    def politer(facts: dict[str, Any]) -> Any:
        return ("continue", {"text": f"{facts['text']} Please."})

    module = a_module({"type": "pre_chat", "handler": heard}, {"type": "post_chat", "handler": politer})
    routing = Routing(llm=filtering(round_filter(steps_of(module))), script=[says("Wait.")])
    assert said(await routing.hears("hi")) == ["Wait. Please."]
    assert [message.role for message in routing.model.requests[0].messages] == ["user"]


@pytest.mark.parametrize(
    ("gives", "heard"), [(("skip", "by heart"), "by heart"), (("error", "no"), None), (("skip", ""), None)]
)
async def test_a_chat_filter_may_answer_or_fail_instead(gives: Any, heard: str | None) -> None:
    module = a_module(noting([], "f", "pre_chat", gives))
    routing = Routing(llm=filtering(round_filter(steps_of(module))))
    outcome = await routing.hears("hi")
    assert routing.model.requests == []
    assert (said(outcome) == [heard]) == (heard is not None)
    assert (outcome.error is None) == (heard is not None)


async def test_what_means_nothing_is_a_failure_of_the_run() -> None:
    result, act = await ran(noting([], "f", "pre_invocation", "maybe"))
    assert result.error is not None
    assert (result.error.code, act.runs) == (ErrorCode.FAILED, [])


def test_every_problem_of_a_module_is_named_at_once() -> None:
    module = a_module(
        {"name": "a", "type": "before", "handler": lambda facts: None},
        {"name": "b", "type": "pre_chat"},
        {"type": "pre_chat", "handler": lambda: None, "priority": "high"},
    )
    with pytest.raises(DefinitionError) as raised:
        steps_of(module)
    assert [problem.split(":")[0] for problem in raised.value.problems] == [
        "filter a",
        "filter b",
        "filter number 2",
        "filter number 2",
    ]
    with pytest.raises(DefinitionError, match="no function filters"):
        steps_of(ModuleType("empty"))
