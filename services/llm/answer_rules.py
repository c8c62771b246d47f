"""What an answer may be used for, whichever protocol brought it: the finish reason can only forbid to run calls."""

from __future__ import annotations

from typing import NoReturn

from services.json_values import JsonValue
from services.llm.model import ModelError
from services.refs import ErrorCode

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
    """Raise for a finish reason under which nothing may run and, but for a text cut off, nothing is worth showing."""
    if finish in _FILTERED or (finish == "refusal" and (has_calls or not has_text)):
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
    """Raise for an answer with neither text nor calls; `unreadable` counts entries that were no calls."""
    if finish in _CUT_OFF:
        raise ModelError(ErrorCode.TRUNCATED, "the answer was cut off before its first word", request_id=request_id)
    if unreadable:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "no call of the answer names a function", request_id)
    if finish not in _CALLS_MAY_RUN:
        passing(ErrorCode.MALFORMED_BY_PROVIDER, f"nothing but a finish reason ({finish[:40]})", request_id)
    passing(ErrorCode.EMPTY_RESPONSE, "the answer has neither text nor calls", request_id)


def tokens(value: JsonValue) -> int:
    """A count within reason, since budgets are charged with it."""
    if not isinstance(value, int) or value < 0:
        return 0
    return value if value < _MOST_TOKENS else _MOST_TOKENS


def passing(code: ErrorCode, message: str, request_id: str) -> NoReturn:
    """Raise an error that another try may not meet."""
    raise ModelError(code, message, retryable=True, request_id=request_id)
