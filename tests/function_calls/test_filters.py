"""Filters of a run: their order, their changes, and that every run passes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from function_calls.call import Path
from function_calls.filters.call import CallFilter, Invocation, Proceed
from function_calls.spec import FunctionResult
from services.refs import ErrorCode
from tests.fakes.functions import CITY, Recorder
from tests.function_calls.routing import Routing


def noting(events: list[str], name: str) -> CallFilter:
    """A filter that records its start and end."""

    async def around(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        events.append(f"{name} before {invocation.spec.name}")
        result = await proceed(invocation)
        events.append(f"{name} after {invocation.spec.name}")
        return result

    return around


@pytest.mark.requirement("E8", "E35", "F6")
async def test_a_functions_filters_run_inside_the_global_ones_and_for_it_only() -> None:
    events: list[str] = []
    routing = Routing(
        Recorder("plain"),
        Recorder("guarded", filters=["inner", "innermost"]),
        filters=[noting(events, "global"), noting(events, "second")],
        named_filters={name: noting(events, name) for name in ("inner", "innermost", "unused")},
    )
    await routing.invoke("guarded")
    assert events == [
        "global before guarded",
        "second before guarded",
        "inner before guarded",
        "innermost before guarded",
        "innermost after guarded",
        "inner after guarded",
        "second after guarded",
        "global after guarded",
    ]
    events.clear()
    await routing.invoke("plain")
    assert events == ["global before plain", "second before plain", "second after plain", "global after plain"]


async def test_a_filter_knows_how_and_when_a_run_began_in_the_time_zone_of_the_chat() -> None:
    seen: list[tuple[str, Path, datetime]] = []

    async def note(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        seen.append((invocation.spec.name, invocation.call.path, invocation.call.now))
        return await proceed(invocation)

    async def does(context: Any, arguments: Any, call: Any) -> FunctionResult:
        result: FunctionResult = await call.invoke("inner", {})
        return result

    routing = Routing(Recorder("outer", does=does), Recorder("inner"), filters=[note])
    now = routing.clock.now()
    await routing.invoke("outer")
    assert seen == [("outer", Path.COMMAND, now), ("inner", Path.NESTED, now)]
    assert str(seen[0][2].tzinfo) == "Europe/Oslo"


async def test_a_filter_may_answer_instead_of_the_function() -> None:
    async def refuse(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        return FunctionResult.fail(ErrorCode.REFUSED, "Not today.")

    act = Recorder("act", filters=["refuse"])
    result = await Routing(act, named_filters={"refuse": refuse}).invoke("act")
    assert (result.error and result.error.text, act.runs) == ("Not today.", [])


async def test_a_filter_may_change_arguments_and_result_and_run_again() -> None:
    async def twice(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        invocation.arguments = {"city": invocation.arguments["city"].upper()}
        await proceed(invocation)
        return replace(await proceed(invocation), data="changed")

    act = Recorder("act", CITY)
    result = await Routing(act, filters=[twice]).invoke("act", raw={"city": "Oslo"})
    assert (act.runs, result.data) == ([{"city": "OSLO"}] * 2, "changed")


async def test_a_filter_that_raises_is_a_failure_of_the_run() -> None:
    async def broken(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        raise KeyError("secret")

    act = Recorder("act")
    result = await Routing(act, filters=[broken]).invoke("act")
    assert result.error is not None
    assert (result.error.code, "secret" in result.error.text, act.runs) == (ErrorCode.FAILED, False, [])


@pytest.mark.requirement("E9")
async def test_filters_see_the_free_metadata_of_a_function() -> None:
    seen: list[Any] = []

    async def look(invocation: Invocation, proceed: Proceed) -> FunctionResult:
        seen.append(dict(invocation.spec.origin.metadata))
        return await proceed(invocation)

    await Routing(Recorder("act", metadata={"team": "blue"}, x_cost=3), filters=[look]).invoke("act")
    assert seen == [{"team": "blue", "x_cost": 3}]


@pytest.mark.requirement("D45", "D1")
@pytest.mark.parametrize("nested", [False, True])
async def test_a_nested_run_passes_the_filters_too(nested: bool) -> None:
    events: list[str] = []

    async def outer(context: Any, arguments: Any, call: Any) -> Any:
        return (await call.invoke("inner", {})).reply

    routing = Routing(Recorder("outer", does=outer), Recorder("inner"), filters=[noting(events, "f")])
    await routing.invoke("outer" if nested else "inner")
    assert "f before inner" in events


async def test_the_chain_of_a_function_is_built_once() -> None:
    act = Recorder("act")
    routing = Routing(act, filters=[noting([], "f")])
    await routing.invoke("act")
    chain = routing.invoker._chains[act.spec]
    await routing.invoke("act")
    assert routing.invoker._chains == {act.spec: chain}
