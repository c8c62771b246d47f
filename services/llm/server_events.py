"""Server-sent events as model servers write them: strictly or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import orjson

from services.llm.model import ModelError
from services.refs import ErrorCode


def read_events(sse: bytes) -> Iterator[tuple[str, str]]:
    """Each event's kind and data. Some servers leave out the empty line between events, so that a line of data which
    is whole by itself is an event."""
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
    """Raise for a stream that ended before the answer did: `empty_response` for no bytes at all,
    `malformed_by_provider` for what is no stream, else `stream_incomplete`."""
    if not sse.strip():
        code, message = ErrorCode.EMPTY_RESPONSE, "the stream is empty"
    elif not has_events and not sse.lstrip().startswith(b":"):
        code, message = ErrorCode.MALFORMED_BY_PROVIDER, f"this is no stream of events: {sse[:80]!r}"
    else:
        code, message = ErrorCode.STREAM_INCOMPLETE, "the stream ended before the answer did"
    raise ModelError(code, message, retryable=True, request_id=request_id)
