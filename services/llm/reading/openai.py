"""Parser of OpenAI chat completions responses: bytes to ModelAnswer or ModelError."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

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
from services.llm.reading.markup import ReadText, visible_text
from services.llm.reading.tool_arguments import MAX_ARGUMENT_CHARACTERS, read_arguments, same_readings
from services.llm.reading.tool_calls import Calls, calls_under, read_calls
from services.refs import ErrorCode, JsonObject, JsonValue
from services.text_index import listed


def _usage(value: JsonValue) -> Usage:
    """Token counts from a completion's `usage`; zeros if it is missing or invalid."""
    if not isinstance(value, dict):
        return Usage()
    details = value.get("prompt_tokens_details")
    cached = tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return Usage(tokens(value.get("prompt_tokens")), tokens(value.get("completion_tokens")), cached)


_JOINED = ("content", "refusal", "reasoning_content", "reasoning", "thinking", "reasoning_signature")
_OPAQUE_FIELDS = ("extra_content", "thought_signature", "thinking_blocks")
_OPENAI_STREAM_CALL_FIELDS = ("extra_content", "thought_signature", "provider_specific_fields")
_DETAIL_TEXTS = ("text", "summary", "data")


def collect_stream(sse: bytes, request_id: str = "") -> JsonObject:
    """Assemble the completion from the chunks in `sse`.

    Raises ModelError: `provider_error` for an error event, `malformed_by_provider` for events that are not JSON,
    `empty_response` for an empty body, `stream_incomplete` without a finish reason or `[DONE]`.
    """
    answer = _Collected()
    events = list(read_events(sse))
    for number, (kind, text) in enumerate(events, 1):
        if text.strip() == "[DONE]":
            answer.ended = True
            break
        try:
            chunk = orjson.loads(text)
        except orjson.JSONDecodeError:
            if number == len(events) and not answer.finish:
                break
            raise ModelError(
                ErrorCode.MALFORMED_BY_PROVIDER, "an event is no JSON", retryable=True, request_id=request_id
            ) from None
        if kind == "error" or (isinstance(chunk, dict) and chunk.get("error")):
            raise error_of_payload(_error_in(chunk), request_id=request_id)
        if isinstance(chunk, dict):
            answer.take(chunk)
    if not answer.ended and not answer.finish:
        refuse_incomplete(sse, has_events=bool(events), request_id=request_id)
    return answer.as_completion()


def _error_in(chunk: JsonValue) -> JsonValue:
    return chunk.get("error") or chunk if isinstance(chunk, dict) else chunk


@dataclass(slots=True)
class _Collected:
    """Completion under construction from the chunks of a stream."""

    head: JsonObject = field(default_factory=dict)
    finish: str = ""
    ended: bool = False
    texts: dict[str, list[str]] = field(default_factory=dict)
    fields: JsonObject = field(default_factory=dict)
    details: list[JsonObject] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    legacy: list[_Call] = field(default_factory=list)

    def take(self, chunk: JsonObject) -> None:
        """Apply one chunk. Further choices are ignored, since only one is requested."""
        for name in ("id", "model", "usage"):
            if chunk.get(name):
                self.head[name] = chunk[name]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index") not in {0, None}:
                continue
            finish = choice.get("finish_reason")
            if isinstance(finish, str) and finish:
                self.finish = finish
            delta, whole = choice.get("delta"), choice.get("message")
            if isinstance(whole, dict) and not delta:
                # The complete message after its pieces, as some servers end a stream.
                self.texts = {name: parts for name, parts in self.texts.items() if not whole.get(name)}
                delta = whole
            if isinstance(delta, dict):
                self._take_delta(delta)

    def _take_delta(self, delta: JsonObject) -> None:
        for name in _JOINED:
            for text in _texts_of(delta.get(name)):
                self.texts.setdefault(name, []).append(text)
        for name in _OPAQUE_FIELDS:
            if delta.get(name):
                self.fields[name] = delta[name]
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            self._take_detail(detail)
        calls = delta.get("tool_calls")
        for entry in calls if isinstance(calls, list) else (calls,):
            _take_call(self.calls, entry)
        if delta.get("function_call"):
            _take_call(self.legacy, {"function": delta["function_call"]})

    def _take_detail(self, detail: JsonValue) -> None:
        """Append structured reasoning, or merge it into the last entry with the same index and type."""
        if not isinstance(detail, dict):
            return
        last = self.details[-1] if self.details else {}
        if "index" not in detail or (last.get("index"), last.get("type")) != (detail["index"], detail.get("type")):
            self.details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in _DETAIL_TEXTS and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value

    def as_completion(self) -> JsonObject:
        """The completion in the form that the API returns without streaming."""
        message: JsonObject = {name: "".join(parts) for name, parts in self.texts.items()}
        message.update(self.fields)
        if self.details:
            message["reasoning_details"] = self.details
        calls = self.calls or self.legacy
        message["tool_calls"] = [one.as_json() for at, one in enumerate(calls) if not one.repeats(calls[:at])]
        return {**self.head, "choices": [{"index": 0, "message": message, "finish_reason": self.finish}]}


@dataclass(slots=True)
class _Call:
    """Tool call under construction from its pieces."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extras: JsonObject = field(default_factory=dict)

    def is_whole(self) -> bool:
        """Whether the arguments are a complete object, so that another `{` starts a new call. Joins the pieces if
        so."""
        last = next((part for part in reversed(self.arguments) if part.strip()), "")
        if not last.rstrip().endswith("}"):
            return False
        text = "".join(self.arguments)
        if len(text) > MAX_ARGUMENT_CHARACTERS:
            return False
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError:
            return False
        self.arguments = [text]
        return True

    def repeats(self, earlier: Sequence[_Call]) -> bool:
        """Whether an earlier call is the same and nothing tells them apart: no index and no id, or the same index."""
        return any(
            one.name == self.name
            and (self.index == one.index if self.index is not None else not self.id)
            and same_readings(one.text(), self.text())
            for one in earlier
        )

    def text(self) -> str:
        """The arguments: the pieces joined; the last piece if that is no JSON and each piece repeats the one before."""
        text = "".join(self.arguments)
        pieces = [piece for piece in self.arguments if piece.strip()]
        if len(pieces) < 2 or not all(later.startswith(piece) for piece, later in pairwise(pieces)):
            return text
        return text if read_arguments(text)[0].fault is None else pieces[-1]

    def as_json(self) -> JsonObject:
        return {"id": self.id, "function": {"name": self.name, "arguments": self.text()}, **self.extras}


def _take_call(calls: list[_Call], entry: JsonValue) -> None:
    if entry is None:
        return
    if not isinstance(entry, dict):
        calls.append(_Call(None))
        return
    function = entry.get("function")
    function = function if isinstance(function, dict) else {}
    index, call_id, name = entry.get("index"), entry.get("id"), function.get("name")
    index = index if isinstance(index, int) else None
    call_id = call_id if isinstance(call_id, str) else ""
    name = name if isinstance(name, str) else ""
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        arguments = orjson.dumps(arguments).decode()
    text = arguments if isinstance(arguments, str) else ""
    call = _continued(calls, index, call_id, name, text)
    if call is None:
        call = _Call(index)
        calls.append(call)
    # Servers may repeat the id and name in every piece: set them, never append.
    call.id = call.id or call_id
    call.name = name or call.name
    if text:
        call.arguments.append(text)
    call.extras.update({key: entry[key] for key in _OPENAI_STREAM_CALL_FIELDS if entry.get(key)})


def _continued(calls: list[_Call], index: int | None, call_id: str, name: str, text: str) -> _Call | None:
    """The call that a piece continues; None if it starts a new one."""
    if call_id:
        for call in reversed(calls):
            if call.id == call_id and (index is None or call.index in {index, None}):
                return call
    last = next((call for call in reversed(calls) if index is None or call.index in {index, None}), None)
    if last is None or not name:
        # A piece without a name always continues a call: some servers generate a new id for each piece.
        return last
    if call_id and last.id:
        return None
    begins_another = text.lstrip().startswith("{") or (last.name and name != last.name)
    return None if begins_another and last.is_whole() else last


def _texts_of(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


_REASONING_FIELDS = listed("""
reasoning_content reasoning reasoning_details reasoning_signature thinking thinking_blocks thought_signature
extra_content
""")
"""Fields to return to the provider; never shown."""

_OBJECT_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*\{')


def read_body(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime | None = None,
    read_text: ReadText = visible_text,
) -> ModelAnswer:
    """Parse an HTTP response. Names in `headers` are lower case. `now` resolves a date in `Retry-After`. `read_text`
    extracts the visible text and calls from the content.

    Raises ModelError: `provider_error` or `content_filtered` for a refusal, `empty_response`, `malformed_by_provider`
    for an invalid response, `truncated`, `leaked_markup`, and the errors of `read_stream`.
    """
    body = accepted(status, headers, body, now)
    if is_stream(body):
        return read_stream(body, headers, read_text)
    return _read_whole(body, request_id_of(headers), read_text)


def read_stream(sse: bytes, headers: Mapping[str, str] = NO_HEADERS, read_text: ReadText = visible_text) -> ModelAnswer:
    """Parse a complete stream of server-sent events. Raises ModelError as `read_body` does, and `stream_incomplete` for
    a stream that ends too early."""
    request_id = request_id_of(headers)
    sse = accepted(200, headers, sse)
    if sse.lstrip().startswith(b"{"):
        return _read_whole(sse, request_id, read_text)
    return _read_completion(collect_stream(sse, request_id), request_id, read_text)


def _read_whole(body: bytes, request_id: str, read_text: ReadText) -> ModelAnswer:
    data = exact(body, parse(body, request_id), _OBJECT_ARGUMENTS, request_id)
    return _read_completion(data, request_id, read_text)


def _read_completion(data: JsonObject, request_id: str, read_text: ReadText) -> ModelAnswer:
    if data.get("error"):
        raise error_of_payload(data["error"], request_id=request_id)
    if data.get("object") == "error":
        raise error_of_payload(data, request_id=request_id)
    choice = _first_choice(data, request_id)
    message = choice.get("message")
    finish = choice.get("finish_reason")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    if not isinstance(message, dict):
        refuse_finish(finish, has_calls=False, has_text=False, request_id=request_id)
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "the choice has no message", request_id)
    answer_id = data.get("id")
    request_id = request_id or (answer_id if isinstance(answer_id, str) else "")
    model = data.get("model")
    model = model if isinstance(model, str) else ""
    return _read_message(message, finish, model, request_id, _usage(data.get("usage")), read_text)


def _first_choice(data: JsonObject, request_id: str) -> JsonObject:
    choices = data.get("choices")
    if not choices:
        if _is_prompt_filtered(data):
            refuse_finish("content_filter", has_calls=False, has_text=False, request_id=request_id)
        if "choices" not in data or "data" in data:
            passing(ErrorCode.MALFORMED_BY_PROVIDER, "there are no choices where they belong", request_id)
        passing(ErrorCode.EMPTY_RESPONSE, "the list of choices is empty", request_id)
    choice = choices[0] if isinstance(choices, list) else None
    if not isinstance(choice, dict):
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "the first choice is no object", request_id)
    if choice.get("error"):
        raise error_of_payload(choice["error"], request_id=request_id)
    return choice


def _is_prompt_filtered(data: JsonObject) -> bool:
    """Whether a body without choices reports that the prompt was filtered, as Azure or Gemini write it."""
    feedback = data.get("prompt_feedback") or data.get("promptFeedback")
    if isinstance(feedback, dict) and (feedback.get("block_reason") or feedback.get("blockReason")):
        return True
    results = data.get("prompt_filter_results")
    found = [one.get("content_filter_results") for one in results or () if isinstance(one, dict)]
    kinds = [kind for one in found if isinstance(one, dict) for kind in one.values()]
    return any(isinstance(kind, dict) and kind.get("filtered") is True for kind in kinds)


def _read_message(
    message: JsonObject, finish: str, model: str, request_id: str, used: Usage, read_text: ReadText
) -> ModelAnswer:
    content, refusal = _words(message)
    if refusal:
        return ModelAnswer(refusal, (), "refusal", model, request_id, used)
    found = read_calls(message, request_id)
    calls, text, leaked = found.calls, "", False
    if content:
        visible = read_text(content, request_id)
        # Leaked calls in the text do not matter if the server returned calls as fields.
        text, leaked, calls = visible.text, visible.leaked and not calls, calls or visible.calls
    refuse_finish(finish, bool(calls or found.unreadable), bool(text.strip()), request_id)
    if leaked:
        raise ModelError(
            ErrorCode.LEAKED_MARKUP, "the text holds calls or special tokens of the model", request_id=request_id
        )
    if not calls and not text.strip():
        nothing_to_say(finish, found.unreadable, request_id)
    return ModelAnswer(text, calls_under(finish, calls), finish, model, request_id, used, _opaque(message, found))


def _words(message: JsonObject) -> tuple[str, str]:
    """Text and refusal of a message, each from a string or a list of parts; empty if missing."""
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
    fields = {field: message[field] for field in _REASONING_FIELDS if message.get(field)}
    if not fields and not found.extras:
        return None
    return {"openai": {"message": fields, "calls": found.extras}}
