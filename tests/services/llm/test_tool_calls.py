import json
from typing import Any

import pytest

from services.llm.model import ToolCall
from services.refs import ErrorCode
from tests.services.llm.wire import a_body, a_tool_call, failure, read, read_call


def calls_of(*entries: Any) -> tuple[ToolCall, ...]:
    return read(a_body(calls=list(entries), finish="tool_calls")).calls


def asked(*entries: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in calls_of(*entries)]


def test_a_call_is_read_with_its_id_name_arguments_and_text() -> None:
    (call,) = calls_of(a_tool_call('{"city": "Oslo"}'))
    assert call == ToolCall("call_1", "get_weather", {"city": "Oslo"}, '{"city": "Oslo"}')


def test_a_call_that_cannot_be_read_says_why_and_keeps_its_text() -> None:
    call = read_call('{"city": "Os')
    assert (call.arguments, call.fault, call.raw) == (None, ErrorCode.TRUNCATED, '{"city": "Os')


def test_arguments_as_an_object_are_taken_unless_the_body_gives_a_key_twice() -> None:
    assert read_call({"city": "Oslo"}).arguments == {"city": "Oslo"}
    body = json.dumps(a_body(calls=[a_tool_call({"command": "ls"})]))
    twice = body.replace('{"command": "ls"}', '{"command": "rm", "command": "ls"}')
    assert failure(twice).code is ErrorCode.MALFORMED_BY_PROVIDER


@pytest.mark.parametrize(
    "name",
    [
        " get_weather ",
        "functions.get_weather",
        "default_api.get_weather",
        "tools.get_weather",
        "functions.get_weather:0",
        "get_weather<|channel|>commentary",
    ],
)
def test_known_wrappers_are_taken_off_a_name(name: str) -> None:
    assert read_call("{}", name).name == "get_weather"


@pytest.mark.parametrize("name", ["repo_browser.open_file", "run_shеll", "Get_Weather", "get_weatherget_news", "f:0"])
def test_any_other_name_is_left_to_be_looked_up_as_it_is(name: str) -> None:
    assert read_call("{}", name).name == name


def test_the_wrapper_for_parallel_calls_is_opened() -> None:
    uses = [
        {"recipient_name": "functions.get_weather", "parameters": {"city": "Oslo"}},
        {"recipient_name": "functions.get_news", "parameters": {}},
    ]
    calls = calls_of(a_tool_call(json.dumps({"tool_uses": uses}), "multi_tool_use.parallel"))
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("call_1", "get_weather", {"city": "Oslo"}),
        ("call_1_2", "get_news", {}),
    ]


@pytest.mark.parametrize(
    "uses", [None, [], ["x"], [{"parameters": {}}], [{"recipient_name": "multi_tool_use.parallel", "parameters": {}}]]
)
def test_a_wrapper_that_holds_no_calls_is_left_to_be_looked_up(uses: Any) -> None:
    call = read_call(json.dumps({"tool_uses": uses}), "functions.multi_tool_use.parallel")
    assert call.name == "multi_tool_use.parallel"


def test_objects_in_a_row_are_calls_of_the_same_function_with_ids_of_their_own() -> None:
    calls = calls_of(a_tool_call('{"q":"A"}{"q":"B"}{"q":"A"}'))
    assert [(call.id, call.name, call.arguments, call.raw) for call in calls] == [
        ("call_1", "get_weather", {"q": "A"}, '{"q":"A"}'),
        ("call_1_2", "get_weather", {"q": "B"}, '{"q":"B"}'),
    ]


def test_the_same_call_under_the_same_id_is_one_call() -> None:
    assert asked(a_tool_call('{"a":1,"b":2}'), a_tool_call('{"b":2, "a":1}')) == [("get_weather", {"a": 1, "b": 2})]


def test_the_same_call_under_two_ids_is_two_calls() -> None:
    assert len(asked(a_tool_call("{}", call_id="a"), a_tool_call("{}", call_id="b"))) == 2


def test_two_calls_under_one_id_get_ids_of_their_own() -> None:
    first, second, third = calls_of(a_tool_call('{"a":1}'), a_tool_call('{"a":true}'), a_tool_call('{"a":', "f"))
    assert first.id == "call_1"
    assert len({first.id, second.id, third.id}) == 3


@pytest.mark.parametrize("call_id", [None, "", "  ", 7])
def test_a_missing_id_is_made_and_is_the_same_when_the_answer_is_read_again(call_id: Any) -> None:
    entries = (a_tool_call("{}", call_id=call_id), a_tool_call("{}", call_id=call_id))
    one, two = calls_of(*entries)
    assert one.id != two.id
    assert one.id.isalnum()
    assert len(one.id) == 9
    assert calls_of(*entries) == (one, two)


def test_the_older_function_call_is_read() -> None:
    body = a_body(message={"function_call": {"name": "f", "arguments": '{"a":1}'}}, finish="function_call")
    (call,) = read(body).calls
    assert (call.name, call.arguments) == ("f", {"a": 1})


def test_entries_without_type_or_without_a_nested_function_are_read() -> None:
    assert asked({"id": "1", "function": {"name": "f"}}, {"id": "2", "name": "g", "arguments": "{}"}) == [
        ("f", {}),
        ("g", {}),
    ]


@pytest.mark.parametrize("place", ["parameters", "input"])
def test_arguments_under_another_protocols_word_are_not_lost(place: str) -> None:
    assert asked({"function": {"name": "f", place: {"a": 1}}}, {"name": "g", place: '{"a":2}'}) == [
        ("f", {"a": 1}),
        ("g", {"a": 2}),
    ]


@pytest.mark.parametrize(
    "entry", [None, 7, "f", [], {}, {"function": None}, {"function": {"name": " "}}, a_tool_call("{}", name=None)]
)
def test_entries_that_name_no_function_are_the_providers_fault(entry: Any) -> None:
    error = failure(a_body(calls=[entry], finish="tool_calls"))
    assert (error.code, error.retryable) == (ErrorCode.MALFORMED_BY_PROVIDER, True)
    assert asked(entry, a_tool_call("{}")) == [("get_weather", {})]
