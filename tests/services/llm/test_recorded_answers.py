"""The parsers with recorded traffic of real providers, and with malformed answers from bug reports."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from services.llm.model import ModelAnswer, ModelError
from services.llm.reading.openai import read_body, read_stream
from services.refs import ErrorCode
from tests.services.llm.wire import a_stream

_LATER = frozenset({"unknown_function", "schema_mismatch", "too_many_calls", "not_permitted", "oversized"})
"""Errors that can be found only with knowledge of the functions."""


def records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def recorded_answer(record: dict[str, Any]) -> ModelAnswer:
    body = record["sse_text"] if record["sse_text"] is not None else json.dumps(record["response_body"])
    headers = {name.lower(): value for name, value in record["response_headers"].items()}
    return read_body(record["response_status"], headers, body.encode())


def is_as_recorded(answer: ModelAnswer, oracle: dict[str, Any]) -> bool:
    kept = ((answer.opaque or {}).get("openai") or {}).get("message", {})
    calls = [(call.name, call.arguments) for call in answer.calls]
    named = [call["id"] for call in oracle["tool_calls"] if call["id"]]
    return (
        answer.text == (oracle["text"] or oracle["refusal"] or "")
        and (kept.get("reasoning_content") or kept.get("reasoning") or "") == oracle["reasoning"]
        and calls == [(call["name"], json.loads(call["arguments"] or "{}")) for call in oracle["tool_calls"]]
        and [call.id for call in answer.calls if call.id in named] == named
    )


def test_recorded_traffic_is_read_as_it_was_meant(data: Callable[[str], Path]) -> None:
    differing = []
    for record in records(data("A_provider_traffic/chat_completions.jsonl")):
        oracle = record["oracle"]
        says_nothing = not (oracle["text"] or oracle["refusal"] or oracle["tool_calls"])
        try:
            good = is_as_recorded(recorded_answer(record), oracle) and not oracle["error"]
        except ModelError as error:
            expected = ErrorCode.PROVIDER_ERROR if oracle["error"] else ErrorCode.EMPTY_RESPONSE
            good = says_nothing and error.code is expected
        if not good:
            differing.append(record["id"])
    assert differing == []


def malformed_answer(case: dict[str, Any]) -> ModelAnswer:
    raw = case["raw_message"]
    if case["form"] == "stream":
        ends = any(choice.get("finish_reason") for chunk in raw for choice in chunk.get("choices") or ())
        return read_stream(a_stream(raw, done=ends))
    body = {"choices": [raw]} if case["form"] == "choice" else raw
    return read_body(200, {}, json.dumps(body).encode())


def outcome_of(case: dict[str, Any]) -> dict[str, Any]:
    """Result of the parser alone: valid calls, visible text, and errors."""
    try:
        answer = malformed_answer(case)
    except ModelError as error:
        return {"error": error.code.value, "calls": [], "text": "", "names": []}
    faults = [call.fault.value for call in answer.calls if call.fault]
    calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls if not call.fault]
    return {"error": faults[0] if faults else None, "calls": calls, "text": answer.text}


def is_accepted(outcome: dict[str, Any], wanted: dict[str, Any]) -> bool:
    if "error" in wanted:
        return outcome["error"] == wanted["error"] or (wanted["error"] in _LATER and not outcome["error"])
    return outcome["error"] is None and wanted["calls"] in ("first_n", outcome["calls"])


def test_malformed_answers_are_read_losslessly_or_not_at_all(data: Callable[[str], Path]) -> None:
    differing, visible = [], []
    for case in records(data("G_faults/malformed_toolcalls.jsonl")):
        outcome = outcome_of(case)
        if not any(is_accepted(outcome, wanted) for wanted in [case["expected"], *case["also_ok"]]):
            differing.append((case["id"], outcome["error"]))
        for never in case["never"]:
            if never.get("visible_contains", "\0") in outcome["text"]:
                visible.append(case["id"])
    assert (differing, visible) == ([], [])
