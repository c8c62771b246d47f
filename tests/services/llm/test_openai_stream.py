import json
from typing import Any

import pytest

from services.llm.reading.answers import MAX_BODY_BYTES
from services.llm.reading.openai import read_stream
from services.refs import ErrorCode
from tests.services.llm.wire import a_body, a_delta, a_piece, a_stream, stream, stream_failure

END = a_delta(finish="tool_calls")


def asked(*chunks: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in stream([*chunks, END]).calls]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n"])
def test_a_text_is_joined_whatever_the_line_ends(end: str) -> None:
    chunks = [
        a_delta(role="assistant", content=""),
        a_delta(content="Hello, "),
        a_delta(content="世界"),
        a_delta("stop"),
    ]
    assert read_stream(b": ping\r\n\r\n" + a_stream(chunks, end)).text == "Hello, 世界"


def test_an_event_may_have_a_kind_and_several_lines_of_data() -> None:
    whole = json.dumps(a_delta("stop", content="Hello"), indent=1).replace("\n", "\ndata: ")
    assert read_stream(f"\ufeffevent: message\nid: 1\nretry: 5\ndata: {whole}\n\n".encode()).text == "Hello"


def test_usage_comes_in_a_chunk_without_choices() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    answer = stream([{"choices": None}, a_delta(content="Hi"), a_delta("stop"), usage])
    assert (answer.usage.prompt, answer.usage.completion, answer.model) == (7, 2, "m-1")


@pytest.mark.parametrize("done", [True, False])
def test_a_finish_reason_or_the_done_line_ends_a_stream(done: bool) -> None:
    chunks = [a_delta(content="Hi")] if done else [a_delta(content="Hi"), a_delta("stop")]
    assert stream(chunks, done=done).text == "Hi"


@pytest.mark.parametrize(
    "chunks",
    [
        [a_delta(content="Hel")],
        [a_piece('{"a":1}', "f", index=0, id="c1")],
        [a_delta(content="Hi"), '{"choices":[{"delta":{"cont'],
    ],
)
def test_a_stream_that_just_stops_is_incomplete(chunks: list[Any]) -> None:
    error = stream_failure(chunks, done=False)
    assert (error.code, error.retryable) == (ErrorCode.STREAM_INCOMPLETE, True)


@pytest.mark.parametrize(
    ("sse", "code"),
    [
        (b"", ErrorCode.EMPTY_RESPONSE),
        (b"data: [DONE]\n\n", ErrorCode.EMPTY_RESPONSE),
        (b": ping\n\n", ErrorCode.STREAM_INCOMPLETE),
        (b"<html>", ErrorCode.MALFORMED_BY_PROVIDER),
        (b"data: nonsense\n\ndata: [DONE]\n\n", ErrorCode.MALFORMED_BY_PROVIDER),
        (b'{"error":{"message":"boom"}}', ErrorCode.PROVIDER_ERROR),
        (b'event: error\ndata: {"message":"boom"}\n\n', ErrorCode.PROVIDER_ERROR),
        (b"data: " + b" " * MAX_BODY_BYTES, ErrorCode.MALFORMED_BY_PROVIDER),
    ],
)
def test_what_is_no_stream_has_a_code_of_its_own(sse: bytes, code: ErrorCode) -> None:
    with pytest.raises(Exception) as caught:
        read_stream(sse)
    assert getattr(caught.value, "code", None) is code


def test_an_error_within_the_stream_is_the_providers() -> None:
    error = stream_failure([a_delta(content="Hi"), {"error": {"message": "boom", "code": 503}}])
    assert (error.code, error.retryable, error.status) == (ErrorCode.PROVIDER_ERROR, True, 503)


def test_calls_of_different_indexes_grow_side_by_side() -> None:
    assert asked(
        a_piece("", "f", index=0, id="c1"),
        a_piece("", "g", index=1, id="c2"),
        a_piece('{"a"', index=0),
        a_piece('{"b"', index=1),
        a_piece(":1}", index=0),
        a_piece(":2}", index=1),
    ) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_the_name_and_the_id_may_be_repeated_with_each_piece() -> None:
    (call,) = stream(
        [a_piece('{"a"', "f", index=0, id="c1"), a_piece(":1}", "f", index=0, id="c1"), a_piece("", "f", id="c1"), END]
    ).calls
    assert (call.id, call.name, call.arguments) == ("c1", "f", {"a": 1})


def test_an_empty_id_goes_on_with_the_call() -> None:
    assert asked(a_piece('{"q":"杭', "f", index=0, id="1"), a_piece('州"}', "f", index=0, id="")) == [
        ("f", {"q": "杭州"})
    ]


def test_a_missing_index_goes_on_with_the_last_call() -> None:
    assert asked(
        a_piece("", "f", id="c1"), a_piece('{"a"'), a_piece(":1}"), a_piece('{"b":', "g", id="c2"), a_piece("2}")
    ) == [("f", {"a": 1}), ("g", {"b": 2})]


def test_a_new_id_at_the_same_index_is_a_new_call() -> None:
    assert asked(a_piece('{"q":"A"}', "f", index=0, id="c1"), a_piece('{"q":"B"}', "f", index=0, id="c2")) == [
        ("f", {"q": "A"}),
        ("f", {"q": "B"}),
    ]


def test_a_new_id_without_a_name_goes_on_with_the_call() -> None:
    (call,) = stream([a_piece('{"q":', "f", index=0, id="c1"), a_piece('"A"}', index=0, id="c2"), END]).calls
    assert (call.id, call.arguments) == ("c1", {"q": "A"})


def test_an_empty_object_before_the_real_one_is_not_a_call_without_arguments() -> None:
    assert asked(a_piece("{}", "f", index=0, id="c1"), a_piece('{"q":"A"}', index=0)) == [("f", {"q": "A"})]


def test_an_id_that_comes_late_belongs_to_the_call_that_has_none() -> None:
    (call,) = stream([a_piece("", "f", index=0), a_piece("{}", index=0, id="c1"), END]).calls
    assert (call.id, call.name) == ("c1", "f")


def test_a_whole_object_and_then_another_without_index_and_id_are_two_calls() -> None:
    assert asked(a_piece('{"a":1}', "f"), a_piece('{"a":2}', "f"), a_piece('{"b":', "g"), a_piece("3}")) == [
        ("f", {"a": 1}),
        ("f", {"a": 2}),
        ("g", {"b": 3}),
    ]


def test_a_brace_within_the_arguments_begins_no_new_call() -> None:
    assert asked(a_piece('{"a":', "f", index=0), a_piece("{}"), a_piece("}")) == [("f", {"a": {}})]


@pytest.mark.parametrize("nothing", [None, ""])
def test_arguments_may_begin_with_nothing(nothing: Any) -> None:
    assert asked(a_piece(nothing, "f", index=0, id="c1"), a_piece('{"a":1}', index=0)) == [("f", {"a": 1})]
    assert asked(a_piece(nothing, "f", index=0, id="c1")) == [("f", {})]


def test_arguments_may_come_whole_and_as_objects() -> None:
    assert asked(a_piece({"a": 1}, "f"), a_piece({"a": 2}, "f")) == [("f", {"a": 1}), ("f", {"a": 2})]


def test_arguments_that_break_off_under_a_finish_reason_are_truncated() -> None:
    (call,) = stream([a_piece('{"a":', "f", index=0, id="c1"), END]).calls
    assert call.fault is ErrorCode.TRUNCATED


def test_the_older_function_call_is_put_together() -> None:
    first = a_delta(function_call={"name": "f", "arguments": ""})
    rest = [a_delta(function_call={"arguments": part}) for part in ('{"a"', ":1}")]
    assert asked(first, *rest) == [("f", {"a": 1})]


@pytest.mark.parametrize("entry", [7, {"index": 0, "function": {"arguments": "{}"}}])
def test_pieces_that_never_name_a_function_are_the_providers_fault(entry: Any) -> None:
    assert stream_failure([a_delta(tool_calls=[entry]), END]).code is ErrorCode.MALFORMED_BY_PROVIDER


@pytest.mark.parametrize(
    ("finish", "code"), [("length", ErrorCode.TRUNCATED), ("content_filter", ErrorCode.CONTENT_FILTERED)]
)
def test_a_call_that_looks_whole_does_not_run_when_the_stream_was_cut(finish: str, code: ErrorCode) -> None:
    assert stream_failure([a_piece("{}", "f", index=0, id="c1"), a_delta(finish)]).code is code


def test_a_special_token_is_found_across_chunks() -> None:
    parts = ["Hi <", "|pyth", "on_tag", "|>", '{"name"']
    assert stream_failure([*(a_delta(content=part) for part in parts), a_delta("stop")]).code is ErrorCode.LEAKED_MARKUP
    thinking = ["<th", "ink>secret</thi", "nk>Hel", "lo<|im_", "end|>"]
    assert stream([*(a_delta(content=part) for part in thinking), a_delta("stop")]).text == "Hello"


def test_only_the_first_choice_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}
    assert stream([a_delta(content="Hi"), other, a_delta("stop")]).text == "Hi"


def test_reasoning_is_put_together_as_the_provider_wants_it_back() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return a_delta(reasoning_details=[{"type": "reasoning.text", "index": 0, **fields}])

    answer = stream([
        a_delta(reasoning_content="Let "),
        a_delta(reasoning_content="me see", content="Hi"),
        detail(text="Let "),
        detail(text="me see", signature=None),
        detail(text=None, signature="sig"),
        a_delta("stop"),
    ])  # fmt: skip
    assert answer.text == "Hi"
    assert answer.opaque is not None
    assert answer.opaque["openai"]["message"] == {
        "reasoning_content": "Let me see",
        "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Let me see", "signature": "sig"}],
    }


def test_a_refusal_in_pieces_is_shown_as_one() -> None:
    answer = stream([a_delta(refusal="I "), a_delta(refusal="can't."), a_delta("stop")])
    assert (answer.text, answer.finish) == ("I can't.", "refusal")


def test_a_whole_body_in_the_place_of_a_stream_is_read() -> None:
    assert read_stream(json.dumps(a_body("Hello")).encode()).text == "Hello"
