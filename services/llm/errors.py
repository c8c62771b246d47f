"""Errors of model providers: HTTP statuses, and errors in response bodies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

import orjson

from services.llm.model import ModelError
from services.refs import ErrorCode, JsonValue, ModelProblem
from services.retry import retry_after_seconds
from services.text_index import listed

_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
_PASSING_STATUSES = frozenset({408, 409, 425, 429})
_SPENT = ("insufficient_quota", "quota_exceeded", "billing", "insufficient_balance", "insufficient_user_quota")
_FILTERED = ("content_filter", "content_policy", "responsibleaipolicy", "data_inspection_failed")
_LASTING = listed("invalid auth permission forbidden not_found not_supported unsupported tool_use_failed too_large")
_PROBLEMS: tuple[tuple[ModelProblem, tuple[str, ...]], ...] = (
    (ModelProblem.QUOTA, _SPENT),
    (ModelProblem.TOO_LONG, ("context_length", "context_window", "request_too_large", "string_above_max_length")),
    (ModelProblem.KEY, ("api_key", "auth", "permission", "forbidden")),
)
"""Error codes that override the status: some gateways send 400 for a wrong key."""
_PROBLEMS_WITHOUT_STATUS: tuple[tuple[ModelProblem, tuple[str, ...]], ...] = (
    (ModelProblem.BUSY, ("rate_limit", "too_many_requests")),
    (ModelProblem.MISSING, ("not_found",)),
    (ModelProblem.REQUEST, _LASTING),
)
_LONGEST_MESSAGE = 500


def error_of_status(status: int, headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> ModelError:
    """ModelError for a response with an HTTP status other than 2xx.

    408, 409, 425, 429 and 5xx are retryable; an exceeded quota and other statuses are not. A date in `Retry-After` is
    relative to the response's `Date`, else to `now`.
    """
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError:
        payload = body[:_LONGEST_MESSAGE].decode("utf-8", "replace")
    if isinstance(payload, dict) and payload.get("error"):
        payload = payload["error"]
    wait = retry_after_seconds(headers.get("retry-after"), _date_of(headers) or now)
    return error_of_payload(payload, status, wait, request_id_of(headers))


def error_of_payload(
    payload: JsonValue, status: int | None = None, wait_seconds: float | None = None, request_id: str = ""
) -> ModelError:
    """ModelError for `payload`, the `error` value of a body. Without an HTTP status the payload's `code` is used as
    one; without either, the error is retryable unless its kind is permanent. A content filter gives the code
    `content_filtered`, not retryable."""
    kinds = _kinds(payload)
    if status is None:
        status = _status_in(payload)
    message = f"the provider refused ({status or 'in the body'}): {_message(payload)}"
    filtered = any(sign in kinds for sign in _FILTERED)
    return ModelError(
        ErrorCode.CONTENT_FILTERED if filtered else ErrorCode.PROVIDER_ERROR,
        message,
        retryable=not filtered and _may_pass(kinds, status),
        retry_after_seconds=wait_seconds,
        status=status,
        request_id=request_id,
        problem=None if filtered else _problem(kinds, status),
    )


def request_id_of(headers: Mapping[str, str]) -> str:
    """The provider's request ID from lower-case `headers`, or an empty string."""
    for name in _REQUEST_IDS:
        value = headers.get(name)
        if value:
            return value
    return ""


def _may_pass(kinds: str, status: int | None) -> bool:
    if any(sign in kinds for sign in _SPENT):
        return False
    if status is not None:
        return status in _PASSING_STATUSES or status >= 500
    return not any(sign in kinds for sign in _LASTING)


def _problem(kinds: str, status: int | None) -> ModelProblem | None:
    """Problem named by the error codes; None if the status decides."""
    known = _PROBLEMS if status is not None else (*_PROBLEMS, *_PROBLEMS_WITHOUT_STATUS)
    return next((problem for problem, signs in known if any(sign in kinds for sign in signs)), None)


def _kinds(payload: JsonValue) -> str:
    """The provider's error codes and types, in lower case, joined by spaces; empty if `payload` is no object."""
    if not isinstance(payload, dict):
        return ""
    inner = payload.get("innererror")
    words = [payload.get("code"), payload.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    return " ".join(word.lower() for word in words if isinstance(word, str))


def _status_in(payload: JsonValue) -> int | None:
    code = payload.get("code") if isinstance(payload, dict) else None
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and 400 <= code <= 599 else None


def _message(payload: JsonValue) -> str:
    text = payload.get("message") if isinstance(payload, dict) else payload
    if not isinstance(text, str):
        text = orjson.dumps(payload).decode()
    return " ".join(text[:_LONGEST_MESSAGE].split())


def _date_of(headers: Mapping[str, str]) -> datetime | None:
    try:
        moment = parsedate_to_datetime(headers.get("date") or "")
    except (ValueError, TypeError):
        return None
    return moment if moment.tzinfo else None
