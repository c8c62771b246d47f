"""What an operator can read about each question to a model."""

from __future__ import annotations

import pytest
import structlog

from services.llm.model import ModelAnswer, ModelRequest, Usage
from tests.fakes.functions import CITY, Recorder
from tests.fakes.model import call, calls, says
from tests.function_calls.routing import Routing


@pytest.mark.requirement("D47")
async def test_each_answer_is_logged_with_its_request_its_duration_and_its_tokens() -> None:
    async def slowly(_: ModelRequest) -> ModelAnswer:
        await routing.clock.advance(1.5)
        return calls(call("weather", city="Oslo"), request_id="req-1", model="m", usage=Usage(100, 7))

    routing = Routing(Recorder("weather", CITY), script=[slowly, says("Cold.", request_id="req-2", model="m")])
    with structlog.testing.capture_logs() as logged:
        await routing.hears("how is Oslo?")
    first, second = [line for line in logged if line["event"] == "model_answered"]
    assert (first["request_id"], first["duration_ms"], first["round"]) == ("req-1", 1500, 0)
    assert (first["model"], first["prompt_tokens"], first["completion_tokens"]) == ("m", 100, 7)
    assert (second["request_id"], second["duration_ms"], second["round"]) == ("req-2", 0, 1)
    assert "Oslo" not in str(logged)
