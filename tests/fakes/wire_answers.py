"""Response bodies for scripted answers, in the format of each protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from services.llm import text_calls
from services.llm.model import ModelAnswer, ToolCall, Usage
from services.refs import ErrorCode

_BROKEN = {ErrorCode.INVALID_JSON: '{"city": }', ErrorCode.TRUNCATED: '{"city": "Os', ErrorCode.NOT_AN_OBJECT: '["Os"]'}
"""Arguments with each error that has a separate field."""
_BROKEN_JSON = {
    ErrorCode.INVALID_JSON: '{"tool_calls": [{"name": "%s", "arguments": {"city": }}]}',
    ErrorCode.TRUNCATED: '{"tool_calls": [{"name": "%s", "arguments": {"city": "Os',
    ErrorCode.NOT_AN_OBJECT: '{"tool_calls": [{"name": "%s", "arguments": ["Os"]}]}',
    ErrorCode.MALFORMED_BY_PROVIDER: '{"tool_calls": {"name": "%s"}}',
}
_BROKEN_XML = {
    ErrorCode.TRUNCATED: '<tools><tool name="%s"><parameters><city>Os',
    ErrorCode.MALFORMED_BY_PROVIDER: '<tool name="%s"><parameters><city>Oslo</town></parameters></tool>',
}
_NO_FUNCTION_NAMED = {
    "json_text": '{"tool_calls": [{"nme": "weather"}]}',
    "xml_text": "<tools><tool>weather</tool></tools>",
}


class Unsayable(AssertionError):
    """A protocol cannot express a script. The test excludes the protocol with a reason."""


def body_of(protocol: str, step: ModelAnswer, answer_id: str) -> bytes:
    """Response body for `step`. Raises Unsayable."""
    if step.final or step.opaque is not None or any(call.uncertain for call in step.calls):
        raise Unsayable("only a model of our own guesses, or says that nothing is to be added")
    body = _BODIES[protocol](step, answer_id)
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _openai(step: ModelAnswer, answer_id: str) -> Any:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
        for call in step.calls
    ]
    message: dict[str, Any] = {"content": step.text or None, **({"tool_calls": calls} if calls else {})}
    return _completion(message, "tool_calls" if calls else "stop", step.usage, answer_id)


def _completion(message: Mapping[str, Any], finish: str, used: Usage, answer_id: str) -> Any:
    counted = {
        "prompt_tokens": used.prompt,
        "completion_tokens": used.completion,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": answer_id, "choices": [choice], "usage": counted}


def _arguments(call: ToolCall) -> str:
    return json.dumps(call.arguments) if call.arguments is not None else _broken(call, _BROKEN)


def _broken(call: ToolCall, ways: Mapping[ErrorCode, str]) -> str:
    if call.fault not in ways:
        raise Unsayable(f"a call with the fault {call.fault}")
    return ways[call.fault]


def _anthropic(step: ModelAnswer, answer_id: str) -> Any:
    said: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
    used = {
        "input_tokens": step.usage.prompt - step.usage.cached,
        "cache_read_input_tokens": step.usage.cached,
        "output_tokens": step.usage.completion,
    }
    head = {"id": answer_id, "type": "message", "usage": used}
    stop = "tool_use" if step.calls else "end_turn"
    if all(call.arguments is not None for call in step.calls):
        uses = [_tool_use(call, call.arguments) for call in step.calls]
        return {**head, "content": [*said, *uses], "stop_reason": stop}
    # Arguments can be invalid JSON only in a stream.
    blocks = [*said, *(_tool_use(call, {}) for call in step.calls)]
    pieces = [("", "")] * len(said) + [("input_json_delta", _arguments(call)) for call in step.calls]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**head, "content": []}}]
    for index, (block, (kind, piece)) in enumerate(zip(blocks, pieces, strict=True)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        if kind:
            delta = {"type": kind, "partial_json": piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}})
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


def _tool_use(call: ToolCall, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _in_prose(form: Literal["json", "xml"]) -> Callable[[ModelAnswer, str], Any]:
    def body(step: ModelAnswer, answer_id: str) -> Any:
        words = [step.text, _block(step, form)]
        content = "\n".join(part for part in words if part)
        return _completion({"content": content}, "stop", step.usage, answer_id)

    return body


def _block(step: ModelAnswer, form: Literal["json", "xml"]) -> str:
    """The calls of `step`: the valid ones in one block, each invalid one as a model would write it."""
    readable = [(call.name, call.arguments) for call in step.calls if call.arguments is not None]
    write = {"json": text_calls.write_json_calls, "xml": text_calls.write_xml_calls}[form]
    blocks = [write(readable)] if readable else []
    return "\n".join([*blocks, *(_spoiled(call, form) for call in step.calls if call.arguments is None)])


def _spoiled(call: ToolCall, form: Literal["json", "xml"]) -> str:
    if not call.name:
        return _NO_FUNCTION_NAMED[f"{form}_text"]
    return _broken(call, {"json": _BROKEN_JSON, "xml": _BROKEN_XML}[form]) % call.name


_BODIES: Mapping[str, Callable[[ModelAnswer, str], Any]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "json_text": _in_prose("json"),
    "xml_text": _in_prose("xml"),
}
