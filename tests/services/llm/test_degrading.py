"""After a server has rejected function calling, functions are described in text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from services.clock import SystemClock
from services.llm.model import ModelError, ModelMessage, ModelRequest, Offer
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.protocols.text_protocol import TextProtocol
from services.llm.resilient import DegradingModel, refuses_tools
from services.refs import ErrorCode
from tests.fakes.openai_server import OpenAIServer
from tests.services.llm.test_encoding import WEATHER
from tests.services.llm.wire import a_body

ASKED = ModelRequest([ModelMessage("user", "cold in Oslo?")], Offer([WEATHER]), timeout_seconds=20.0)
NO_TOOLS = {"status": 400, "body": {"error": {"message": "registry/gemma:2b does not support tools"}}}
IN_PROSE = {"body": a_body('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}')}


@asynccontextmanager
async def talking_to(*script: dict[str, object]) -> AsyncIterator[tuple[OpenAIServer, DegradingModel]]:
    async with OpenAIServer(script) as server:
        profile, clock = ModelProfile("main", "m-1", server.base_url, SecretStr("k")), SystemClock()
        model = DegradingModel(OpenAIChat(profile, clock), lambda: TextProtocol(profile, clock, "json"))
        try:
            yield server, model
        finally:
            await model.close()


@pytest.mark.requirement("D28")
async def test_the_question_is_asked_again_in_prose_and_later_ones_at_once() -> None:
    async with talking_to(NO_TOOLS, IN_PROSE, IN_PROSE) as (server, model):
        with capture_logs() as logs:
            answers = [await model.complete(ASKED), await model.complete(ASKED)]
    assert [[one.arguments for one in answer.calls] for answer in answers] == [[{"city": "Oslo"}]] * 2
    assert ["tools" in json.loads(one.body) for one in server.requests] == [True, False, False]
    assert [(one["event"], one["model"], one["log_level"]) for one in logs] == [
        ("model_without_tools", "main", "warning")
    ]


async def test_any_other_refusal_changes_nothing() -> None:
    refused = {"status": 400, "body": {"error": {"message": "Invalid schema for function 'get_weather'"}}}
    async with talking_to(refused, NO_TOOLS, IN_PROSE) as (server, model):
        with pytest.raises(ModelError):
            await model.complete(ASKED)
        await model.complete(ASKED)
    assert ["tools" in json.loads(one.body) for one in server.requests] == [True, True, False]


async def test_a_probe_finds_out_and_says_so() -> None:
    async with talking_to(NO_TOOLS, {"body": a_body("OK")}) as (_, model):
        line = await model.probe()
    assert line.startswith("m-1 answered in ")
    assert line.endswith("without function calling: calls are read from its text")
    async with talking_to({"body": a_body("OK")}) as (_, model):
        assert "function" not in await model.probe()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (400, "Unrecognized request arguments supplied: tool_choice, tools"),
        (400, "Unrecognized request argument supplied: tools"),
        (400, "deepseek-reasoner does not support Function Calling"),
        (400, "`tool calling` is not supported with this model"),
        (422, "Function calling is not enabled for this model"),
        (400, "This model doesn't support tool calls"),
        (400, "tools are not supported in this endpoint"),
        (422, '[{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]'),
        (500, "tools param requires --jinja flag"),
        (501, "tool use is currently not available"),
    ],
)
def test_a_refusal_of_tools_is_known_in_its_many_wordings(status: int, message: str) -> None:
    assert refuses_tools(ModelError(ErrorCode.PROVIDER_ERROR, message, status=status))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid schema for function 'get_weather': 'dict' is not valid"),
        (400, "tools[0].function.parameters: unknown keyword"),
        (400, "tool_choice 'required' is not supported by this model"),
        (400, "Unsupported parameter: 'parallel_tool_calls'"),
        (400, "messages with role 'tool' must follow a tool call"),
        (400, "this model does not support images"),
        (404, "The model gpt-9 does not exist"),
        (401, "your key does not support tools"),
        (503, "this model does not support tools"),
        (None, "this model does not support tools"),
    ],
)
def test_other_refusals_are_not_taken_for_it(status: int | None, message: str) -> None:
    assert not refuses_tools(ModelError(ErrorCode.PROVIDER_ERROR, message, status=status))
