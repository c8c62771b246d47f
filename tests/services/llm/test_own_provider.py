"""A model implemented by a custom function."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.registration.models import model_of
from bot.testing import a_group
from config.settings import Settings
from config.texts import Texts
from function_calls.schema.definition import DefinitionError
from services.clock import Deadlines, SystemClock
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.llm.protocols.own_provider import OwnProvider
from services.refs import ErrorCode, ModelProblem
from tests.fakes.functions import CITY, Recorder
from tests.services.llm.wire import a_body, a_tool_call

HELLO = ModelRequest([ModelMessage("user", "hi")], timeout_seconds=5)


class Provider:
    """Returns or raises the items of a script, and records its arguments."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.given: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []

    async def call_with_functions(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        self.given.append((messages, tools))
        step = self.script.pop(0)
        if isinstance(step, BaseException):
            raise step
        return step


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("whole", [True, False], ids=["a completion", "a message"])
async def test_a_function_of_ones_own_picks_functions_like_any_model(whole: bool) -> None:
    calls = [a_tool_call('{"city": "Oslo"}', "climate")]
    asks = a_body(calls=calls) if whole else {"role": "assistant", "content": None, "tool_calls": calls}
    provider = Provider(asks, "It is cold.")
    climate = Recorder("climate", CITY, gives="cold")
    model = OwnProvider("ours", provider.call_with_functions)
    async with a_group([climate.spec], model=model) as group:
        assert await group.say("Ann", "@Rollcall how is Oslo?") == ["It is cold."]
    assert climate.runs == [{"city": "Oslo"}]
    messages, tools = provider.given[1]
    assert "climate" in [tool["function"]["name"] for tool in tools]
    assert [message["role"] for message in messages[-2:]] == ["assistant", "tool"]


@pytest.mark.parametrize(
    ("returned", "code", "trouble"),
    [
        (RuntimeError("sk-secret"), ErrorCode.PROVIDER_ERROR, ModelProblem.OUTAGE),
        (SystemExit(3), ErrorCode.PROVIDER_ERROR, ModelProblem.OUTAGE),
        (ModelError(ErrorCode.PROVIDER_ERROR, "spent", status=402), ErrorCode.PROVIDER_ERROR, ModelProblem.QUOTA),
        ({"choices": []}, ErrorCode.EMPTY_RESPONSE, ModelProblem.ANSWER),
        ({"error": {"message": "no", "code": 401}}, ErrorCode.PROVIDER_ERROR, ModelProblem.KEY),
        (None, ErrorCode.MALFORMED_BY_PROVIDER, ModelProblem.ANSWER),
        ({"content": object()}, ErrorCode.MALFORMED_BY_PROVIDER, ModelProblem.ANSWER),
    ],
    ids=["raises", "ends the process", "says what is wrong", "empty", "error", "nothing", "no JSON"],
)
async def test_whatever_it_does_wrong_is_an_error_of_a_model(
    returned: Any, code: ErrorCode, trouble: ModelProblem
) -> None:
    with pytest.raises(ModelError) as caught:
        await OwnProvider("ours", Provider(returned).call_with_functions).complete(HELLO)
    assert (caught.value.code, caught.value.problem) == (code, trouble)


async def test_a_value_of_the_wrong_type_is_named_with_what_to_return() -> None:
    async def gives_an_answer(messages: Any, tools: Any) -> Any:
        return ModelAnswer("Hi")

    def gives_at_once(messages: Any, tools: Any) -> Any:
        return "Hi"

    said = []
    for function in (gives_an_answer, gives_at_once):
        with pytest.raises(ModelError) as caught:
            await OwnProvider("ours", function).complete(HELLO)
        said.append(str(caught.value))
    assert said == [
        "ours returned a ModelAnswer: return a text, or a message or a completion as a dict",
        "ours has to be an `async def`",
    ]


async def test_one_that_hangs_is_left_at_the_deadline() -> None:
    async def hang(messages: Any, tools: Any) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ModelError) as caught:
        await OwnProvider("ours", hang).complete(ModelRequest(HELLO.messages, timeout_seconds=0.05))
    assert caught.value.code is ErrorCode.TIMEOUT


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a module with a provider."""
    (tmp_path / "an_authors_provider.py").write_text(
        "async def ask(messages, tools):\n    return f'heard {messages[-1][\"content\"]}'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "an_authors_provider"
    sys.modules.pop("an_authors_provider", None)


def the_model(function: str) -> Any:
    settings = Settings.model_validate(
        {"models": [{"name": "ours", "protocol": "function", "function": function, "model": "m-1"}]}
    )
    clock = SystemClock()
    return model_of(settings, Texts(), clock, Deadlines(clock))


async def test_the_settings_name_it_by_module_and_function(module: str) -> None:
    answer = await the_model(f"{module}:ask").complete(HELLO)
    assert (answer.text, answer.by, answer.model) == ("heard hi", "ours", "m-1")


@pytest.mark.parametrize("path", ["no_such_module_here:ask", "an_authors_provider:missing"])
async def test_one_that_is_not_there_is_named_at_the_start(path: str, module: str) -> None:
    with pytest.raises(DefinitionError, match=f"models.ours.function.*{path}"):
        the_model(path)
