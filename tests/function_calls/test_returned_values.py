"""Return values of handlers: the forms of the handbook, and malformed ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from bot.testing import a_group
from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.loading.python_functions import as_spec
from function_calls.outcome import OutcomeKind
from function_calls.result import message_from_json, message_to_json, result_from_json, result_to_json
from function_calls.spec import (
    ApprovalQuestion,
    Choice,
    ConfirmQuestion,
    FunctionError,
    FunctionResult,
    InputQuestion,
    Message,
    ToolError,
)
from services.refs import ErrorCode, MemberRef, ReasonCode
from tests.fakes.functions import Recorder
from tests.fakes.model import call, calls, says
from tests.function_calls.routing import Routing, said

ANN = MemberRef("test", "bot", "ann")


class Handled(BaseModel):
    """A result as a model of its own."""

    handled: bool
    messages: list[str] = Field(default_factory=list)
    at_list: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)


@dataclass
class Replied:
    """A result as a dataclass."""

    handled: bool
    reply: str | None = None


@pytest.mark.requirement("D34", "D44", "F5")
@pytest.mark.parametrize(
    ("gives", "texts", "mentions"),
    [
        (FunctionResult(True, ["text"]), ["text"], ()),  # type: ignore[arg-type]
        ({"handled": True, "messages": ["a", "b"]}, ["a", "b"], ()),
        ({"handled": True, "messages": ["a"], "at_list": ["ann"]}, ["a"], (ANN,)),
        ({"handled": True, "messages": ["a"], "at_list": [ANN.key, ANN]}, ["a"], (ANN,)),
        ({"handled": True, "reply": "a", "attachments": [{"name": "x", "media_type": "y"}]}, ["a"], ()),
        (Handled(handled=True, messages=["a"], at_list=["ann"], metadata={"n": 1}), ["a"], (ANN,)),
        (Replied(True, "a"), ["a"], ()),
    ],
)
async def test_a_result_of_the_handbook_is_sent(gives: Any, texts: list[str], mentions: Any) -> None:
    routing = Routing(Recorder("act", gives=gives, commands=["act"]))
    outcome = await routing.hears("/act")
    assert (said(outcome), outcome.reason) == (texts, ReasonCode.COMMAND)
    assert FunctionResult(messages=outcome.messages).at_list == mentions


@pytest.mark.parametrize("gives", [{"handled": False}, Handled(handled=False), Replied(False)])
async def test_a_result_that_is_not_handled_leaves_the_message_to_chat(gives: Any) -> None:
    routing = Routing(Recorder("act", gives=gives, commands=["act"]))
    assert (await routing.hears("/act")).kind is OutcomeKind.FALLBACK


async def test_a_mapping_with_other_keys_is_data() -> None:
    routing = Routing(Recorder("act", gives={"handled": True, "orders": 3}))
    assert (await routing.invoke("act")).data == {"handled": True, "orders": 3}


def test_a_result_form_is_no_result_schema() -> None:
    @tool_function()
    async def act(context: MessageContext) -> Handled:
        """Act."""
        return Handled(handled=True)

    assert as_spec(act, {}).prompt.result_schema is None


class Unprintable:
    """It has no text."""

    def __repr__(self) -> str:
        return "Unprintable()"

    def __str__(self) -> str:
        raise RuntimeError("no text")


class UnprintableError(Unprintable, Exception):
    """An exception of that kind."""


def circular() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


MALFORMED: list[Callable[[], Any]] = [
    lambda: FunctionResult("text"),  # type: ignore[arg-type]
    lambda: FunctionResult(True, "text"),  # type: ignore[arg-type]
    lambda: FunctionResult(True, [None]),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message(5),)),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message("a", to="ann"),)),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message("a", to=0),)),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message("a", mentions=("ann",)),)),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message("a", attachments=("x",)),)),  # type: ignore[arg-type]
    lambda: FunctionResult(messages=(Message("a", choices=(5,)),)),  # type: ignore[arg-type]
    lambda: FunctionResult(error="boom"),  # type: ignore[arg-type]
    lambda: FunctionResult(error=FunctionError("boom", "x")),  # type: ignore[arg-type]
    lambda: FunctionResult(error=FunctionError(ErrorCode.FAILED, None)),  # type: ignore[arg-type]
    lambda: FunctionResult(question="sure?"),  # type: ignore[arg-type]
    lambda: FunctionResult(question=InputQuestion(5, "act", {})),  # type: ignore[arg-type]
    lambda: FunctionResult(question=ApprovalQuestion("a", "act", {}, terms=None)),  # type: ignore[arg-type]
    lambda: FunctionResult(context_updates=[1]),  # type: ignore[arg-type]
    lambda: FunctionResult(metadata=None),  # type: ignore[arg-type]
    lambda: FunctionResult(data=circular()),
    lambda: FunctionResult(data=nested(5000)),
    lambda: FunctionResult(data=nested(300)),
    lambda: FunctionResult(data=Unprintable()),
    lambda: {"handled": "yes"},
    lambda: {"handled": True, "messages": 5},
    lambda: {"handled": True, "messages": "text"},
    lambda: {"handled": True, "messages": ["a"], "at_list": "ann,bo"},
    lambda: {"handled": True, "at_list": ["ann"]},
    lambda: {"handled": True, "attachments": [{"size": 1}]},
    lambda: {"handled": True, "metadata": 5},
    circular,
    lambda: nested(5000),
    lambda: {1, 2},
    lambda: b"bytes",
    object,
    lambda: FunctionResult,
    lambda: (one for one in ()),
    lambda: ("error", Unprintable()),
    lambda: ("ok", 1, {"a": Unprintable()}),
]


@pytest.mark.requirement("E16", "E50")
@pytest.mark.parametrize("number", range(len(MALFORMED)))
async def test_a_malformed_result_is_a_failed_and_recorded_run(number: int) -> None:
    async def act(context: Any, arguments: Any, run: Call) -> Any:
        return MALFORMED[number]()

    routing = Routing(Recorder("act", does=act, commands=["act"]), script=[calls(call("act")), says("Sorry.")])
    outcome = await routing.hears("/act")
    assert (outcome.reason, outcome.error) == (ReasonCode.FUNCTION_FAILED, ErrorCode.FAILED)
    assert said(await routing.hears("act for me")) == ["Sorry."]
    assert [run[1].error and run[1].error.code for run in routing.recorded] == [ErrorCode.FAILED] * 2


@pytest.mark.parametrize(
    "error",
    [UnprintableError(), ToolError(5), ToolError("x", "boom"), ToolError("\ud800"), OSError("\ud800\0")],  # type: ignore[arg-type]
)
async def test_an_exception_with_unusable_details_is_a_failed_and_recorded_run(error: Exception) -> None:
    routing = Routing(Recorder("act", gives=error, commands=["act"]))
    assert (await routing.hears("/act")).reason is ReasonCode.FUNCTION_FAILED
    assert routing.recorded[0][1].error is not None


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=3)
    | st.decimals()
    | st.datetimes()
    | st.sampled_from([object(), int, Unprintable(), Decimal(1), ErrorCode.FAILED, ANN, Choice("a", "b")])
    | st.builds(Attachment, st.text(max_size=3), st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["handled", "messages", "at_list", "reply", "metadata", "data", "error", 5, None, (1,)]),
            inner,
            max_size=4,
        )
        | st.builds(Message, inner, inner, inner, inner, inner, inner, inner, inner)
        | st.builds(FunctionError, inner, inner, inner)
        | st.builds(InputQuestion, inner, inner, inner, resume=inner)
        | st.builds(ConfirmQuestion, inner, inner, inner)
        | st.builds(FunctionResult, inner, inner, inner, inner, inner, inner, inner, inner)
        | st.builds(FunctionResult, st.booleans(), inner, inner)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(value=ANYTHING)
def test_any_value_of_a_handler_ends_the_turn_with_a_recorded_result(value: Any) -> None:
    async def act(context: Any, arguments: Any, run: Call) -> Any:
        return value

    async def check() -> None:
        routing = Routing(Recorder("act", does=act, commands=["act"]), script=[calls(call("act")), says("Done.")] * 2)
        for text in ("/act", "act for me"):
            outcome = await routing.hears(text)
            for message in outcome.messages:
                assert message_from_json(orjson.loads(orjson.dumps(message_to_json(message)))) == message
        assert routing.recorded
        for _, result in routing.recorded:
            result_from_json(orjson.loads(orjson.dumps(result_to_json(result), default=str)))

    asyncio.run(check())


async def test_a_malformed_result_does_not_end_a_daemons_turn() -> None:
    act = Recorder("act", does=lambda *_: _malformed(), commands=["act"], effect="idempotent")
    async with a_group(functions=[act.spec]) as group:
        [answer] = await group.say("Ann", "/act")
        assert "act" in answer
        assert await group.say("Ann", "/id") != []


async def _malformed() -> Any:
    return FunctionResult(messages=(Message("a", to="ann"),), data=circular())  # type: ignore[arg-type]
