"""`rollcall replay`: one case per line of input, one result per line of output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from function_calls.encodings import offered_names
from tests.bot.cli.running import Printed, a_settings_file, command
from tests.bot.cli.running import without_a_model as without_a_model

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
PARIS = {"name": "get_weather", "arguments": {"city": "Paris"}}

Run = Callable[..., list[dict[str, Any]]]


def asks(arguments: Any = '{"city":"Paris"}', name: str = "get_weather", finish: str = "tool_calls") -> dict[str, Any]:
    """A response that calls a function."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return response({"role": "assistant", "content": None, "tool_calls": [call]}, finish)


def says(text: str) -> dict[str, Any]:
    """A response with text."""
    return response({"role": "assistant", "content": text}, "stop")


def response(message: dict[str, Any], finish: str) -> dict[str, Any]:
    body = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return {"status": 200, "headers": {"Content-Type": "application/json"}, "body": body}


def stream(*deltas: dict[str, Any], finish: str | None = "tool_calls") -> dict[str, Any]:
    """The same as server-sent events."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return {"sse": "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)}


def a_case(*model: Any, text: str = "how is Paris?", **fields: Any) -> dict[str, Any]:
    """A case with the weather as its only function."""
    message = {"text": text, **fields.pop("message", {})}
    return {"id": "c", "message": message, "functions": [WEATHER], "model": list(model), "expect": {}, **fields}


@pytest.fixture
def replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Writes cases to a file, runs the command, and returns the result lines."""

    def run(*cases: Any, status: int = 0) -> list[dict[str, Any]]:
        printed = replay_file(capsys, tmp_path, cases)
        assert printed.status == status, printed
        return [json.loads(line) for line in printed.out.splitlines()]

    return run


def replay_file(capsys: pytest.CaptureFixture[str], folder: Path, cases: Any, *options: object) -> Printed:
    file = folder / "cases.jsonl"
    file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in cases))
    return command(capsys, "replay", file, *options)


def test_a_result_line_has_exactly_the_promised_keys(replayed: Run) -> None:
    (line,) = replayed(a_case(asks(), says("Mild."), expect={"calls": [PARIS], "reply": "Mild."}))
    assert line == {
        "id": "c", "calls": [PARIS], "reply": "Mild.", "reason": "function", "error": None, "ok": True,
    }  # fmt: skip


@pytest.mark.requirement("D61")
def test_a_call_may_be_given_by_function_and_arguments_without_an_answer_of_a_model(replayed: Run) -> None:
    right, wrong = replayed(
        a_case(call=PARIS, results={"get_weather": "12 °C"}, expect={"calls": [PARIS]}),
        a_case(call={**PARIS, "arguments": {"town": "Paris"}}, expect={"calls": [], "error": "schema_mismatch"}),
    )
    assert (right["reply"], right["ok"], wrong["ok"]) == ("12 °C", True, True)
    (after,) = replayed(a_case(says("Mild."), call=PARIS, expect={"calls": [PARIS], "reply": "Mild."}))
    assert "model_exhausted" not in after


@pytest.mark.parametrize(
    "answer",
    [
        asks(),
        asks({"city": "Paris"}),
        {**asks(), "body": json.dumps(asks()["body"])},
        {"body": asks()["body"]},
        {**asks(), "headers": None},
        {"status": 200, "body": stream({"tool_calls": [{"function": PARIS}]})["sse"]},
        stream(
            {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "get_weather", "arguments": '{"ci'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": 'ty":"Paris"}'}}]},
        ),
    ],
    ids=["json", "object-arguments", "text-body", "no-status", "no-headers", "sse-as-body", "sse"],
)  # fmt: skip
def test_an_answer_may_be_written_in_every_form_of_the_wire(replayed: Run, answer: Any) -> None:
    (line,) = replayed(a_case(answer, says("Mild."), expect={"calls": [PARIS], "reply": "Mild.", "error": None}))
    assert line["ok"]


def test_a_failure_that_may_pass_is_asked_about_again_and_a_lasting_one_is_not(replayed: Run) -> None:
    busy = {"status": 503, "headers": {"Retry-After": "2"}, "body": "busy"}
    refused = {"status": 401, "body": {"error": {"message": "bad key"}}}
    passing, lasting = replayed(a_case(busy, says("Hi")), a_case(refused, says("Hi")))
    assert (passing["reply"], passing["error"]) == ("Hi", None)
    assert (lasting["reason"], lasting["error"]) == ("model_failed", "provider_error")


@pytest.mark.requirement("D61")
@pytest.mark.parametrize(
    "expect",
    [
        {"calls": []},
        {"calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}]},
        {"calls": [PARIS, PARIS]},
        {"reply": "Cold."},
        {"reason": "chat"},
        {"error": "timeout"},
    ],
)
def test_a_difference_from_what_is_expected_ends_in_one(replayed: Run, expect: Any) -> None:
    (line,) = replayed(a_case(asks(), says("Mild."), expect=expect), status=1)
    assert line["ok"] is False


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"expect": None}, "expect: Field required"),
        ({"expects": {"reply": "Hi"}}, "expects: Extra inputs are not permitted"),
        ({"message": {"text": "hi", "sendr": "Bob"}}, "message.sendr"),
        ({"model": [{**says("Hi"), "delay": 1}]}, "model.0.delay"),
        ({"settings": {"shortlst": 0}}, "settings.shortlst"),
        ({"settings": {"profile": {"dialect": "qwen", "strickt": True}}}, "settings.profile.strickt"),
        ({"expect": {"calls": [{**PARIS, "argument": {}}]}}, "expect.calls.0.argument"),
    ],
)
def test_a_case_without_expectations_or_with_an_unknown_key_is_refused(
    replayed: Run, bad: dict[str, Any], problem: str
) -> None:
    (line,) = replayed(a_case(says("Hi")) | bad, status=1)
    assert (line["ok"], line["reply"]) == (False, "")
    assert problem in line["problem"]


def test_true_is_not_one(replayed: Run) -> None:
    anything = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    call = {"name": "f", "arguments": {"a": 1}}
    (line,) = replayed(a_case(asks('{"a":true}', "f"), functions=[anything], expect={"calls": [call]}), status=1)
    assert line["calls"] == [{"name": "f", "arguments": {"a": True}}]


def test_when_the_script_runs_out_the_turn_ends_with_what_it_has(replayed: Run) -> None:
    exhausted = {"model_exhausted": True, "error": None, "ok": True}
    called, told, silent, to_chat = replayed(
        a_case(asks(), expect={"calls": [PARIS]}),
        a_case(asks(), results={"get_weather": "Mild and dry"}),
        a_case(),
        a_case(asks("{}", "none")),
    )
    assert {**called, **exhausted} == called
    assert (told["reply"], silent["reply"], to_chat["reply"]) == ("Mild and dry", "", "")
    assert {**to_chat, **exhausted, "calls": [], "reason": "chat"} == to_chat


def test_an_error_before_the_script_runs_out_stays_the_result(replayed: Run) -> None:
    garbled, truncated = replayed(a_case({"status": 200, "body": "<html>"}), a_case(asks('{"city":"Pa')))
    assert (garbled["error"], truncated["error"]) == ("malformed_by_provider", "truncated")
    assert truncated["calls"] == []


def test_what_a_function_returns_is_told_to_the_model_and_only_what_the_model_said_is_recorded(replayed: Run) -> None:
    (line,) = replayed(a_case(asks(), says("Mild."), results={"get_weather": {"degrees": 14}}))
    # `unit` is a default and not an argument by the model.
    assert line["calls"] == [PARIS]


@pytest.mark.parametrize("name", ["weather.now", "查天气", "weather now!", "w" * 80])
def test_a_scripted_call_may_use_the_original_name_or_the_one_it_was_offered_under(replayed: Run, name: str) -> None:
    function = {**WEATHER, "function": {**WEATHER["function"], "name": name}}  # type: ignore[dict-item]
    expect = {"calls": [{"name": name, "arguments": {"city": "Paris"}}]}
    offered = offered_names([name])[name]
    assert offered != name
    cases = [a_case(asks(name=one), says("ok"), functions=[function], expect=expect) for one in (name, offered)]
    assert [line["ok"] for line in replayed(*cases)] == [True, True]


def test_functions_may_be_defined_in_every_providers_spelling(replayed: Run) -> None:
    inner: dict[str, Any] = WEATHER["function"]  # type: ignore[assignment]
    schema = inner["parameters"]
    spellings = [
        WEATHER,
        inner,
        {"name": "get_weather", "input_schema": schema},
        {"name": "get_weather", "inputSchema": schema},
    ]
    expect = {"calls": [PARIS]}
    lines = replayed(*(a_case(asks(), functions=[one], expect=expect) for one in spellings))
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (asks('{"city":5,"unit":"kelvin"}'), "schema_mismatch"),
        (asks('{"unit":"celsius"}'), "schema_mismatch"),
        (asks('"Paris"'), "not_an_object"),
        (asks("{city:Paris}"), "invalid_json"),
        (asks(name="run_shell"), "unknown_function"),
        (asks(finish="length"), "truncated"),
        (asks(finish="content_filter"), "content_filtered"),
        (says("<tool_call>{}</tool_call>"), "leaked_markup"),
        (says(""), "empty_response"),
        (stream({"content": "Hi"}, finish=None), "stream_incomplete"),
    ],
)
def test_a_malformed_answer_reaches_no_handler_and_has_a_code(replayed: Run, answer: Any, error: str) -> None:
    (line,) = replayed(a_case(answer, expect={"calls": [], "error": error}))
    assert line["ok"]
    assert line["reply"]


def test_a_message_to_nobody_is_not_answered(replayed: Run) -> None:
    unaddressed, private = replayed(
        a_case(asks(), message={"addressed": False}, expect={"calls": [], "reply": "", "reason": "not_addressed"}),
        a_case(asks(), message={"addressed": False, "is_group": False}, expect={"calls": [PARIS]}),
    )
    assert "model_exhausted" not in unaddressed
    assert private["ok"]


def test_history_may_be_openai_messages_or_plain_lines(replayed: Run) -> None:
    openai = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "1", "content": "{}"},
        {"role": "assistant", "content": "Hi!"},
    ]
    plain = [{"sender": "Bob", "text": "hello"}, {"sender": "Ann", "text": "hi"}]
    for history in (openai, plain, None):
        (line,) = replayed(a_case(asks(), says("Mild."), history=history, expect={"calls": [PARIS]}))
        assert line["ok"]


def test_without_functions_the_bots_own_run_for_real_and_commands_ask_no_model(replayed: Run) -> None:
    case = {"id": 1, "message": {"text": "/calc 2+3"}, "expect": {"reason": "command", "error": None}}
    chosen = {"id": 2, "message": {"text": "six times seven?"}, "model": [asks('{"expression":"6*7"}', "calculate")],
              "expect": {}}  # fmt: skip
    command_line, model_line = replayed(case, chosen)
    assert "5" in command_line["reply"]
    assert command_line["calls"] == [{"name": "calculate", "arguments": {"expression": "2+3"}}]
    assert "42" in model_line["reply"]


def test_one_case_leaves_nothing_for_the_next(replayed: Run) -> None:
    add = {"id": 1, "message": {"text": "/todo add milk"}, "expect": {}}
    _, listed = replayed(add, {"id": 2, "message": {"text": "/todo"}, "expect": {}})
    assert "milk" not in listed["reply"]


def test_the_bots_own_functions_reach_no_network_and_may_be_given_results(replayed: Run) -> None:
    call = asks('{"city":"Oslo"}', "weather")
    real, given = replayed(
        {"id": 1, "message": {"text": "weather?"}, "model": [call], "expect": {}},
        {"id": 2, "message": {"text": "weather?"}, "model": [call], "results": {"weather": "Sun"}, "expect": {}},
    )
    assert real["error"] == "environment"
    assert (given["reply"], given["error"]) == ("Sun", None)
    assert real["calls"] == given["calls"] == [{"name": "weather", "arguments": {"city": "Oslo", "days": 2}}]


@pytest.mark.parametrize(("role", "reason"), [("member", "refused"), ("admin", "command"), ("owner", "command")])
def test_a_member_has_the_role_that_the_case_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, role: str, reason: str
) -> None:
    settings = a_settings_file(tmp_path, "functions: {roll_dice: {roles: admin}}\n")
    case = {"message": {"text": "/roll", "role": role}, "expect": {"reason": reason}}
    assert replay_file(capsys, tmp_path, [case], "--config", settings).status == 0


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"settings": {"protocol": "xml"}}, "settings.protocol"),
        ({"settings": {"shortlist": -1}}, "settings.shortlist"),
        ({"settings": {"tool_choice": ["weather"]}}, "settings.tool_choice"),
        ({"message": {"role": "king"}}, "message.role"),
        ({"message": "hello"}, "message"),
        ({"model": [{"answer": "hi"}]}, "model.0"),
        ({"model": "hi"}, "model"),
        ({"history": ["hi"]}, "history.0"),
        ({"expect": {"error": "oops"}}, "expect.error"),
        ({"expect": {"call": []}}, "expect.call"),
        ({"expect": {"calls": [{"name": "f"}]}}, "expect.calls.0.arguments"),
        ({"functions": [{"description": "nameless"}]}, "name is required"),
        ({"functions": [WEATHER, WEATHER]}, "get_weather"),
        ({"functions": [{"name": "f", "parameters": {"$ref": "http://x/y"}}]}, "$ref"),
        ({"functions": [{"name": "f", "parameters": {"properties": {"a": {"pattern": "("}}}}]}, "'f'"),
    ],
)
def test_a_case_that_cannot_be_replayed_is_told_in_its_line_and_the_run_goes_on(
    replayed: Run, bad: dict[str, Any], problem: str
) -> None:
    line, good = replayed({"id": "bad", "message": {"text": "hi"}, "expect": {}, **bad}, a_case(says("Hi")), status=1)
    assert problem in line.pop("problem")
    assert line == {"id": "bad", "calls": [], "reply": "", "reason": None, "error": None, "ok": False}
    assert good["ok"]


def test_a_line_that_is_no_case_is_told_too(replayed: Run) -> None:
    lines = replayed("{", "[]", "7", a_case(says("Hi")), status=1)
    assert [line["ok"] for line in lines] == [False, False, False, True]
    assert all(line["problem"] for line in lines[:3])


def test_result_lines_go_to_a_file_and_the_count_to_standard_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "results.jsonl"
    cases = [a_case(says("你好")), a_case(says("no"), expect={"reply": "yes"})]
    printed = replay_file(capsys, tmp_path, cases, "--out", out)
    assert printed == (1, "", "1 of 2 as expected\n")
    assert [json.loads(line)["reply"] for line in out.read_text("utf-8").splitlines()] == ["你好", "no"]


@pytest.mark.parametrize("options", [[], ["--out", "nowhere/results.jsonl"]])
def test_files_that_cannot_be_used_are_a_usage_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if options:
        assert replay_file(capsys, tmp_path, [a_case(says("Hi"))], *options).status == 2
    assert command(capsys, "replay", tmp_path / "absent.jsonl").status == 2
    assert replay_file(capsys, tmp_path, []).status == 2


def records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def test_recorded_traffic_makes_exactly_the_recorded_calls(data: Callable[[str], Path], replayed: Run) -> None:
    exchanges = {one["id"]: one for one in records(data("A_provider_traffic/chat_completions.jsonl"))}
    cases = []
    for case in records(data("A_provider_traffic/e2e_cases.jsonl")):
        exchange = exchanges[case["id"]]
        body = exchange["response_body"] if exchange["response_body"] is not None else exchange["text_body"]
        answer = {"status": exchange["response_status"], "headers": exchange["response_headers"], "body": body}
        calls = [{"name": one["name"], "arguments": one["arguments"]} for one in case["expected_calls"]]
        cases.append({
            "id": case["id"],
            "message": {"text": case["user_text"] or "go"},
            "functions": [{"type": "function", "function": tool} for tool in case["tools"]],
            "model": [answer if exchange["sse_text"] is None else {"sse": exchange["sse_text"]}],
            "expect": {"calls": calls},
        })  # fmt: skip
    assert [line["id"] for line in replayed(*cases) if not line["ok"]] == []


def test_recorded_traffic_of_anthropic_makes_exactly_the_recorded_calls(
    data: Callable[[str], Path], replayed: Run
) -> None:
    cases = []
    for exchange in records(data("A_provider_traffic/anthropic_messages.jsonl")):
        tools = [tool for tool in (exchange["request_json"] or {}).get("tools", ()) if "input_schema" in tool]
        body = exchange["response_body"]
        answer = {"status": exchange["response_status"], "headers": exchange["response_headers"], "body": body}
        oracle = exchange["oracle"]
        required = {tool["name"]: set(tool["input_schema"].get("required", ())) for tool in tools}
        wanted = [{"name": one["name"], "arguments": one["input"]} for one in oracle["tool_calls"]]
        cases.append({
            "id": exchange["id"],
            "message": {"text": "go"},
            "functions": tools,
            "model": [answer if exchange["sse_text"] is None else {"sse": exchange["sse_text"]}],
            "settings": {"protocol": "anthropic"},
            # One of the recorded models omits a required argument.
            "expect": {"calls": [one for one in wanted if required.get(one["name"], {""}) <= one["arguments"].keys()]}
            | ({"reply": oracle["text"]} if not wanted and oracle["text"] else {}),
        })  # fmt: skip
    lines = replayed(*cases)
    assert [line["id"] for line in lines if not line["ok"]] == []
    assert sum(len(line["calls"]) for line in lines) >= 20


def anthropic(*content: dict[str, Any]) -> dict[str, Any]:
    return {"body": {"type": "message", "content": list(content), "stop_reason": "end_turn"}}


@pytest.mark.requirement("D28")
@pytest.mark.parametrize(
    ("protocol", "answer", "words"),
    [
        ("openai", asks(), says("Mild.")),
        ("anthropic", anthropic({"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Paris"}}),
         anthropic({"type": "text", "text": "Mild."})),
        ("json_text", says('```json\n{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}\n```'),
         says("Mild.")),
        ("xml_text", says('<tool name="get_weather"><parameters><city>Paris</city></parameters></tool>'),
         says("Mild.")),
    ],
)  # fmt: skip
def test_a_case_may_speak_any_protocol(replayed: Run, protocol: str, answer: Any, words: Any) -> None:
    case = a_case(answer, words, settings={"protocol": protocol}, expect={"calls": [PARIS], "reply": "Mild."})
    assert replayed(case)[0]["ok"]


@pytest.mark.parametrize("profile", ["qwen3-32b", {"dialect": "qwen"}, {"dialect": "hermes"}])
def test_a_profile_names_the_dialect_that_is_read(replayed: Run, profile: Any) -> None:
    leak = says('<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>')
    read, unread = replayed(
        a_case(leak, says("Mild."), settings={"profile": profile}, expect={"calls": [PARIS], "reply": "Mild."}),
        a_case(leak, says("Mild."), settings={"profile": "unheard-of"}),
    )
    assert read["ok"]
    assert (unread["calls"], unread["error"]) == ([], "leaked_markup")


def written(case: dict[str, Any]) -> dict[str, Any]:
    """A malformed answer in its original format."""
    raw = case["raw_message"]
    if case["form"] == "stream":
        ends = any(choice.get("finish_reason") for chunk in raw for choice in chunk.get("choices") or ())
        events = [f"data: {json.dumps(chunk)}\n\n" for chunk in raw] + ["data: [DONE]\n\n"] * ends
        return {"sse": "".join(events)}
    return {"status": 200, "body": raw if case["form"] == "body" else {"id": "x", "choices": [raw]}}


CHOICES = {
    "name": "choose",
    "description": "Choose",
    "parameters": {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "flag": {"type": "string", "enum": ["True", "False"]},
            "size": {"type": "string", "enum": ["1", "2"]},
            "code": {"type": "string", "enum": ["On", "ON"]},
        },
    },
}


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ({"unit": "Celsius"}, {"unit": "celsius"}),
        ({"unit": " FAHRENHEIT"}, {"unit": "fahrenheit"}),
        ({"flag": True}, {"flag": "True"}),
        ({"flag": "false"}, {"flag": "False"}),
        ({"size": 1}, {"size": "1"}),
        ({"code": "On"}, {"code": "On"}),
        ({"code": "on"}, None),
        ({"unit": "kelvin"}, None),
        ({"size": True}, None),
        ({"size": 1.5}, None),
    ],
)
def test_a_value_of_a_list_that_differs_in_case_or_type_alone_is_accepted(
    replayed: Run, given: dict[str, Any], received: dict[str, Any] | None
) -> None:
    [line] = replayed(a_case(asks(json.dumps(given), "choose"), says("ok"), functions=[CHOICES]))
    assert line["calls"] == ([] if received is None else [{"name": "choose", "arguments": received}])
    assert line["error"] == (None if received is not None else "schema_mismatch")


@pytest.mark.parametrize("name", ["functions.get", "tools.get", "default_api.get", "get"])
def test_a_function_that_is_named_like_a_wrapped_one_is_found_under_its_own_name(replayed: Run, name: str) -> None:
    names = ["functions.get", "tools.get", "get"]
    functions = [{"name": one, "description": one, "parameters": {"type": "object"}} for one in names]
    [line] = replayed(a_case(asks("{}", name), says("ok"), functions=functions))
    assert [call["name"] for call in line["calls"]] == [name if name in names else "get"]
    others = [one for one in functions if one["name"] != "get"]
    [line] = replayed(a_case(asks("{}", name), says("ok"), functions=others))
    assert [call["name"] for call in line["calls"]] == [one for one in names if one == name != "get"]


@pytest.mark.parametrize("finish", ["", None])
def test_a_call_under_no_finish_reason_runs_only_if_it_reads(replayed: Run, finish: Any) -> None:
    reads = asks('{"dice": "1d1"}', "roll_dice", finish)
    reminds = asks('{"text": "call Ann", "when": "in 10 minutes"}', "reminder_create", finish)
    lines = replayed(*(a_case(answer, says("ok"), functions=None) for answer in (reads, reminds)))
    assert [[call["name"] for call in line["calls"]] for line in lines] == [["roll_dice"], []]
    assert lines[1]["reason"] == "asked"


def called(arguments: str, **fields: Any) -> dict[str, Any]:
    """A piece of a streamed call."""
    return {"tool_calls": [{"function": {"name": "get_weather", "arguments": arguments}, **fields}]}


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"ci', '{"city":', '{"city":"Par', '{"city":"Paris"}'],
        ['{"ci', '{"city":"Paris"}', '{"city":"Paris"}'],
        ['{"city"', ':"Paris"}', '{"city":"Paris"}'],
        ['{"city"', ':"Paris"}', '{"city": "Paris"}'],
        ['{"city":"Paris"}', '{"city":"Paris"}'],
    ],
)
@pytest.mark.parametrize("fields", [{"index": 0, "id": "c1"}, {"index": 0}, {"id": "c1"}, {}])
def test_a_stream_that_sends_the_arguments_again_makes_one_call(
    replayed: Run, pieces: list[str], fields: dict[str, Any]
) -> None:
    [line] = replayed(a_case(stream(*(called(piece, **fields) for piece in pieces)), says("ok")))
    assert line["calls"] == [PARIS]


@pytest.mark.parametrize("last", [{"index": 0, "id": "c2"}, {"index": 0}, {}])
def test_a_stream_that_ends_with_the_complete_message_is_read_once(replayed: Run, last: dict[str, Any]) -> None:
    whole = {"role": "assistant", "content": "", **called('{"city":"Paris"}', **last)}
    answer = stream(
        called('{"city"', index=0, id="c1"), {"tool_calls": [{"index": 0, "function": {"arguments": ':"Paris"}'}}]}
    )
    end = {"choices": [{"index": 0, "delta": {}, "message": whole, "finish_reason": "tool_calls"}]}
    answer["sse"] += f"data: {json.dumps(end)}\n\n"
    text = stream({"content": "It is "}, {"content": "warm."}, finish="stop")
    end = {"choices": [{"index": 0, "message": {"content": "It is warm."}, "finish_reason": "stop"}]}
    text["sse"] += f"data: {json.dumps(end)}\n\n"
    [line] = replayed(a_case(answer, text))
    assert (line["calls"], line["reply"]) == ([PARIS], "It is warm.")


def test_two_equal_calls_with_their_own_index_or_id_stay_two(replayed: Run) -> None:
    by_index = stream(called('{"city":"Paris"}', index=0), called('{"city":"Paris"}', index=1))
    by_id = stream(called('{"city":"Paris"}', id="c1"), called('{"city":"Paris"}', id="c2"))
    for line in replayed(*(a_case(answer, says("ok")) for answer in (by_index, by_id))):
        assert line["calls"] == [PARIS, PARIS]


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"index": 0, "finish_reason": "content_filter"}]},
        {"choices": [{"index": 0, "finish_reason": "content_filter", "message": None}]},
        {"choices": [{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]},
        {"choices": [], "prompt_feedback": {"block_reason": "SAFETY"}},
        {"choices": [], "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True}}}]},
        {"choices": [], "promptFeedback": {"blockReason": "OTHER"}},
    ],
)
def test_a_content_filter_without_a_message_is_reported_as_one(replayed: Run, body: dict[str, Any]) -> None:
    [line] = replayed(a_case({"status": 200, "body": body}))
    assert (line["error"], line["calls"]) == ("content_filtered", [])


RECORD = '‹call_record get_weather {"city": "Paris"} → ok›'


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (f"It is warm. {RECORD}", "It is warm."),
        (f"{RECORD}\nIt is warm.", "It is warm."),
        ("It is warm.\n‹call_record›{}‹/call_record›", "It is warm."),
        ("It is warm. ‹call_record get_weather", "It is warm."),
        (RECORD, None),
        ('Let me see. {"name": "get_weather", "arguments": {"city": "Paris"}}', None),
        ('Let me see.\n```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```', None),
        ('{"function": "get_weather", "args": {"city": "Par', None),
        ('{"recipient_name": "functions.get_weather", "parameters": {}}', None),
        ('[{"type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]', None),
        ('Write {"name": "f", "arguments": {}} in the file.', 'Write {"name": "f", "arguments": {}} in the file.'),
        ('The input is {"name": "get_weather"}.', 'The input is {"name": "get_weather"}.'),
    ],
)
def test_records_and_calls_in_a_text_never_reach_the_chat(replayed: Run, text: str, reply: str | None) -> None:
    [line] = replayed(a_case(says(text)))
    assert line["calls"] == []
    if reply is None:
        assert line["error"] == "leaked_markup"
        assert "call_record" not in line["reply"]
        assert "get_weather" not in line["reply"]
    else:
        assert (line["error"], line["reply"]) == (None, reply)


def as_text(calls: list[dict[str, Any]]) -> list[str]:
    return [json.dumps([call["name"], call["arguments"]], sort_keys=True) for call in calls]


def is_met(wanted: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether the outcome is the one in the data."""
    if "error" in wanted:
        return line["error"] == wanted["error"] and not line["calls"]
    if wanted["calls"] == "first_n":
        return 0 < len(line["calls"]) <= 16
    text = wanted.get("text")
    return as_text(wanted["calls"]) == as_text(line["calls"]) and text in (None, "", "*", line["reply"].strip())


VIOLATIONS: dict[str, Callable[[Any, dict[str, Any]], bool]] = {
    "executed": lambda _, line: bool(line["calls"]),
    "call": lambda call, line: as_text([call])[0] in as_text(line["calls"]),
    "only_call": lambda call, line: as_text([call]) == as_text(line["calls"]),
    "call_name": lambda name, line: any(call["name"] == name for call in line["calls"]),
    "call_arg": lambda name, line: any(name in call["arguments"] for call in line["calls"]),
    "dup_exec": lambda name, line: sum(call["name"] == name for call in line["calls"]) > 1,
    "visible_contains": lambda part, line: part in line["reply"],
    "visible_empty": lambda _, line: not line["reply"].strip(),
    "arg_control_chars": lambda _, line: any(
        ord(sign) < 32 and sign not in "\n\t\r"
        for call in line["calls"]
        for value in call["arguments"].values()
        if isinstance(value, str)
        for sign in value
    ),
    "crash": lambda _, line: "problem" in line,
}
"""Checks of outcomes that must never happen, by their name in the data."""


@pytest.mark.parametrize(("named", "least"), [(False, 0.97), (True, 0.99)], ids=["no-profile", "profile"])
def test_malformed_answers_never_do_harm_and_mostly_do_what_is_best(
    data: Callable[[str], Path], replayed: Run, named: bool, least: float
) -> None:
    tools = json.loads(data("G_faults/malformed_tools.json").read_text())["tools"]
    offered = {tool["function"]["name"]: tool for tool in tools}
    found = list(records(data("G_faults/malformed_toolcalls.jsonl")))
    lines = replayed(*(
        {
            "id": case["id"],
            "message": {"text": "please help"},
            "functions": [offered[name] for name in case["tools_offered"] if name in offered],
            "model": [written(case)],
            "settings": {"profile": case["provider"]} if named else {},
            "expect": {},
        }
        for case in found
    ))  # fmt: skip
    harmful, quality = [], 0.0
    for case, line in zip(found, lines, strict=True):
        clauses = [*case["never"], {"crash": True}]
        harmful += [
            (case["id"], word) for one in clauses for word, value in one.items() if VIOLATIONS[word](value, line)
        ]
        quality += 1.0 if is_met(case["expected"], line) else 0.8 * any(is_met(one, line) for one in case["also_ok"])
    assert harmful == []
    assert quality / len(found) >= least
