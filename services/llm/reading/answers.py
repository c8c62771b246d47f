"""Parsing shared by provider protocols: body, finish reason and server-sent events."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NoReturn

import orjson

from services.llm.errors import error_of_status, request_id_of
from services.llm.model import ModelError
from services.llm.reading.tool_arguments import loads_unique
from services.refs import ErrorCode, JsonObject, JsonValue

MAX_BODY_BYTES = 8 * 1024 * 1024

_MOST_TOKENS = 100_000_000
_CALLS_MAY_RUN = frozenset(
    {"", "stop", "tool_calls", "tool_call", "tool_use", "function_call", "end_turn", "eos", "stop_sequence"}
)
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive", "image_safety"}
)
_BROKEN = frozenset(
    {"malformed_function_call", "unexpected_tool_call", "malformed_response", "missing_thought_signature"}
)
_FAILED = frozenset({"error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled"})


def refuse_finish(finish: str, has_calls: bool, has_text: bool, request_id: str) -> None:
    """Raises ModelError for a finish reason of an unusable answer; a truncated text without calls is usable: filtered,
    broken off, malformed, cut off within calls, or calls under an unknown reason."""
    if (
        finish in _FILTERED
        or finish.startswith("content_filter")
        or (finish == "refusal" and (has_calls or not has_text))
    ):
        raise ModelError(ErrorCode.CONTENT_FILTERED, f"the answer was filtered ({finish})", request_id=request_id)
    if finish in _FAILED:
        passing(ErrorCode.PROVIDER_ERROR, f"the provider broke off ({finish})", request_id)
    if finish in _BROKEN:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the model's call could not be read ({finish})", request_id)
    if finish in _CUT_OFF and (has_calls or not has_text):
        raise ModelError(ErrorCode.TRUNCATED, f"the answer was cut off ({finish})", request_id=request_id)
    if has_calls and finish not in _CALLS_MAY_RUN:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, f"calls under an unknown finish reason ({finish[:40]})", request_id)


def nothing_to_say(finish: str, unreadable: int, request_id: str) -> NoReturn:
    """Raises ModelError for an answer without text and calls (`truncated`, `malformed_by_provider` or
    `empty_response`); `unreadable` counts the entries that are not calls."""
    if finish in _CUT_OFF:
        raise ModelError(ErrorCode.TRUNCATED, "the answer was cut off before its first word", request_id=request_id)
    if unreadable:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "no call of the answer names a function", request_id)
    if finish not in _CALLS_MAY_RUN:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, f"nothing but a finish reason ({finish[:40]})", request_id)
    passing(ErrorCode.EMPTY_RESPONSE, "the answer has neither text nor calls", request_id)


def tokens(value: JsonValue) -> int:
    """Token count within plausible bounds (0 to 100 million), since budgets are charged with it; 0 for anything but a
    positive integer."""
    if not isinstance(value, int) or value < 0:
        return 0
    return value if value < _MOST_TOKENS else _MOST_TOKENS


def passing(code: ErrorCode, message: str, request_id: str) -> NoReturn:
    """Raise a retryable ModelError with `code` and `message`."""
    raise ModelError(code, message, retryable=True, request_id=request_id)


NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_STREAM_STARTS = (b"data:", b"event:", b":")


def accepted(status: int, headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> bytes:
    """`body` without a byte order mark. Raises ModelError for a body above 8 MiB and for a status other than 2xx; `now`
    resolves a date in `Retry-After`."""
    if len(body) > MAX_BODY_BYTES:
        text = "the answer is larger than 8 MiB"
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, text, request_id=request_id_of(headers))
    if not 200 <= status < 300:
        raise error_of_status(status, headers, body, now)
    return body.removeprefix(BOM_UTF8)


def is_stream(body: bytes) -> bool:
    """Whether `body` is a stream of server-sent events, regardless of its headers."""
    return body[:1] != b"{" and body.lstrip().startswith(_STREAM_STARTS)


def parse(body: bytes, request_id: str) -> JsonObject:
    """Parse `body` as a JSON object. Raises ModelError: `empty_response`, or `malformed_by_provider` for anything but
    an object."""
    if not body or body.isspace():
        passing(ErrorCode.EMPTY_RESPONSE, "the body is empty", request_id)
    try:
        data = orjson.loads(body)
    except (ValueError, RecursionError):
        _no_json(body, request_id)
    if not isinstance(data, dict):
        passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the body is no object but {type(data).__name__}", request_id)
    return data


def exact(body: bytes, data: JsonObject, arguments: re.Pattern[bytes], request_id: str) -> JsonObject:
    """Return `data`, decoded from `body`, if it lost nothing. Checked only if `arguments` matches, that is, if call
    arguments are objects decoded with the body. Raises ModelError (`malformed_by_provider`) otherwise."""
    if not arguments.search(body):
        return data
    try:
        loads_unique(body.decode())
    except (ValueError, RecursionError):
        _no_json(body, request_id)
    return data


def _no_json(body: bytes, request_id: str) -> NoReturn:
    passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the body is no JSON: {body[:80]!r}", request_id)


def read_events(sse: bytes) -> Iterator[tuple[str, str]]:
    """Type and data of each event. Some servers omit the blank line between events, so a line of data that is complete
    JSON is an event."""
    text = sse.decode("utf-8", "replace").removeprefix("\ufeff")
    kind, lines = "", list[str]()
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            kind = line[6:].strip()
        elif not line:
            yield from _dispatch(kind, lines)
            kind, lines = "", []
    yield from _dispatch(kind, lines)


def _dispatch(kind: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    if len(lines) < 2:
        yield from ((kind, line) for line in lines if line.strip())
        return
    whole = "\n".join(lines)
    try:
        orjson.loads(whole)
    except orjson.JSONDecodeError:
        yield from ((kind, line) for line in lines if line.strip())
    else:
        yield kind, whole


def refuse_incomplete(sse: bytes, *, has_events: bool, request_id: str) -> NoReturn:
    """Raises ModelError for a stream that ended too early: `empty_response` for an empty body, `malformed_by_provider`
    if it is not an event stream, else `stream_incomplete`."""
    if not sse.strip():
        code, message = ErrorCode.EMPTY_RESPONSE, "the stream is empty"
    elif not has_events and not sse.lstrip().startswith(b":"):
        code, message = ErrorCode.MALFORMED_BY_PROVIDER, f"this is no stream of events: {sse[:80]!r}"
    else:
        code, message = ErrorCode.STREAM_INCOMPLETE, "the stream ended before the answer did"
    raise ModelError(code, message, retryable=True, request_id=request_id)
