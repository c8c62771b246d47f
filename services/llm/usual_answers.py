"""The answer of the usual form, read in a few steps: most answers have it, and the careful reader gives the same."""

from __future__ import annotations

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.answer_rules import tokens
from services.llm.markup import has_signs
from services.llm.model import ModelAnswer, ToolCall, Usage
from services.llm.tool_arguments import MAX_ARGUMENT_CHARACTERS, is_surely_exact

_FIELDS = frozenset({"role", "content", "tool_calls", "refusal", "annotations"})
"""What a message may have here: anything else may have to be sent back, or may be a call in another place."""
_CALL_FIELDS = frozenset({"id", "type", "index", "function"})
_FUNCTION_FIELDS = frozenset({"name", "arguments"})


def usual_answer(data: JsonObject, request_id: str) -> ModelAnswer | None:
    """The answer in a completion that is only words, or only calls with flat arguments, and where nothing has to be put
    right or left out; None for every other."""
    choices = data.get("choices")
    if "error" in data or data.get("object") == "error" or type(choices) is not list or len(choices) != 1:
        return None
    choice = choices[0]
    if type(choice) is not dict or "error" in choice:
        return None
    message, finish = choice.get("message"), choice.get("finish_reason")
    if type(message) is not dict or not message.keys() <= _FIELDS or message.get("refusal"):
        return None
    text, entries = message.get("content"), message.get("tool_calls")
    calls: tuple[ToolCall, ...] | None = ()
    if finish == "tool_calls" and not text and type(entries) is list:
        text, calls = "", _calls(entries)
    elif finish != "stop" or entries or type(text) is not str or not text.strip() or has_signs(text):
        return None
    if calls is None:
        return None
    answer_id, model = data.get("id"), data.get("model")
    request_id = request_id or (answer_id if type(answer_id) is str else "")
    model = model if type(model) is str else ""
    return ModelAnswer(text, calls, finish, model, request_id, usage(data.get("usage")))


def usage(value: JsonValue) -> Usage:
    """The tokens that a completion counts."""
    if not isinstance(value, dict):
        return Usage()
    details = value.get("prompt_tokens_details")
    cached = tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(tokens(value.get("prompt_tokens")), tokens(value.get("completion_tokens")), cached)


def _calls(entries: list[JsonValue]) -> tuple[ToolCall, ...] | None:
    if len(entries) == 1:
        only = _call(entries[0])
        return None if only is None else (only,)
    calls: dict[str, ToolCall] = {}
    for entry in entries:
        call = _call(entry)
        if call is None or call.id in calls:
            return None
        calls[call.id] = call
    return tuple(calls.values()) or None


def _call(entry: JsonValue) -> ToolCall | None:
    if type(entry) is not dict or not entry.keys() <= _CALL_FIELDS:
        return None
    function, call_id = entry.get("function"), entry.get("id")
    if type(function) is not dict or function.keys() != _FUNCTION_FIELDS or type(call_id) is not str:
        return None
    name, raw = function["name"], function["arguments"]
    # Every wrapper around a name has a dot or a token of the model's own format.
    if type(name) is not str or not name.isidentifier() or not call_id or call_id != call_id.strip():
        return None
    if type(raw) is not str or len(raw) > MAX_ARGUMENT_CHARACTERS or "\\" in raw or not raw.startswith("{"):
        return None
    try:
        arguments = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return ToolCall(call_id, name, arguments, raw) if is_surely_exact(raw, arguments) else None
