"""OpenAIChat with a real server on 127.0.0.1."""

import asyncio
import gzip
import json
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from services.clock import SystemClock, VirtualClock
from services.llm.model import ModelAnswer, ModelError, ModelMessage, ModelRequest
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.resilient import ResilientModel
from services.refs import ErrorCode
from services.retry import Retry
from tests.fakes.openai_server import OpenAIServer
from tests.services.llm.wire import a_body, a_tool_call

KEY = "sk-very-secret"
HELLO = ModelRequest([ModelMessage("user", "hi")], timeout_seconds=20.0)
BUSY = {"error": {"message": "slow down", "type": "rate_limit"}}


@asynccontextmanager
async def talking_to(*script: dict[str, Any]) -> AsyncIterator[tuple[OpenAIServer, OpenAIChat]]:
    async with OpenAIServer(script) as server:
        profile = ModelProfile("main", "m-1", server.base_url, SecretStr(KEY))
        model = OpenAIChat(profile, SystemClock())
        try:
            yield server, model
        finally:
            await model.close()


async def failure_of(*script: dict[str, Any], request: ModelRequest = HELLO) -> ModelError:
    async with talking_to(*script) as (_, model):
        with pytest.raises(ModelError) as caught:
            await model.complete(request)
        return caught.value


@pytest.mark.requirement("D27", "D47")
async def test_an_answer_is_read_and_the_request_is_what_was_encoded() -> None:
    answer = {"body": a_body(calls=[a_tool_call('{"city":"Oslo"}')]), "headers": {"X-Request-Id": "req_7"}}
    async with talking_to(answer) as (server, model):
        got = await model.complete(HELLO)
        (received,) = server.requests
        assert [(call.name, call.arguments) for call in got.calls] == [("get_weather", {"city": "Oslo"})]
        assert got.request_id == "req_7"
        assert (received.method, received.path) == ("POST", "/v1/chat/completions")
        assert received.body == model.encode(HELLO)
        assert received.headers["authorization"] == f"Bearer {KEY}"
        assert received.headers["content-type"] == "application/json"


async def test_a_server_that_wants_no_key_gets_none() -> None:
    async with OpenAIServer([{"body": a_body("Hi")}]) as server:
        model = OpenAIChat(ModelProfile("main", "m-1", server.base_url, SecretStr("")), SystemClock())
        assert (await model.complete(HELLO)).text == "Hi"
        await model.close()
    assert "authorization" not in server.requests[0].headers


async def test_one_connection_serves_many_requests_at_once() -> None:
    async with talking_to(*({"body": a_body("Hi")} for _ in range(50))) as (server, model):
        answers = await asyncio.gather(*(model.complete(HELLO) for _ in range(50)))
        assert {answer.text for answer in answers} == {"Hi"}
        assert len(server.requests) == 50


@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (403, False), (404, False), (413, False), (500, True)]
)
async def test_a_refusal_carries_its_status_and_is_sent_once(status: int, retryable: bool) -> None:
    async with talking_to({"status": status, "body": BUSY, "headers": {"x-request-id": "req_8"}}) as (server, model):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        error = caught.value
        assert (error.code, error.status, error.retryable) == (ErrorCode.PROVIDER_ERROR, status, retryable)
        assert error.request_id == "req_8"
        assert "slow down" in str(error)
        assert len(server.requests) == 1


async def test_the_wait_that_a_busy_provider_asks_for_is_reported() -> None:
    assert (await failure_of({"status": 429, "body": BUSY, "headers": {"Retry-After": "7"}})).retry_after_seconds == 7.0
    dated = {"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert (await failure_of({"status": 429, "body": BUSY, "headers": dated})).retry_after_seconds == 30.0


async def test_a_page_instead_of_an_answer_is_malformed() -> None:
    error = await failure_of({"body": "<html><body>Welcome to our wifi</body></html>"})
    assert (error.code, error.retryable) == (ErrorCode.MALFORMED_BY_PROVIDER, True)


async def test_a_silent_provider_is_left_at_the_deadline() -> None:
    began = time.monotonic()
    error = await failure_of({"delay_seconds": 600}, request=ModelRequest(HELLO.messages, timeout_seconds=1.5))
    assert (error.code, error.retryable) == (ErrorCode.TIMEOUT, True)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("after_bytes", [0, 20])
async def test_a_dropped_connection_may_be_tried_again(after_bytes: int) -> None:
    error = await failure_of({"body": a_body("Hi"), "close_after_bytes": after_bytes})
    assert (error.code, error.retryable) == (ErrorCode.TRANSIENT, True)


async def test_a_server_that_is_not_there_may_be_tried_again() -> None:
    async with OpenAIServer([]) as server:
        gone = server.base_url
    model = OpenAIChat(ModelProfile("main", "m-1", gone, SecretStr(KEY)), SystemClock())
    with pytest.raises(ModelError) as caught:
        await model.complete(HELLO)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.TRANSIENT, True)
    await model.close()


async def test_a_redirect_is_not_followed_so_the_key_stays_where_it_belongs() -> None:
    async with OpenAIServer([{"body": a_body("gotcha")}]) as other:
        location = {"location": f"{other.base_url}/chat/completions"}
        for status in (301, 302, 307, 308):
            error = await failure_of({"status": status, "headers": location})
            assert (error.code, error.status, error.retryable) == (ErrorCode.PROVIDER_ERROR, status, False)
        assert other.requests == []


async def test_the_key_is_never_in_an_error_even_if_the_provider_quotes_it() -> None:
    error = await failure_of({"status": 401, "body": {"error": {"message": f"bad key {KEY}"}}})
    assert KEY not in str(error)
    assert "bad key ***" in str(error)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_without_end_is_read_up_to_the_limit(status: int) -> None:
    bomb = {"status": status, "body": gzip.compress(b" " * 200_000_000, 9), "headers": {"content-encoding": "gzip"}}
    tracemalloc.start()
    try:
        error = await failure_of(bomb)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error.code is (ErrorCode.MALFORMED_BY_PROVIDER if status == 200 else ErrorCode.PROVIDER_ERROR)
    assert peak_bytes < 64 * 1024 * 1024


async def test_a_compressed_answer_is_read_and_a_broken_one_may_be_tried_again() -> None:
    packed = gzip.compress(json.dumps(a_body("Hi")).encode())
    headers = {"content-encoding": "gzip"}
    async with talking_to({"body": packed, "headers": headers}) as (_, model):
        assert (await model.complete(HELLO)).text == "Hi"
    error = await failure_of({"body": b"not gzip at all", "headers": headers})
    assert (error.code, error.retryable) == (ErrorCode.TRANSIENT, True)


async def test_a_short_body_does_not_disturb_the_next_answer() -> None:
    short = {"body": a_body("first"), "headers": {"content-length": "10"}}
    async with talking_to(short, {"body": a_body("second")}) as (_, model):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO)
        assert caught.value.retryable
        assert (await model.complete(HELLO)).text == "second"


async def test_a_failure_that_passes_is_asked_again() -> None:
    script = [{"status": 500, "body": BUSY}, {"body": "<html>"}, {"body": a_body("Hi")}]
    async with talking_to(*script) as (server, model):
        answer = await complete_patiently(model)
        assert answer.text == "Hi"
        assert len(server.requests) == 3
        assert len({request.body for request in server.requests}) == 1


async def complete_patiently(model: OpenAIChat) -> ModelAnswer:
    """The answer of a resilient model whose delays take no time."""
    clock = VirtualClock()
    retry = Retry(clock, jitter=lambda _low, _high: 0.0)
    return await ResilientModel(model, retry, clock).complete(HELLO)


async def test_a_probe_says_which_model_answered_and_fails_as_a_request_does() -> None:
    async with talking_to({"body": a_body("OK")}, {"status": 401, "body": BUSY}) as (_, model):
        assert (await model.probe()).startswith("m-1 answered in ")
        with pytest.raises(ModelError):
            await model.probe()


async def test_a_closed_model_may_be_closed_again() -> None:
    async with talking_to({"body": a_body("Hi")}) as (_, model):
        await model.complete(HELLO)
        await model.close()
