"""The fast path for typical answers has the same result as the full parser, or leaves the answer to it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.model import ModelAnswer, ModelError
from services.llm.reading.markup import Visible, visible_text
from services.llm.reading.openai import read_body, usual_answer

Json = dict[str, Any]

USUAL_TEXT: Json = {
    "id": "chatcmpl-1",
    "model": "m-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}},
}


def a_call(name: str = "weather", arguments: str = '{"city":"Oslo"}', call_id: str = "call_1") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(**message: Any) -> Json:
    finish = message.pop("finish", "tool_calls" if message.get("tool_calls") else "stop")
    return {
        **USUAL_TEXT,
        "choices": [{"message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}],
    }


def carefully(content: str, seed: str) -> Visible:
    """The full parser with equal behaviour, which disables the fast path."""
    return visible_text(content, seed)


def outcome(body: bytes, **options: Any) -> ModelAnswer | tuple[str, str]:
    try:
        return read_body(200, {"x-request-id": "r-1"}, body, **options)
    except ModelError as error:
        return error.code.value, str(error)


texts = st.one_of(
    st.none(),
    st.sampled_from(["", " ", "Hello.", "<think>hm</think>Hi", "[TOOL_CALLS]", "好的", "a {b}", "```tool_call\n"]),
    st.text(max_size=20),
)
arguments = st.one_of(
    st.sampled_from(
        [
            "",
            "{}",
            "null",
            '"{}"',
            "[]",
            '{"a":1}',
            '{"a":1,"a":2}',
            '{"a":123456789012345678901234567890}',
            '{"a":{"b":1}}',
            '{"path":"C:\\new"}',
            '{"a":"x:y"}',
            '{"a":1}{"b":2}',
            '{"a":1',
            ' {"a":1} ',
        ]
    ),
    st.none(),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.text(max_size=12),
)
names = st.sampled_from(
    [
        "weather",
        "functions.weather",
        "functions.weather:0",
        "multi_tool_use.parallel",
        "",
        " ",
        "时间",
        "a b",
        "x<|y",
        None,
    ]
)
calls = st.lists(
    st.one_of(
        st.none(),
        st.builds(
            lambda name, values, call_id, more: {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": values},
                **more,
            },
            names,
            arguments,
            st.sampled_from(["call_1", "call_2", "", None, " call_3 "]),
            st.sampled_from([{}, {"index": 0}, {"extra_content": {"google": {"thought_signature": "s"}}}]),
        ),
    ),
    max_size=3,
)
messages = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": texts},
    optional={
        "tool_calls": st.one_of(st.none(), calls),
        "refusal": st.sampled_from([None, "", "No."]),
        "reasoning_content": st.sampled_from([None, "hm"]),
        "function_call": st.just({"name": "weather", "arguments": "{}"}),
        "annotations": st.just([]),
    },
)
completions = st.builds(
    lambda message, finish, more: {**USUAL_TEXT, **more, "choices": [{"message": message, "finish_reason": finish}]},
    messages,
    st.sampled_from(["stop", "tool_calls", "length", "content_filter", "STOP", None, "error"]),
    st.sampled_from([{}, {"error": None}, {"error": {"message": "no"}}, {"object": "error"}, {"id": None, "model": 5}]),
)


@given(completions)
def test_every_answer_is_read_as_the_careful_reader_reads_it(given_completion: Json) -> None:
    body = orjson.dumps(given_completion)
    assert outcome(body) == outcome(body, read_text=carefully)


@pytest.mark.parametrize(
    "usual",
    [
        USUAL_TEXT,
        completion(content="Hello.", refusal=None, annotations=[]),
        completion(tool_calls=[a_call()]),
        completion(tool_calls=[{**a_call(), "index": 0}, a_call("rain", "{}", "call_2")], content=""),
    ],
)
def test_answers_of_the_usual_form_take_the_few_steps(usual: Json) -> None:
    answer = usual_answer(usual, "")
    assert answer is not None
    assert answer == outcome(orjson.dumps(usual)) or answer.request_id == "chatcmpl-1"


@pytest.mark.parametrize(
    "unusual",
    [
        completion(content="Hi", finish="length"),
        completion(content="<think>hm</think>Hi"),
        completion(content="Hi", reasoning_content="hm"),
        completion(content="Hi", tool_calls=[a_call()]),
        completion(tool_calls=[a_call(), a_call()]),
        completion(tool_calls=[a_call("functions.weather")]),
        completion(tool_calls=[a_call(arguments='{"a":1,"a":2}')]),
        completion(tool_calls=[{**a_call(), "extra_content": {}}]),
        {**USUAL_TEXT, "error": None},
    ],
)
def test_answers_that_need_repair_or_raw_data_are_left_to_the_full_parser(unusual: Json) -> None:
    assert usual_answer(unusual, "r-1") is None
