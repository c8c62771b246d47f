"""AnthropicMessages: request bodies, and a real server on 127.0.0.1."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from services.clock import SystemClock, VirtualClock
from services.llm.model import (
    UNSEEN,
    Image,
    ModelError,
    ModelMessage,
    ModelRequest,
    Offer,
    ToolCall,
    answer_from_json,
    answer_to_json,
)
from services.llm.profile import ModelProfile
from services.llm.protocols.anthropic_messages import AnthropicMessages
from services.refs import ErrorCode
from tests.fakes.openai_server import OpenAIServer
from tests.services.llm.anthropic_wire import a_message, a_text, a_use, read
from tests.services.llm.test_encoding import NEWS, WEATHER, a_conversation

GOLDEN = Path(__file__).parents[2] / "golden" / "anthropic" / "request_full.json"
HELLO = ModelRequest([ModelMessage("user", "hi")], timeout_seconds=20.0)
KEY = "sk-ant-secret"


def a_model(**profile: Any) -> AnthropicMessages:
    fields = {"name": "main", "model": "c-1", "base_url": "http://127.0.0.1:1/v1", "api_key": SecretStr(KEY), **profile}
    return AnthropicMessages(ModelProfile(**fields), VirtualClock())


def sent(request: ModelRequest, **profile: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(a_model(**profile).encode(request))
    return body


def is_well_formed(turns: list[dict[str, Any]]) -> bool:
    """Whether roles alternate, start with the user, and each call is answered immediately and first."""
    roles = [turn["role"] for turn in turns]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2):
        return False
    for turn, after in zip(turns, [*turns[1:], {"content": []}], strict=True):
        uses = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        results = [block.get("tool_use_id") for block in after["content"][: len(uses)]]
        if uses != results:
            return False
    return all(turn["content"] for turn in turns)


@pytest.mark.requirement("D26")
def test_a_request_is_the_golden_bytes() -> None:
    conversation = [*a_conversation()[:-1], ModelMessage("system", "Answer now.")]
    request = ModelRequest(conversation, Offer([WEATHER, NEWS]), tool_choice="get_weather")
    body = a_model(parallel_flag=False, extra={"temperature": 0, "max_tokens": 100}).encode(request)
    assert orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2) == GOLDEN.read_bytes().removesuffix(b"\n")
    assert is_well_formed(json.loads(body)["messages"])


def test_the_smallest_request_has_a_limit_and_a_turn_of_the_user() -> None:
    assert sent(HELLO) == {
        "model": "c-1",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


def test_what_stays_the_same_is_marked_for_the_cache_and_nothing_else() -> None:
    conversation = [ModelMessage("system", "You are Rollcall."), ModelMessage("user", "hi")]
    body = sent(ModelRequest(conversation, Offer([WEATHER, NEWS])))
    mark = {"type": "ephemeral"}
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
    assert [block.get("cache_control") for block in body["system"]] == [mark]
    assert "cache_control" not in json.dumps(body["messages"])


@pytest.mark.parametrize(
    ("choice", "parallel", "sent_choice"),
    [
        ("auto", None, None),
        ("auto", True, {"type": "auto", "disable_parallel_tool_use": False}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("get_news", None, {"type": "tool", "name": "get_news"}),
    ],
)
def test_a_choice_is_said_in_this_wires_words(choice: str, parallel: bool | None, sent_choice: object) -> None:
    request = ModelRequest(HELLO.messages, Offer([NEWS]), tool_choice=choice)
    assert sent(request, parallel_flag=parallel).get("tool_choice") == sent_choice
    if choice not in ("auto", "none"):
        assert "tool_choice" not in sent(request, tool_choice_required=False)


def test_the_functions_of_an_offer_are_encoded_once_beside_those_of_other_wires() -> None:
    offer = Offer([WEATHER])
    a_model().encode(ModelRequest(HELLO.messages, offer))
    first = offer.encoded["anthropic"]
    a_model().encode(ModelRequest(HELLO.messages, offer))
    assert offer.encoded["anthropic"] is first
    assert set(offer.encoded) == {"anthropic"}


def test_turns_alternate_whoever_spoke_first_and_whatever_is_empty() -> None:
    said = [
        ModelMessage("assistant", "Good morning."),
        ModelMessage("user", "[09:00] Ann: hi"),
        ModelMessage("user", "Bo says hello"),
        ModelMessage("assistant", ""),
        ModelMessage("user", "and?"),
    ]
    turns = sent(ModelRequest(said))["messages"]
    assert is_well_formed(turns)
    assert [len(turn["content"]) for turn in turns] == [1, 1, 3]


@pytest.mark.parametrize("echo", [True, False])
def test_thoughts_go_back_word_for_word_after_a_restart_where_the_profile_says_so(echo: bool) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
    answer = read(a_message(thought, a_text("I look."), a_use({"city": "Oslo"})))
    stored = answer_from_json(orjson.loads(orjson.dumps(answer_to_json(answer))))
    conversation = [
        *HELLO.messages,
        ModelMessage("assistant", stored.text, stored.calls, opaque=stored.opaque),
        ModelMessage("tool", "5 degrees", call_id=stored.calls[0].id),
    ]
    content = sent(ModelRequest(conversation), echo_reasoning=echo)["messages"][1]["content"]
    assert content == [*([thought] if echo else []), a_text("I look."), a_use({"city": "Oslo"})]


def test_a_call_of_another_provider_is_told_in_names_and_ids_that_this_one_takes() -> None:
    calls = (ToolCall("call:1/2", "todo.add", {"what": "milk"}),)
    conversation = [
        *HELLO.messages,
        ModelMessage("assistant", "", calls),
        ModelMessage("tool", "ok", call_id="call:1/2"),
    ]
    turns = sent(ModelRequest(conversation))["messages"]
    assert (turns[1]["content"][0]["id"], turns[1]["content"][0]["name"]) == ("call_1_2", "todo_add")
    assert is_well_formed(turns)


async def test_the_key_goes_into_its_own_header_and_the_answer_comes_back() -> None:
    script = [{"body": a_message(a_use({"city": "Oslo"})), "headers": {"request-id": "req_7"}}]
    async with OpenAIServer(script) as server:
        model = AnthropicMessages(ModelProfile("main", "c-1", server.base_url, SecretStr(KEY)), SystemClock())
        answer = await model.complete(HELLO)
        await model.close()
    (received,) = server.requests
    assert [one.arguments for one in answer.calls] == [{"city": "Oslo"}]
    assert answer.request_id == "req_7"
    assert (received.method, received.path) == ("POST", "/v1/messages")
    assert received.body == model.encode(HELLO)
    assert (received.headers["x-api-key"], received.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in received.headers


async def test_the_key_is_never_in_an_error_even_if_the_provider_quotes_it() -> None:
    body = {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY}"}}
    async with OpenAIServer([{"status": 401, "body": body}]) as server:
        model = AnthropicMessages(ModelProfile("main", "c-1", server.base_url, SecretStr(KEY)), SystemClock())
        with pytest.raises(ModelError) as caught:
            await model.complete(replace(HELLO))
        await model.close()
    assert caught.value.code is ErrorCode.PROVIDER_ERROR
    assert KEY not in str(caught.value)


def test_a_request_with_a_picture_is_the_golden_bytes() -> None:
    picture = Image("image/gif", "R0lGODlhAgACAAAAADs=")
    request = ModelRequest([ModelMessage("user", "what is this?", images=(picture,))])
    body = a_model(sees=True).encode(request)
    golden = GOLDEN.with_name("request_picture.json").read_bytes().removesuffix(b"\n")
    assert orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2) == golden


def test_a_model_that_cannot_see_is_told_that_there_are_pictures() -> None:
    request = ModelRequest([ModelMessage("user", "what is this?", images=(Image("image/gif", "R0lG"),))])
    assert sent(request)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "what is this?" + UNSEEN}]}
    ]
