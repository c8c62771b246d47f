import json
from typing import Any

import pytest

from services.llm.model import Usage
from services.llm.reading.answers import MAX_BODY_BYTES
from services.refs import ErrorCode
from tests.services.llm.wire import a_body, a_stream, a_tool_call, failure, read
from tests.services.llm.wire import a_delta as delta

A_CALL = [a_tool_call("{}")]


def test_a_text_is_read_with_what_the_provider_says_about_it() -> None:
    body = {**a_body("Hello!"), "usage": {"prompt_tokens": 12, "completion_tokens": 3}}
    answer = read(body, headers={"x-request-id": "req_1"})
    assert (answer.text, answer.calls, answer.finish, answer.model) == ("Hello!", (), "stop", "m-1")
    assert (answer.request_id, answer.usage, answer.opaque) == ("req_1", Usage(12, 3), None)


def test_the_id_of_the_answer_stands_in_for_a_missing_request_id() -> None:
    assert read(a_body("Hello!")).request_id == "chatcmpl-1"


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ({"prompt_tokens": 10**12, "completion_tokens": -5}, Usage(100_000_000, 0)),
        ({"prompt_tokens": "many"}, Usage()),
        ([], Usage()),
        (None, Usage()),
    ],
)
def test_token_counts_stay_within_reason(reported: Any, counted: Usage) -> None:
    assert read({**a_body("Hello!"), "usage": reported}).usage == counted


def test_a_content_of_parts_is_joined() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "Hel"},
        "lo",
        None,
        {"type": "text", "text": "!"},
    ]
    assert read(a_body(parts)).text == "Hello!"


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "STOP", "end_turn", "", None])
def test_calls_run_whatever_usual_finish_reason_is_given(finish: str | None) -> None:
    assert read(a_body(calls=A_CALL, finish=finish)).calls


@pytest.mark.parametrize(
    ("finish", "code", "retryable"),
    [
        ("length", ErrorCode.TRUNCATED, False),
        ("max_tokens", ErrorCode.TRUNCATED, False),
        ("MAX_TOKENS", ErrorCode.TRUNCATED, False),
        ("content_filter", ErrorCode.CONTENT_FILTERED, False),
        ("SAFETY", ErrorCode.CONTENT_FILTERED, False),
        ("refusal", ErrorCode.CONTENT_FILTERED, False),
        ("error", ErrorCode.PROVIDER_ERROR, True),
        ("MALFORMED_FUNCTION_CALL", ErrorCode.MALFORMED_BY_PROVIDER, True),
        ("whatever", ErrorCode.MALFORMED_BY_PROVIDER, True),
    ],
)
def test_no_call_runs_under_any_other_finish_reason(finish: str, code: ErrorCode, retryable: bool) -> None:
    for content in (None, "I will look."):
        error = failure(a_body(content, calls=A_CALL, finish=finish))
        assert (error.code, error.retryable) == (code, retryable)


def test_a_text_that_was_cut_off_is_still_worth_showing() -> None:
    answer = read(a_body("Once upon a", finish="length"))
    assert (answer.text, answer.finish) == ("Once upon a", "length")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (a_body(None, finish="length"), ErrorCode.TRUNCATED),
        (a_body("<think>still at it", finish="length"), ErrorCode.TRUNCATED),
        (a_body("Half a sen", finish="content_filter"), ErrorCode.CONTENT_FILTERED),
        (a_body(None, finish="MALFORMED_FUNCTION_CALL"), ErrorCode.MALFORMED_BY_PROVIDER),
        (a_body(None, finish="unknown_reason"), ErrorCode.MALFORMED_BY_PROVIDER),
        (a_body(None), ErrorCode.EMPTY_RESPONSE),
        (a_body(" \n"), ErrorCode.EMPTY_RESPONSE),
        (a_body("", calls=[]), ErrorCode.EMPTY_RESPONSE),
        (a_body("<think>only that</think>"), ErrorCode.EMPTY_RESPONSE),
        ({"choices": []}, ErrorCode.EMPTY_RESPONSE),
        ({"choices": None}, ErrorCode.EMPTY_RESPONSE),
        (b"", ErrorCode.EMPTY_RESPONSE),
        (b" \n", ErrorCode.EMPTY_RESPONSE),
        ({"choices": None, "data": a_body("PONG")}, ErrorCode.MALFORMED_BY_PROVIDER),
        ({}, ErrorCode.MALFORMED_BY_PROVIDER),
        ({"choices": [None]}, ErrorCode.MALFORMED_BY_PROVIDER),
        ({"choices": {"a": 1}}, ErrorCode.MALFORMED_BY_PROVIDER),
        ({"choices": [{"message": None}]}, ErrorCode.MALFORMED_BY_PROVIDER),
        (b'"ok"', ErrorCode.MALFORMED_BY_PROVIDER),
        (b"[]", ErrorCode.MALFORMED_BY_PROVIDER),
        (b"<html><body>502</body></html>", ErrorCode.MALFORMED_BY_PROVIDER),
        (b'{"choices":[{"message":{"content":"\xff\xfe"}}]}', ErrorCode.MALFORMED_BY_PROVIDER),
        (b'{"choices":' + b"[" * 50_000, ErrorCode.MALFORMED_BY_PROVIDER),
        (b" " * (MAX_BODY_BYTES + 1), ErrorCode.MALFORMED_BY_PROVIDER),
    ],
)
def test_what_is_no_answer_has_a_code_of_its_own(body: Any, code: ErrorCode) -> None:
    assert failure(body).code is code


def test_a_refusal_is_shown_and_nothing_runs_beside_it() -> None:
    answer = read(a_body("text", calls=A_CALL, message={"refusal": "I can't help with that."}))
    assert (answer.text, answer.calls, answer.finish) == ("I can't help with that.", (), "refusal")
    assert read(a_body([{"type": "refusal", "refusal": "No."}])).finish == "refusal"
    assert read(a_body("I would rather not.", finish="refusal")).text == "I would rather not."


@pytest.mark.parametrize("leak", ['<tool_call>{"name":"f"}</tool_call>', "<｜DSML｜tool_calls", "<|python_tag|>f()"])
def test_leaked_markup_is_an_error_unless_there_are_real_calls(leak: str) -> None:
    assert failure(a_body("I look. " + leak)).code is ErrorCode.LEAKED_MARKUP
    answer = read(a_body("I look. " + leak, calls=A_CALL))
    assert (answer.text, len(answer.calls)) == ("I look.", 1)


def test_reasoning_is_kept_apart_and_never_shown() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    call = {**a_tool_call("{}"), "extra_content": {"google": {"thought_signature": "sig"}}}
    answer = read(a_body("Hi", calls=[call], message={"reasoning_content": "hm", "reasoning_details": details}))
    assert answer.text == "Hi"
    assert answer.opaque == {
        "openai": {
            "message": {"reasoning_content": "hm", "reasoning_details": details},
            "calls": {"call_1": {"extra_content": {"google": {"thought_signature": "sig"}}}},
        }
    }


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"message": "overloaded", "code": 502}, True),
        ({"message": "slow down", "code": "429"}, True),
        ({"message": "upstream broke", "type": "server_error"}, True),
        ("something", True),
        ({"message": "no money", "code": "insufficient_quota"}, False),
        ({"message": "no money", "code": 402}, False),
        ({"message": "bad schema", "type": "invalid_request_error"}, False),
        ({"message": "Failed to call a function.", "code": "tool_use_failed"}, False),
    ],
)
def test_an_error_in_the_body_is_the_providers(error: Any, retryable: bool) -> None:
    for body in ({"error": error}, {"choices": [{"error": error, "message": {}}]}):
        found = failure(body)
        assert (found.code, found.retryable) == (ErrorCode.PROVIDER_ERROR, retryable)


def test_an_error_that_is_the_whole_body_is_the_providers() -> None:
    error = failure({"object": "error", "message": "boom", "code": 500})
    assert (error.code, error.status, error.retryable) == (ErrorCode.PROVIDER_ERROR, 500, True)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_statuses_that_may_pass_are_retryable(status: int) -> None:
    error = failure({"error": {"message": "later"}}, status)
    assert (error.code, error.retryable, error.status) == (ErrorCode.PROVIDER_ERROR, True, status)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422])
def test_statuses_that_will_not_pass_are_not_retryable(status: int) -> None:
    assert failure("<html>no</html>", status).retryable is False


def test_a_spent_quota_is_not_retryable() -> None:
    assert failure({"error": {"code": "insufficient_quota", "message": "x"}}, 429).retryable is False


def test_a_filtered_prompt_is_content_filtered() -> None:
    error = failure({"error": {"code": "content_filter", "message": "x"}}, 400)
    assert (error.code, error.retryable) == (ErrorCode.CONTENT_FILTERED, False)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("inf", None),
        ("", None),
    ],
)
def test_the_wait_that_the_provider_asks_for_is_read(header: str, seconds: float | None) -> None:
    headers = {"retry-after": header, "date": "Wed, 21 Oct 2026 07:28:00 GMT", "x-request-id": "req_9"}
    error = failure({"error": {"message": "slow down"}}, 429, headers)
    assert (error.retry_after_seconds, error.request_id) == (seconds, "req_9")


def test_a_stream_is_read_even_where_none_was_asked_for() -> None:
    chunks = [delta(content="Hel"), delta(content="lo"), delta(finish="stop")]
    assert read(b"\xef\xbb\xbf" + a_stream(chunks)).text == "Hello"
    assert read(b": comment\n\n" + a_stream(chunks)).text == "Hello"


def test_a_byte_order_mark_before_the_body_is_ignored() -> None:
    assert read(b"\xef\xbb\xbf" + json.dumps(a_body("Hello")).encode()).text == "Hello"
