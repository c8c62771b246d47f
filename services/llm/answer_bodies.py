"""The body of a provider's answer, up to the point where protocols differ."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NoReturn

import orjson

from services.json_values import JsonObject
from services.llm.answer_rules import MAX_BODY_BYTES, passing
from services.llm.model import ModelError
from services.llm.provider_errors import error_of_status, request_id_of
from services.llm.tool_arguments import loads_unique
from services.refs import ErrorCode

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_STREAM_STARTS = (b"data:", b"event:", b":")


def accepted(status: int, headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> bytes:
    """`body`, less a byte order mark. Raises ModelError where it is too large or the provider refused; `now` dates a
    `Retry-After` that is a date."""
    if len(body) > MAX_BODY_BYTES:
        text = "the answer is larger than 8 MiB"
        raise ModelError(ErrorCode.MALFORMED_BY_PROVIDER, text, request_id=request_id_of(headers))
    if not 200 <= status < 300:
        raise error_of_status(status, headers, body, now)
    return body.removeprefix(BOM_UTF8)


def is_stream(body: bytes) -> bool:
    """Whether `body` is a stream of server-sent events, whatever its headers say."""
    return body[:1] != b"{" and body.lstrip().startswith(_STREAM_STARTS)


def parse(body: bytes, request_id: str) -> JsonObject:
    """The object in `body`. Raises ModelError."""
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
    """`data`, which was read from `body`. `arguments` finds arguments that come as an object: they were decoded with
    the body, so the body must have lost nothing either. Raises ModelError where it did."""
    if not arguments.search(body):
        return data
    try:
        loads_unique(body.decode())
    except (ValueError, RecursionError):
        _no_json(body, request_id)
    return data


def _no_json(body: bytes, request_id: str) -> NoReturn:
    passing(ErrorCode.MALFORMED_BY_PROVIDER, f"the body is no JSON: {body[:80]!r}", request_id)
