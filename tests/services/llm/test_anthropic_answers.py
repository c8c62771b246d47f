"""The parser of Anthropic responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.llm.model import ModelError, Usage, answer_from_json, answer_to_json
from services.llm.reading.anthropic import read_body, read_stream
from services.refs import ErrorCode
from tests.services.llm.anthropic_wire import (
    a_message,
    a_text,
    a_use,
    events,
    failure,
    read,
    stream_failure,
    streamed,
)

THOUGHT = {"type": "thinking", "thinking": "They want the weather.", "signature": "sig=="}


@pytest.mark.requirement("D27")
def test_text_and_several_calls_of_one_answer_are_read_in_order() -> None:
    answer = read(
        a_message(a_text("I look. "), a_use({"city": "Oslo"}), a_text("Both."), a_use({}, "get_news", "toolu_2"))
    )
    assert answer.text == "I look. Both."
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [
        ("toolu_1", "get_weather", {"city": "Oslo"}),
        ("toolu_2", "get_news", {}),
    ]
    assert (answer.finish, answer.model, answer.request_id, answer.opaque) == ("tool_use", "c-1", "msg_1", None)


def test_content_that_is_a_bare_text_is_words() -> None:
    assert read({**a_message(), "content": "Hi"}).text == "Hi"


def test_tokens_from_the_cache_count_and_are_told_apart() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 20, "output_tokens": 7}
    answer = read(a_message(a_text("Hi"), usage=usage))
    assert answer.usage == Usage(1023, 7, 1000)
    assert answer_from_json(json.loads(json.dumps(answer_to_json(answer)))).usage == answer.usage


def test_signed_thoughts_are_kept_word_for_word_in_their_place_and_never_shown() -> None:
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    content = [THOUGHT, hidden, a_text("I look."), a_use({"city": "Oslo"})]
    answer = read(a_message(*content))
    assert answer.text == "I look."
    assert answer.opaque == {"anthropic": {"content": content}}


def test_thoughts_are_not_kept_where_a_result_would_not_fit_its_call() -> None:
    twins = [a_use({"city": "Oslo"}), a_use({"city": "Rome"})]
    answer = read(a_message(THOUGHT, *twins))
    assert len({one.id for one in answer.calls}) == 2
    assert answer.opaque is None


def test_arguments_that_would_lose_something_are_refused() -> None:
    twice = json.dumps(a_message(a_use({"city": "Oslo"}))).replace('"city"', '"city": "Rome", "city"')
    assert failure(twice).code is ErrorCode.MALFORMED_BY_PROVIDER
    assert failure(json.dumps(a_message(a_use({"n": 2**70})))).code is ErrorCode.MALFORMED_BY_PROVIDER


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (a_message(a_use({"city": "Os"}), stop="max_tokens"), ErrorCode.TRUNCATED),
        (a_message(stop="max_tokens"), ErrorCode.TRUNCATED),
        (a_message(a_text("I cannot"), stop="refusal"), ErrorCode.CONTENT_FILTERED),
        (a_message(), ErrorCode.EMPTY_RESPONSE),
        (a_message(a_text(" ")), ErrorCode.EMPTY_RESPONSE),
        (a_message(a_text("<tool_call>{}")), ErrorCode.LEAKED_MARKUP),
        (a_message(a_use({}), stop="something_new"), ErrorCode.MALFORMED_BY_PROVIDER),
        ({**a_message(), "content": None}, ErrorCode.MALFORMED_BY_PROVIDER),
        ([1], ErrorCode.MALFORMED_BY_PROVIDER),
        ("", ErrorCode.EMPTY_RESPONSE),
        ("<html>", ErrorCode.MALFORMED_BY_PROVIDER),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, ErrorCode.PROVIDER_ERROR),
    ],
)
def test_nothing_runs_that_was_cut_off_refused_or_cannot_be_read(message: Any, code: ErrorCode) -> None:
    assert failure(message).code is code


def test_a_text_that_was_cut_off_is_still_worth_showing() -> None:
    assert read(a_message(a_text("Once upon"), stop="max_tokens")).text == "Once upon"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (529, "overloaded_error", True),
        (500, "api_error", True),
        (429, "rate_limit_error", True),
        (401, "authentication_error", False),
        (400, "invalid_request_error", False),
        (413, "request_too_large", False),
    ],
)
def test_a_refusal_says_whether_it_may_pass(status: int, kind: str, retryable: bool) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "no"}}
    error = failure(body, status, {"retry-after": "7", "request-id": "req_9"})
    assert (error.code, error.status, error.retryable) == (ErrorCode.PROVIDER_ERROR, status, retryable)
    assert (error.retry_after_seconds, error.request_id) == (7.0, "req_9")
    within = stream_failure(events({"type": "error", "error": body["error"]}))
    assert (within.code, within.retryable) == (ErrorCode.PROVIDER_ERROR, retryable)


def test_a_stream_is_read_as_the_same_answer_in_one_piece() -> None:
    sse = streamed(
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "They want "},
                {"type": "thinking_delta", "thinking": "the weather."},
                {"type": "signature_delta", "signature": "sig=="},
            ],
        ),
        (a_text(""), [{"type": "text_delta", "text": "I "}, {"type": "text_delta", "text": "look."}]),
        (a_use({}), [{"type": "input_json_delta", "partial_json": part} for part in ("", '{"ci', 'ty":"Oslo"}')]),
    )
    answer = read_stream(sse.encode())
    assert (answer.text, answer.usage) == ("I look.", Usage(10, 9))
    assert [(one.name, one.arguments, one.raw) for one in answer.calls] == [
        ("get_weather", {"city": "Oslo"}, '{"city":"Oslo"}')
    ]
    assert answer.opaque == {"anthropic": {"content": [THOUGHT, a_text("I look."), a_use({"city": "Oslo"})]}}
    assert read(sse) == answer


@pytest.mark.parametrize(
    ("sse", "code"),
    [
        (streamed((a_text("Hi"), []), stop=None), ErrorCode.STREAM_INCOMPLETE),
        (streamed((a_text("Hi"), []), stop=None) + "data: {", ErrorCode.STREAM_INCOMPLETE),
        ("data: {\n\n" + streamed((a_text("Hi"), [])), ErrorCode.MALFORMED_BY_PROVIDER),
        ("", ErrorCode.EMPTY_RESPONSE),
        ("hello", ErrorCode.MALFORMED_BY_PROVIDER),
    ],
)
def test_a_stream_that_is_none_or_has_no_end_is_refused(sse: str, code: ErrorCode) -> None:
    assert stream_failure(sse).code is code


def test_arguments_of_a_stream_that_are_cut_off_are_a_fault_of_their_call() -> None:
    sse = streamed((a_use({}), [{"type": "input_json_delta", "partial_json": '{"city": "Os'}]))
    (call,) = read_stream(sse.encode()).calls
    assert (call.arguments, call.fault) == (None, ErrorCode.TRUNCATED)


def test_recorded_traffic_is_read_as_it_was_meant(data: Callable[[str], Path]) -> None:
    differing = []
    for line in data("A_provider_traffic/anthropic_messages.jsonl").read_bytes().splitlines():
        record = json.loads(line)
        oracle = record["oracle"]
        body = record["sse_text"] if record["sse_text"] is not None else json.dumps(record["response_body"])
        headers = {name.lower(): str(value) for name, value in (record["response_headers"] or {}).items()}
        try:
            answer = read_body(record["response_status"], headers, body.encode())
        except ModelError as error:
            empty = not (oracle["text"] or oracle["tool_calls"])
            expected = ErrorCode.PROVIDER_ERROR if oracle["error"] else ErrorCode.EMPTY_RESPONSE
            if not empty or error.code is not expected:
                differing.append(record["id"])
            continue
        calls = [{"id": one.id, "name": one.name, "input": one.arguments} for one in answer.calls]
        kept = (answer.opaque or {}).get("anthropic", {}).get("content", [])
        thinking = "".join(block.get("thinking", "") for block in kept)
        if (answer.text, calls, thinking) != (oracle["text"], oracle["tool_calls"], oracle["thinking"]):
            differing.append(record["id"])
    assert differing == []
