import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from services.clock import VirtualClock
from services.llm.model import (
    UNSEEN,
    Image,
    ModelMessage,
    ModelRequest,
    Offer,
    OfferedFunction,
    ToolCall,
    answer_from_json,
    answer_to_json,
    message_from_json,
    message_to_json,
)
from services.llm.profile import ModelProfile
from services.llm.protocols.openai_chat import OpenAIChat
from services.refs import ErrorCode
from tests.services.llm.wire import a_body, a_tool_call, read

GOLDEN = Path(__file__).parents[2] / "golden" / "openai"
WEATHER = OfferedFunction(
    "get_weather",
    "weather.get",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
NEWS = OfferedFunction("get_news", "get_news", "今日新闻", {"type": "object", "properties": {}})


def a_model(**profile: object) -> OpenAIChat:
    fields = {"name": "main", "model": "m-1", "base_url": "http://127.0.0.1:1/v1", "api_key": SecretStr("k"), **profile}
    return OpenAIChat(ModelProfile(**fields), VirtualClock())  # type: ignore[arg-type]


def a_conversation() -> list[ModelMessage]:
    """Two rounds: the model made two calls, one of them invalid, and needs its reasoning and a signature returned."""
    calls = (
        ToolCall("c1", "get_weather", {"city": "Oslo"}, '{"city": "Oslo"}'),
        ToolCall("c2", "repo.open file", None, '{"a":', ErrorCode.TRUNCATED),
        ToolCall("c3", "get_news", {}, '""'),
    )
    opaque = {
        "openai": {
            "message": {"reasoning_content": "They want the weather."},
            "calls": {"c1": {"extra_content": {"google": {"thought_signature": "sig"}}}},
        }
    }
    return [
        ModelMessage("system", "You are Rollcall."),
        ModelMessage("user", "Ann: 奥斯陆的天气?"),
        ModelMessage("assistant", "", calls, opaque=opaque),
        ModelMessage("tool", "5 °C", call_id="c1"),
        ModelMessage("tool", "unknown function", call_id="c2"),
        ModelMessage("tool", "[]", call_id="c3"),
        ModelMessage("assistant", "5 °C."),
        ModelMessage("user", "Bo: thanks"),
    ]


def golden(name: str) -> bytes:
    """Content of the file without its final newline."""
    return (GOLDEN / name).read_bytes().removesuffix(b"\n")


@pytest.mark.requirement("D26")
def test_a_request_is_the_golden_bytes() -> None:
    request = ModelRequest(a_conversation(), Offer([WEATHER, NEWS]), tool_choice="get_weather")
    model = a_model(parallel_flag=False, extra={"temperature": 0})
    assert model.encode(request) == golden("request_full.json")


def test_the_smallest_request_is_the_golden_bytes() -> None:
    request = ModelRequest([ModelMessage("user", "hi")])
    assert a_model().encode(request) == golden("request_small.json")


def test_reasoning_is_not_sent_where_the_server_refuses_it_but_signatures_of_calls_are() -> None:
    body = json.loads(a_model(echo_reasoning=False).encode(ModelRequest(a_conversation())))
    assert "reasoning_content" not in body["messages"][2]
    assert "extra_content" in body["messages"][2]["tool_calls"][0]


def test_what_an_answer_wants_back_is_sent_back_word_for_word() -> None:
    call = {**a_tool_call('{"city":"Oslo"}'), "extra_content": {"google": {"thought_signature": "sig"}}}
    message = {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}]}
    answer = read(a_body("I look.", calls=[call], message=message))
    echo = ModelMessage("assistant", answer.text, answer.calls, opaque=answer.opaque)
    body = json.loads(a_model().encode(ModelRequest([echo])))
    assert body["messages"] == [{"role": "assistant", "content": "I look.", "tool_calls": [call], **message}]


@pytest.mark.parametrize("echo", [True, False])
def test_reasoning_and_signatures_go_back_word_for_word_after_a_restart(echo: bool) -> None:
    call = {**a_tool_call('{"city":"Oslo"}'), "extra_content": {"google": {"thought_signature": "sig"}}}
    answer = read(a_body(calls=[call], message={"reasoning_content": "They want\tthe weather.\n"}))
    stored = answer_from_json(json.loads(json.dumps(answer_to_json(answer))))
    suspended = message_to_json(ModelMessage("assistant", stored.text, stored.calls, opaque=stored.opaque))
    echoed = message_from_json(json.loads(json.dumps(suspended)))
    (message,) = json.loads(a_model(echo_reasoning=echo).encode(ModelRequest([echoed])))["messages"]
    assert message["tool_calls"] == [call]
    assert message.get("reasoning_content") == ("They want\tthe weather.\n" if echo else None)


@pytest.mark.parametrize(
    ("choice", "known", "sent"),
    [
        ("auto", True, None),
        ("none", True, "none"),
        ("required", True, "required"),
        ("get_news", True, {"type": "function", "function": {"name": "get_news"}}),
        ("required", False, None),
        ("get_news", False, None),
        ("none", False, "none"),
    ],
)
def test_a_choice_that_the_server_does_not_know_is_not_sent(choice: str, known: bool, sent: object) -> None:
    request = ModelRequest([ModelMessage("user", "hi")], Offer([NEWS]), tool_choice=choice)
    body = json.loads(a_model(tool_choice_required=known).encode(request))
    assert body.get("tool_choice") == sent
    assert "parallel_tool_calls" not in body


def test_without_functions_nothing_about_them_is_sent() -> None:
    request = ModelRequest([ModelMessage("user", "hi")], Offer([]), tool_choice="required")
    assert json.loads(a_model(parallel_flag=True).encode(request)).keys() == {"model", "messages"}


def test_the_functions_of_an_offer_are_encoded_once() -> None:
    offer = Offer([WEATHER])
    request = ModelRequest([ModelMessage("user", "hi")], offer)
    a_model().encode(request)
    first = offer.encoded["openai"]
    a_model().encode(request)
    assert offer.encoded["openai"] is first


def test_half_a_surrogate_pair_does_not_stop_a_request() -> None:
    body = a_model().encode(ModelRequest([ModelMessage("user", "file \udcff.txt")]))
    assert json.loads(body)["messages"][0]["content"] == "file ?.txt"


def test_a_request_with_a_picture_is_the_golden_bytes() -> None:
    picture = Image("image/gif", "R0lGODlhAgACAAAAADs=")
    messages = [ModelMessage("user", "what is this?", images=(picture,)), ModelMessage("assistant", "A dot.")]
    assert a_model(sees=True).encode(ModelRequest(messages)) == golden("request_picture.json")


def test_a_model_that_cannot_see_is_told_that_there_are_pictures() -> None:
    request = ModelRequest([ModelMessage("user", "what is this?", images=(Image("image/gif", "R0lG"),))])
    body = json.loads(a_model().encode(request))
    assert body["messages"] == [{"role": "user", "content": "what is this?" + UNSEEN}]
