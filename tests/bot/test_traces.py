"""OpenTelemetry traces of a whole daemon, sent to a receiver on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from pydantic import BaseModel, SecretStr

from bot.testing import a_group, call
from function_calls.context import MessageContext
from function_calls.declaration import tool_function
from services.llm.model import ModelAnswer, ModelError, Usage
from services.refs import ErrorCode
from tests.conftest import REPOSITORY

CONTENT = {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.conversation.id"}


class Receiver:
    """A collector that keeps the spans of all requests."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[SpanMessage] = []
        self.raw = b""

    async def take(self, request: web.Request) -> web.Response:
        self.raw += (body := await request.read())
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return web.Response()

    def named(self, start: str) -> SpanMessage:
        (found,) = [span for span in self.spans if span.name.startswith(start)]
        return found


@asynccontextmanager
async def a_receiver() -> AsyncIterator[Receiver]:
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    yield receiver
    await runner.cleanup()


def facts(span: SpanMessage) -> Mapping[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes if one.HasField("value")
    }


class Weather(BaseModel, frozen=True):
    """A place."""

    city: str
    code: str = ""


@tool_function(effect="read", sensitive=("code",))
async def climate(context: MessageContext, args: Weather) -> str:
    """Climate of a place."""
    return "Cold."


@tool_function(commands=("fail",))
async def fall_apart(context: MessageContext) -> str:
    """Fail."""
    raise RuntimeError("with Tom's number 5551234")


async def test_a_turn_is_a_span_with_its_rounds_and_calls_and_without_texts() -> None:
    async with a_receiver() as receiver:
        settings = {"telemetry": {"traces_url": receiver.url}}
        async with a_group([climate], settings=settings) as group:
            asks = ModelAnswer(
                calls=(call("climate", city="Oslo", code="hush"),),
                finish="tool_calls",
                model="gpt-x-2026",
                request_id="req_1",
                usage=Usage(100, 20, 60),
                by="main",
            )
            group.model.says(asks, "It is cold.")
            await group.say("Ann", "@Rollcall how is Oslo?")
    turn, tool = receiver.named("invoke_agent"), receiver.named("execute_tool climate")
    first, second = (span for span in receiver.spans if span.name.startswith("chat"))
    assert (first.name, second.parent_span_id) == ("chat gpt-x-2026", turn.span_id)
    assert first.parent_span_id == tool.parent_span_id == turn.span_id
    assert facts(turn)["rollcall.turn.reason"] == "function"
    assert facts(turn)["rollcall.turn.id"].isdigit()
    asked = facts(first)
    names = ("gen_ai.operation.name", "rollcall.model", "gen_ai.response.id")
    assert [asked[name] for name in names] == ["chat", "main", "req_1"]
    tokens = [asked[f"gen_ai.usage.{kind}_tokens"] for kind in ("input", "output", "cache_read.input")]
    assert tokens == [100, 20, 60]
    assert facts(tool)["rollcall.call.outcome"] == "ok"
    assert {name for span in receiver.spans for name in facts(span)} & CONTENT == set()
    assert [word for word in (b"Oslo", b"cold", b"Ann", b"hush", b"family") if word in receiver.raw] == []


async def test_errors_are_codes_without_the_words_of_exceptions() -> None:
    async with a_receiver() as receiver:
        settings = {"telemetry": {"traces_url": receiver.url}}
        async with a_group([fall_apart], settings=settings) as group:
            await group.say("Ann", "/fail")
            group.model.says(ModelError(ErrorCode.PROVIDER_ERROR, "said 5551234"))
            await group.say("Ann", "@Rollcall hi")
    failed = [span for span in receiver.spans if span.status.code == Status.STATUS_CODE_ERROR]
    kinds = {span.name: facts(span).get("error.type") for span in failed}
    assert kinds["execute_tool fall_apart"] in ("failed", "RuntimeError")
    assert kinds["chat"] == "provider_error"
    assert b"5551234" not in receiver.raw


async def test_messages_and_arguments_are_included_where_the_settings_ask_for_it_without_secrets() -> None:
    key = "sk-5d2f8a7c9b1e4f60"
    async with a_receiver() as receiver:
        settings = {
            "telemetry": {"traces_url": receiver.url, "traces_content": True},
            "models": [{"name": "main", "model": "m", "api_key": SecretStr(key)}],
        }
        async with a_group([climate], settings=settings) as group:
            group.model.says(call("climate", city="Oslo", code="hush"), "It is cold.")
            await group.say("Ann", f"@Rollcall how is Oslo? {key}")
    assert "how is Oslo?" in facts(receiver.named("invoke_agent"))["gen_ai.input.messages"]
    arguments = facts(receiver.named("execute_tool"))["gen_ai.tool.call.arguments"]
    assert ("Oslo" in arguments, "hush" in arguments) == (True, False)
    assert key.encode() not in receiver.raw


async def test_an_unreachable_receiver_disturbs_no_answer() -> None:
    settings = {"telemetry": {"traces_url": "http://127.0.0.1:9/v1/traces"}}
    async with a_group([climate], settings=settings) as group:
        group.model.says("Hello.")
        assert await group.say("Ann", "@Rollcall hi") == ["Hello."]


def test_without_a_receiver_nothing_of_the_package_is_imported() -> None:
    program = (
        "import asyncio, sys\nfrom bot.testing import a_group\n"
        "async def main():\n    async with a_group() as group:\n        await group.say('Ann', '/roll')\n"
        "asyncio.run(main())\nprint([name for name in sys.modules if name.startswith('opentelemetry.sdk')])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.splitlines()[-1] == "[]"
