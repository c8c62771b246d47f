"""Settings of models, and requests to the configured one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest

from bot.registration.models import model_of
from config.sections.models import Dialect, ModelProfileSettings, ModelSettings
from config.settings import Settings
from config.texts import Texts
from services.clock import Deadlines, SystemClock
from services.llm.model import ModelMessage, ModelRequest, Offer
from services.llm.offline.offline import OfflineModel
from services.llm.profile import ModelProfile
from services.llm.reading.dialects import DIALECTS
from tests.fakes.openai_server import OpenAIServer, Received
from tests.fakes.wires import WIRES, Wire
from tests.services.llm.test_encoding import WEATHER

LEAK = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'


async def asked(answer: dict[str, Any], **settings: Any) -> tuple[Any, Received]:
    """Answer of the model that `settings` select, and the request that its server received."""
    async with OpenAIServer([answer]) as server:
        written = {"name": "main", "model": "m-1", "base_url": server.base_url, "api_key": "k", **settings}
        clock = SystemClock()
        model = model_of(Settings.model_validate({"models": [written]}), Texts(), clock, Deadlines(clock))
        request = ModelRequest([ModelMessage("user", "cold?")], Offer([WEATHER]), timeout_seconds=20)
        try:
            got = await model.complete(request)
        finally:
            await model.close()
    return got, server.requests[0]


@pytest.mark.requirement("D16", "D28")
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_every_protocol_of_the_settings_is_spoken(wire: Wire) -> None:
    answer = wire.calls("", [("get_weather", {"city": "Oslo"})])
    got, received = await asked(answer, protocol=wire.name, max_output_tokens=100, temperature=0.5)
    assert [(one.name, one.arguments) for one in got.calls] == [("get_weather", {"city": "Oslo"})]
    assert received.path == ("/v1/messages" if wire.name == "anthropic" else "/v1/chat/completions")
    limit = "max_tokens" if wire.name == "anthropic" else "max_completion_tokens"
    assert (received.json["model"], received.json[limit], received.json["temperature"]) == ("m-1", 100, 0.5)


async def test_what_the_profile_says_reaches_the_wire() -> None:
    openai = next(wire for wire in WIRES if wire.name == "openai")
    _, plain = await asked(openai.says("Hi"))
    assert "strict" not in plain.json["tools"][0]["function"]
    assert "parallel_tool_calls" not in plain.json
    _, told = await asked(openai.says("Hi"), profile={"strict": True}, parallel_calls=False)
    assert told.json["tools"][0]["function"]["strict"] is True
    assert told.json["parallel_tool_calls"] is False
    got, _ = await asked(openai.says(LEAK), profile={"dialect": "qwen"})
    assert [one.arguments for one in got.calls] == [{"city": "Oslo"}]


async def test_a_server_without_function_calling_is_spoken_to_in_prose() -> None:
    refusal = {"status": 400, "body": {"error": {"message": "m-1 does not support tools"}}}
    prose = next(wire for wire in WIRES if wire.name == "json_text")
    async with OpenAIServer([refusal, prose.calls("", [("get_weather", {"city": "Oslo"})])]) as server:
        settings = ModelSettings.model_validate({"name": "main", "model": "m-1", "base_url": server.base_url})
        model = model_of(Settings(models=(settings,)), Texts(), SystemClock(), Deadlines(SystemClock()))
        got = await model.complete(ModelRequest([ModelMessage("user", "cold?")], Offer([WEATHER]), timeout_seconds=20))
        await model.close()
    assert [one.arguments for one in got.calls] == [{"city": "Oslo"}]


def test_without_a_usable_model_the_offline_one_answers() -> None:
    unusable = ModelSettings.model_validate({"name": "main", "model": "m-1"})
    assert isinstance(
        model_of(Settings(models=(unusable,)), Texts(), SystemClock(), Deadlines(SystemClock())), OfflineModel
    )


def test_the_settings_know_the_dialects_that_there_are() -> None:
    assert set(get_args(Dialect)) == set(DIALECTS)


def test_a_profile_that_says_nothing_is_as_cautious_as_the_code() -> None:
    said, usual = ModelProfileSettings(), {field.name: field.default for field in fields(ModelProfile)}
    assert (said.strict, said.tool_choice, said.reasoning_echo, said.dialect) == (
        usual["strict"],
        usual["tool_choice_required"],
        usual["echo_reasoning"],
        usual["dialect"],
    )
