"""Settings of models, and requests to the configured one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest

from bot.live.settings import secrets_of
from bot.registration.models import model_of, online_models
from config.sections.models import Dialect, ModelProfileSettings, ModelSettings
from config.settings import Settings
from config.texts import Texts
from services.clock import Deadlines, SystemClock
from services.llm.model import ModelError, ModelMessage, ModelRequest, Offer
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


PARAMETERS: dict[str, Any] = {
    "top_p": 0.9,
    "extra_body": {"service_tier": "flex", "metadata": {"bot": "x"}},
    "headers": {"X-Project": "secret-project"},
    "api_version": "2024-10-21",
}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_parameters_of_the_settings_reach_the_server_with_every_protocol(wire: Wire) -> None:
    _, received = await asked(wire.says("Hi"), protocol=wire.name, **PARAMETERS)
    assert received.path.endswith("?api-version=2024-10-21")
    assert received.headers["x-project"] == "secret-project"
    body = received.json
    assert (body["top_p"], body["service_tier"], body["metadata"]) == (0.9, "flex", {"bot": "x"})
    if wire.name != "anthropic":
        _, received = await asked(wire.says("Hi"), protocol=wire.name, reasoning_effort="minimal")
        assert received.json["reasoning_effort"] == "minimal"


async def test_a_server_may_get_its_key_in_a_custom_header_only() -> None:
    openai = next(wire for wire in WIRES if wire.name == "openai")
    _, received = await asked(openai.says("Hi"), api_key="", headers={"api-key": "azure-key"})
    assert received.headers["api-key"] == "azure-key"
    assert "authorization" not in received.headers
    _, received = await asked(openai.says("Hi"), api_key="", headers={"Authorization": "Basic abcdef"})
    assert received.headers["authorization"] == "Basic abcdef"


async def test_a_header_is_not_in_errors_and_known_to_the_redaction() -> None:
    refusal = {"status": 401, "body": {"error": {"message": "no project secret-project"}}}
    with pytest.raises(ModelError) as caught:
        await asked(refusal, headers={"X-Project": "secret-project"})
    assert "secret-project" not in str(caught.value)
    assert "no project ***" in str(caught.value)
    headers = {"X-Project": "secret-project", "X-Title": "Rollcall"}
    written = {"models": [{"name": "main", "model": "m", "headers": headers}]}
    settings = Settings.model_validate(written)
    assert "secret-project" in secrets_of(settings)
    assert "Rollcall" not in secrets_of(settings)
    assert "secret-project" not in repr(settings)


async def test_the_probe_of_doctor_sends_the_parameters() -> None:
    openai = next(wire for wire in WIRES if wire.name == "openai")
    async with OpenAIServer([openai.says("OK")]) as server:
        written = {"name": "main", "model": "m-1", "base_url": server.base_url, **PARAMETERS, "reasoning_effort": "low"}
        (model,) = online_models(Settings.model_validate({"models": [written]}), SystemClock())
        await model.probe()
        await model.close()
        (received,) = server.requests
    assert received.path.endswith("?api-version=2024-10-21")
    assert (received.headers["x-project"], received.json["reasoning_effort"]) == ("secret-project", "low")
    assert received.json["service_tier"] == "flex"


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
