"""The reader of the OpenAI chat-completions wire: bytes in, a ModelAnswer or a ModelError out. No network.

What is a call is decided by the calls that are there; the finish reason can only forbid to run them.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NoReturn

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.markup import visible_text
from services.llm.model import ModelAnswer, ModelError, Usage
from services.llm.openai_stream import collect_stream
from services.llm.provider_errors import error_of_payload, error_of_status, request_id_of
from services.llm.tool_arguments import loads_unique
from services.llm.tool_calls import Calls, read_calls
from services.refs import ErrorCode

MAX_BODY_BYTES = 8 * 1024 * 1024
REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_signature",
    "thinking",
    "thinking_blocks",
    "thought_signature",
    "extra_content",
)
"""Fields of a message that belong to the provider: kept to be sent back, never shown."""
_REASONING_FIELDS = frozenset(REASONING_FIELDS)

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_MOST_TOKENS = 100_000_000
_STREAM_STARTS = (b"data:", b"event:", b":")
_OBJECT_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*\{')
_CALLS_MAY_RUN = frozenset({"", "stop", "tool_calls", "tool_call", "tool_use", "function_call", "end_turn", "eos"})
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive", "image_safety"}
)
_BROKEN = frozenset(
    {"malformed_function_call", "unexpected_tool_call", "malformed_response", "missing_thought_signature"}
)
_FAILED = frozenset({"error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled"})


def read_body(status: int, headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> ModelAnswer:
    """The answer in an HTTP response. Names in `headers` are lower case. `now` dates a `Retry-After` that is a date.

    Raises ModelError: `provider_error` or `content_filtered` for a refusal, `empty_response`, `malformed_by_provider`
    for what is no answer, `truncated`, `leaked_markup`, and for a stream what `read_stream` raises.
    """
    request_id = request_id_of(headers)
    if len(body) > MAX_BODY_BYTES:
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, "the answer is larger than 8 MiB", request_id=request_id)
    if not 200 <= status < 300:
        raise error_of_status(status, headers, body, now)
    body = body.removeprefix(BOM_UTF8)
    if body.lstrip().startswith(_STREAM_STARTS):
        return read_stream(body, headers)
    return _read_completion(_parse(body, request_id), request_id)


def read_stream(sse: bytes, headers: Mapping[str, str] = _NO_HEADERS) -> ModelAnswer:
    """The answer in a whole stream of server-sent events. Raises ModelError as `read_body` does, and
    `stream_incomplete` for a stream that ends before the answer does."""
    request_id = request_id_of(headers)
    if len(sse) > MAX_BODY_BYTES:
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, "the answer is larger than 8 MiB", request_id=request_id)
    if sse.lstrip().startswith(b"{"):
        return _read_completion(_parse(sse, request_id), request_id)
    return _read_completion(collect_stream(sse, request_id), request_id)


def _parse(body: bytes, request_id: str) -> JsonValue:
    if not body.strip():
        _passing(ErrorCode.EMPTY_RESPONSE, "the body is empty", request_id)
    try:
        data = orjson.loads(body)
        if _OBJECT_ARGUMENTS.search(body):
            # Arguments that come as an object were decoded with the body, so the body must lose nothing either.
            data = loads_unique(body.decode())
    except (ValueError, RecursionError):
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the body is no JSON: {body[:80]!r}", request_id)
    return data


def _read_completion(data: JsonValue, request_id: str) -> ModelAnswer:
    if not isinstance(data, dict):
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the body is no object but {type(data).__name__}", request_id)
    if data.get("error"):
        raise error_of_payload(data["error"], request_id=request_id)
    if data.get("object") == "error":
        raise error_of_payload(data, request_id=request_id)
    choice = _first_choice(data, request_id)
    message = choice.get("message")
    if not isinstance(message, dict):
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, "the choice has no message", request_id)
    answer_id = data.get("id")
    request_id = request_id or (answer_id if isinstance(answer_id, str) else "")
    finish = choice.get("finish_reason")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    model = data.get("model")
    return _read_message(
        message, finish, model if isinstance(model, str) else "", request_id, _usage(data.get("usage"))
    )


def _first_choice(data: JsonObject, request_id: str) -> JsonObject:
    choices = data.get("choices")
    if not choices:
        if "choices" not in data or "data" in data:
            _passing(ErrorCode.MALFORMED_BY_PROVIDER, "there are no choices where they belong", request_id)
        _passing(ErrorCode.EMPTY_RESPONSE, "the list of choices is empty", request_id)
    choice = choices[0] if isinstance(choices, list) else None
    if not isinstance(choice, dict):
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, "the first choice is no object", request_id)
    if choice.get("error"):
        raise error_of_payload(choice["error"], request_id=request_id)
    return choice


def _read_message(message: JsonObject, finish: str, model: str, request_id: str, usage: Usage) -> ModelAnswer:
    content, refusal = _words(message)
    if refusal:
        return ModelAnswer(refusal, (), "refusal", model, request_id, usage)
    found = read_calls(message, request_id)
    _refuse_finish(finish, bool(found.calls or found.unreadable), bool(content.strip()), request_id)
    visible = visible_text(content) if content else None
    if visible and visible.leaked and not found.calls:
        raise ModelError(
            ErrorCode.LEAKED_MARKUP, "the text holds calls or special tokens of the model", request_id=request_id
        )
    text = visible.text if visible else ""
    if not found.calls and not text.strip():
        _nothing_to_say(finish, found.unreadable, request_id)
    return ModelAnswer(text, found.calls, finish, model, request_id, usage, _opaque(message, found))


def _refuse_finish(finish: str, has_calls: bool, has_text: bool, request_id: str) -> None:
    """Raise for a finish reason under which nothing may run and, but for a text cut off, nothing is worth showing."""
    if finish in _FILTERED or (finish == "refusal" and (has_calls or not has_text)):
        raise ModelError(ErrorCode.CONTENT_FILTERED, f"the answer was filtered ({finish})", request_id=request_id)
    if finish in _FAILED:
        _passing(ErrorCode.PROVIDER_ERROR, f"the provider broke off ({finish})", request_id)
    if finish in _BROKEN:
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the model's call could not be read ({finish})", request_id)
    if finish in _CUT_OFF and (has_calls or not has_text):
        raise ModelError(ErrorCode.TRUNCATED, f"the answer was cut off ({finish})", request_id=request_id)
    if has_calls and finish not in _CALLS_MAY_RUN:
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, f"calls under an unknown finish reason ({finish[:40]})", request_id)


def _nothing_to_say(finish: str, unreadable: int, request_id: str) -> NoReturn:
    if finish in _CUT_OFF:
        raise ModelError(ErrorCode.TRUNCATED, "the answer was cut off before its first word", request_id=request_id)
    if unreadable:
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, "no entry of tool_calls names a function", request_id)
    if finish not in _CALLS_MAY_RUN:
        _passing(ErrorCode.MALFORMED_BY_PROVIDER, f"nothing but a finish reason ({finish[:40]})", request_id)
    _passing(ErrorCode.EMPTY_RESPONSE, "the answer has neither text nor calls", request_id)


def _words(message: JsonObject) -> tuple[str, str]:
    """The text and the refusal of a message; both may come as a list of parts."""
    content = message.get("content")
    refusal = message.get("refusal")
    refusals = [refusal] if isinstance(refusal, str) else []
    if isinstance(content, str):
        return content, "".join(refusals).strip()
    texts: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            texts.extend(text for text in (part.get("text"),) if isinstance(text, str))
            refusals.extend(text for text in (part.get("refusal"),) if isinstance(text, str))
    return "".join(texts), "".join(refusals).strip()


def _opaque(message: JsonObject, found: Calls) -> JsonObject | None:
    if not found.extras and _REASONING_FIELDS.isdisjoint(message):
        return None
    fields = {field: message[field] for field in REASONING_FIELDS if message.get(field)}
    if not fields and not found.extras:
        return None
    return {"openai": {"message": fields, "calls": found.extras}}


def _usage(value: JsonValue) -> Usage:
    if not isinstance(value, dict):
        return Usage()
    return Usage(_tokens(value.get("prompt_tokens")), _tokens(value.get("completion_tokens")))


def _tokens(value: JsonValue) -> int:
    """A count within reason, since budgets are charged with it."""
    if not isinstance(value, int) or value < 0:
        return 0
    return value if value < _MOST_TOKENS else _MOST_TOKENS


def _passing(code: ErrorCode, message: str, request_id: str) -> NoReturn:
    """Raise an error that another try may not meet."""
    raise ModelError(code, message, retryable=True, request_id=request_id)
