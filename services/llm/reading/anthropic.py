"""Parser of Anthropic Messages responses and streams: bytes to ModelAnswer or ModelError."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from services.llm.errors import error_of_payload, request_id_of
from services.llm.model import ModelAnswer, ModelError, Usage
from services.llm.reading.answers import (
    NO_HEADERS,
    accepted,
    exact,
    is_stream,
    nothing_to_say,
    parse,
    passing,
    read_events,
    refuse_finish,
    refuse_incomplete,
    tokens,
)
from services.llm.reading.markup import visible_text
from services.llm.reading.tool_calls import Calls, calls_under, read_calls
from services.refs import ErrorCode, JsonObject, JsonValue

_JOINED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Target field of each delta type."""


def collect_message(sse: bytes, request_id: str = "") -> JsonObject:
    """Assemble the message from the events in `sse`. Arguments remain undecoded text.

    Raises ModelError: `provider_error` for an error event, `malformed_by_provider` for events that are not JSON,
    `empty_response` for an empty body, `stream_incomplete` without a stop reason.
    """
    answer = _Collected()
    events = list(read_events(sse))
    for number, (kind, text) in enumerate(events, 1):
        try:
            event = orjson.loads(text)
        except orjson.JSONDecodeError:
            if number == len(events) and not answer.ended:
                break
            passing(ErrorCode.MALFORMED_BY_PROVIDER, "an event is no JSON", request_id)
        if not isinstance(event, dict):
            continue
        if kind == "error" or event.get("type") == "error":
            raise error_of_payload(event.get("error") or event, request_id=request_id)
        answer.take(event)
    if not answer.ended:
        refuse_incomplete(sse, has_events=bool(events), request_id=request_id)
    return answer.as_message()


@dataclass(slots=True)
class _Block:
    """Content block of a streamed message under construction."""

    fields: JsonObject
    texts: dict[str, list[str]] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)

    def take(self, delta: JsonObject) -> None:
        place = _JOINED.get(str(delta.get("type")))
        if place is not None:
            piece = delta.get(place)
            self.texts.setdefault(place, []).append(piece if isinstance(piece, str) else "")
        elif isinstance(delta.get("partial_json"), str):
            self.arguments.append(delta["partial_json"])

    def as_json(self) -> JsonObject:
        block = dict(self.fields)
        for place, pieces in self.texts.items():
            first = block.get(place)
            block[place] = (first if isinstance(first, str) else "") + "".join(pieces)
        arguments = "".join(self.arguments)
        if arguments:
            block["input"] = arguments
        return block


@dataclass(slots=True)
class _Collected:
    """Message under construction from the events of a stream."""

    head: JsonObject = field(default_factory=dict)
    blocks: dict[int, _Block] = field(default_factory=dict)
    ended: bool = False

    def take(self, event: JsonObject) -> None:
        """Apply one event; unknown types are ignored, as the API requires."""
        kind = event.get("type")
        message, block, delta = event.get("message"), event.get("content_block"), event.get("delta")
        if kind == "message_start" and isinstance(message, dict):
            self.head.update(message)
        elif kind == "content_block_start" and isinstance(block, dict):
            self.blocks[_index(event)] = _Block(block)
        elif kind == "content_block_delta" and isinstance(delta, dict):
            self.blocks.setdefault(_index(event), _Block({})).take(delta)
        elif kind == "message_delta" and isinstance(delta, dict):
            self._take_end(delta, event.get("usage"))
        elif kind == "message_stop":
            self.ended = True

    def _take_end(self, delta: JsonObject, usage: JsonValue) -> None:
        if delta.get("stop_reason"):
            self.head["stop_reason"] = delta["stop_reason"]
            self.ended = True
        if isinstance(usage, dict):
            # The last count is final; fields it omits are from the start.
            before = self.head.get("usage")
            self.head["usage"] = {**(before if isinstance(before, dict) else {}), **usage}

    def as_message(self) -> JsonObject:
        """The message in the form that the API returns without streaming."""
        return {**self.head, "content": [block.as_json() for _, block in sorted(self.blocks.items())]}


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


_INPUT = re.compile(rb'"input"\s*:\s*\{\s*"')
_OURS = frozenset({"text", "tool_use"})
"""Block types that can be rebuilt from parsed answers; all others are returned verbatim."""


def read_body(status: int, headers: Mapping[str, str], body: bytes, now: datetime | None = None) -> ModelAnswer:
    """Parse an HTTP response. Names in `headers` are lower case. `now` resolves a date in `Retry-After`.

    Raises ModelError: `provider_error` for a rejected request, `content_filtered` for a refusal by the model,
    `empty_response`, `malformed_by_provider`, `truncated`, `leaked_markup`, and the errors of `read_stream`.
    """
    body = accepted(status, headers, body, now)
    if is_stream(body):
        return read_stream(body, headers)
    return _read_whole(body, request_id_of(headers))


def read_stream(sse: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelAnswer:
    """Parse a complete stream of server-sent events. Raises ModelError as `read_body` does, and `stream_incomplete` for
    a stream that ends too early."""
    request_id = request_id_of(headers)
    sse = accepted(200, headers, sse)
    if sse.lstrip().startswith(b"{"):
        return _read_whole(sse, request_id)
    return _read_message(collect_message(sse, request_id), request_id)


def _read_whole(body: bytes, request_id: str) -> ModelAnswer:
    return _read_message(exact(body, parse(body, request_id), _INPUT, request_id), request_id)


def _read_message(data: JsonObject, request_id: str) -> ModelAnswer:
    if data.get("error") or data.get("type") == "error":
        raise error_of_payload(data.get("error") or data, request_id=request_id)
    content, model, finish = data.get("content"), data.get("model"), data.get("stop_reason")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "there is no content where it belongs", request_id)
    blocks: list[JsonObject] = [block for block in content if isinstance(block, dict)]
    answer_id = data.get("id")
    request_id = request_id or (answer_id if isinstance(answer_id, str) else "")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    if finish == "refusal":
        raise ModelError(ErrorCode.CONTENT_FILTERED, "the model refused", request_id=request_id)
    found = read_calls({"tool_calls": [_entry(block) for block in blocks if block.get("type") == "tool_use"]}, "")
    message_text = "".join(_texts(blocks))
    visible = visible_text(message_text)
    has_calls = bool(found.calls or found.unreadable)
    refuse_finish(finish, has_calls, bool(visible.text.strip()), request_id)
    if visible.leaked and not found.calls:
        text = "the text holds calls or special tokens of the model"
        raise ModelError(ErrorCode.LEAKED_MARKUP, text, request_id=request_id)
    if not found.calls and not visible.text.strip():
        nothing_to_say(finish, found.unreadable, request_id)
    return ModelAnswer(
        visible.text,
        calls_under(finish, found.calls),
        finish,
        model if isinstance(model, str) else "",
        request_id,
        _usage(data.get("usage")),
        _opaque(blocks, found),
    )


def _entry(block: JsonObject) -> JsonObject:
    return {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}


def _texts(blocks: Sequence[JsonObject]) -> list[str]:
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]


def _opaque(blocks: Sequence[JsonObject], found: Calls) -> JsonObject | None:
    """All blocks verbatim and in order if some belong to the provider: thinking blocks are signed and position
    dependent. None otherwise, and if the parsed calls differ from the blocks, because results would not match."""
    if all(block.get("type") in _OURS for block in blocks):
        return None
    uses = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
    if uses != [call.id for call in found.calls]:
        return None
    return {"anthropic": {"content": [_sendable(block) for block in blocks if not _is_empty_text(block)]}}


def _sendable(block: JsonObject) -> JsonObject:
    """`block` with its input as an object; streams deliver text. An unreadable input becomes `{}`."""
    if block.get("type") != "tool_use" or not isinstance(block.get("input"), str):
        return block
    try:
        value = orjson.loads(block["input"])
    except orjson.JSONDecodeError:
        value = {}
    return {**block, "input": value if isinstance(value, dict) else {}}


def _is_empty_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and not block.get("text")


def _usage(value: JsonValue) -> Usage:
    """Token counts; the prompt's include tokens read from and written to the provider's cache. Zeros if `value` is no
    object."""
    if not isinstance(value, dict):
        return Usage()
    cached = tokens(value.get("cache_read_input_tokens"))
    fresh = tokens(value.get("input_tokens")) + tokens(value.get("cache_creation_input_tokens"))
    return Usage(tokens(fresh + cached), tokens(value.get("output_tokens")), cached)
