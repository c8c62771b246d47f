"""A model that repeats calls has to answer at last, whatever the cycle is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.texts import Texts
from function_calls.spec import ToolError
from services.llm.model import ModelAnswer, ModelRequest
from services.refs import ErrorCode, ReasonCode
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls, says
from tests.fakes.wired_model import each_protocol as each_protocol
from tests.function_calls.routing import Routing, said

pytestmark = [pytest.mark.requirement("D28"), pytest.mark.usefixtures("each_protocol")]

TEXT = {"text": {"type": "string", "required": True}}
CONFUSED = Texts().of("en").say("failures.model_confused")
Call = tuple[str, str]
"""Name of a function and its only argument."""


def looking(gives: Any = ("ok", "nothing new")) -> list[Recorder]:
    """Two read functions."""
    return [Recorder(name, TEXT, gives=gives) for name in ("look", "peek")]


def a_model_that(wants: Iterator[list[Call]], gives_in: bool) -> Callable[[ModelRequest], ModelAnswer]:
    """Makes the calls of `wants` endlessly; `gives_in`: answers with text when no more calls are allowed."""
    numbers = itertools.count()

    def answer(request: ModelRequest) -> ModelAnswer:
        if gives_in and request.tool_choice == "none":
            return says("That is all I know.")
        return calls(*[call(name, f"c{next(numbers)}", text=text) for name, text in next(wants)])

    return answer


identical = st.builds(lambda text: itertools.repeat([("look", text)]), st.text(max_size=5))
alternating = st.builds(
    lambda texts: itertools.cycle([[("look" if at % 2 else "peek", text)] for at, text in enumerate(texts)]),
    st.lists(st.text(max_size=3), min_size=2, max_size=3),
)
growing = st.builds(
    lambda start, more: ([("look", start + more * count)] for count in itertools.count()),
    st.text(min_size=1, max_size=3),
    st.text(min_size=1, max_size=3),
)
ever_new = st.builds(lambda start: ([("look", f"{start}{count}")] for count in itertools.count()), st.text(max_size=3))
crowded = st.builds(
    lambda width: ([("look", f"{at} {count}") for count in range(width)] for at in itertools.count()),
    st.integers(2, 16),
)


@pytest.mark.requirement("B13")
@given(wants=st.one_of(identical, alternating, growing, ever_new, crowded), gives_in=st.booleans())
async def test_a_looping_model_stops_within_six_rounds_and_sixteen_calls_with_one_message(
    wants: Iterator[list[Call]], gives_in: bool
) -> None:
    functions = looking()
    routing = Routing(*functions, script=[a_model_that(wants, gives_in)] * 20)
    outcome = await routing.hears("what is new?")
    assert len(routing.model.requests) <= 6
    assert sum(len(one.runs) for one in functions) <= 16
    (text,) = said(outcome)
    assert text
    assert outcome.reason in (ReasonCode.FUNCTION, ReasonCode.MODEL_FAILED)


@given(wants=st.one_of(identical, alternating, growing), gives_in=st.booleans())
async def test_each_effect_of_a_looping_model_is_heard_and_none_happens_twice(
    wants: Iterator[list[Call]], gives_in: bool
) -> None:
    async def note(context: Any, arguments: dict[str, Any], run: Any) -> str:
        return f"Noted: {arguments['text']!r}"

    functions = [Recorder(name, TEXT, does=note, effect="once") for name in ("look", "peek")]
    routing = Routing(*functions, script=[a_model_that(wants, gives_in)] * 20)
    heard = said(await routing.hears("note it"))
    happened = [f"Noted: {run['text']!r}" for one in functions for run in one.runs]
    assert sorted(text for text in heard if text.startswith("Noted")) == sorted(happened)
    assert all(len(one.runs) == len({run["text"] for run in one.runs}) for one in functions)
    lines = [text for text in heard if "one: " in text]
    assert len(heard) - len(lines) <= len(happened) + 1
    assert len(lines) <= 1


@pytest.mark.parametrize(
    ("wanted", "requests"),
    [
        ([[("look", "a")]] * 3, 4),
        ([[("look", "a")], [("peek", "b")]] * 2, 5),
        ([[("look", "a")], [("look", "ab")], [("look", "abc")]], 4),
        ([[("look", "a")], [("look", "b")], [("look", "c")]], 4),
    ],
    ids=["the same call", "in turns", "growing", "the same result"],
)
async def test_what_brings_nothing_new_is_followed_by_a_request_for_words(
    wanted: list[list[Call]], requests: int
) -> None:
    routing = Routing(*looking(), script=[a_model_that(iter(wanted), gives_in=True)] * 9)
    assert said(await routing.hears("what is new?")) == ["That is all I know."]
    assert [one.tool_choice for one in routing.model.requests] == ["auto"] * (requests - 1) + ["none"]


async def test_a_failure_that_repeats_is_a_loop_too() -> None:
    routing = Routing(
        *looking(ToolError("Nobody answers.", ErrorCode.TRANSIENT)),
        script=[a_model_that(itertools.repeat([("look", "a")]), gives_in=False)] * 9,
    )
    assert said(await routing.hears("look")) == ["Nobody answers."]
    assert len(routing.model.requests) == 4


async def test_a_model_that_learns_something_in_every_round_may_use_them_all() -> None:
    async def look(context: Any, arguments: dict[str, Any], run: Any) -> tuple[str, str]:
        return "ok", arguments["text"] * 2

    wants = ([("look", f"{count} of five")] for count in range(5))
    routing = Routing(Recorder("look", TEXT, does=look), script=[a_model_that(wants, gives_in=True)] * 9)
    assert said(await routing.hears("look around")) == ["That is all I know."]
    assert len(routing.model.requests) == 6


async def test_what_was_found_and_that_the_rest_failed_is_one_message() -> None:
    script = [a_model_that(itertools.repeat([("look", "a")]), gives_in=False)] * 9
    routing = Routing(Recorder("look", TEXT, gives="It rains."), script=script)
    assert said(await routing.hears("look")) == [f"It rains.\n{CONFUSED}"]
