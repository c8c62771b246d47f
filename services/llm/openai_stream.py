"""A stream of chat-completion chunks, put together into the body that the same answer would have had in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.model import ModelError
from services.llm.provider_errors import error_of_payload
from services.llm.server_events import read_events, refuse_incomplete
from services.llm.tool_arguments import MAX_ARGUMENT_CHARACTERS
from services.refs import ErrorCode

_JOINED = ("content", "refusal", "reasoning_content", "reasoning", "thinking", "reasoning_signature")
_KEPT = ("extra_content", "thought_signature", "thinking_blocks")
_CALL_FIELDS = ("extra_content", "thought_signature", "provider_specific_fields")
_DETAIL_TEXTS = ("text", "summary", "data")


def collect_stream(sse: bytes, request_id: str = "") -> JsonObject:
    """The completion whose chunks are in `sse`.

    Raises ModelError: `provider_error` for an error within the stream, `malformed_by_provider` for events that are no
    JSON, `empty_response` for no bytes at all, `stream_incomplete` for an end without a finish reason or `[DONE]`.
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
    """The answer so far."""

    head: JsonObject = field(default_factory=dict)
    finish: str = ""
    ended: bool = False
    texts: dict[str, list[str]] = field(default_factory=dict)
    fields: JsonObject = field(default_factory=dict)
    details: list[JsonObject] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    legacy: list[_Call] = field(default_factory=list)

    def take(self, chunk: JsonObject) -> None:
        """Add one chunk. Choices beyond the first are other answers, which nobody asked for."""
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
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                self._take_delta(delta)

    def _take_delta(self, delta: JsonObject) -> None:
        for name in _JOINED:
            for text in _texts_of(delta.get(name)):
                self.texts.setdefault(name, []).append(text)
        for name in _KEPT:
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
        """Add a piece of structured reasoning to the piece it continues, as the provider numbers them."""
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
        """What the server would have sent without streaming."""
        message: JsonObject = {name: "".join(parts) for name, parts in self.texts.items()}
        message.update(self.fields)
        if self.details:
            message["reasoning_details"] = self.details
        message["tool_calls"] = [call.as_json() for call in self.calls or self.legacy]
        return {**self.head, "choices": [{"index": 0, "message": message, "finish_reason": self.finish}]}


@dataclass(slots=True)
class _Call:
    """One tool call so far."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extras: JsonObject = field(default_factory=dict)

    def is_whole(self) -> bool:
        """Whether the arguments are a complete object, so that another `{` begins another call."""
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

    def as_json(self) -> JsonObject:
        return {"id": self.id, "function": {"name": self.name, "arguments": "".join(self.arguments)}, **self.extras}


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
    # Servers repeat the id and the name with every piece: they are set, never added to.
    call.id = call.id or call_id
    call.name = name or call.name
    if text:
        call.arguments.append(text)
    call.extras.update({key: entry[key] for key in _CALL_FIELDS if entry.get(key)})


def _continued(calls: list[_Call], index: int | None, call_id: str, name: str, text: str) -> _Call | None:
    """The call that a piece goes on with; None when it begins another one."""
    if call_id:
        for call in reversed(calls):
            if call.id == call_id and (index is None or call.index in {index, None}):
                return call
    last = next((call for call in reversed(calls) if index is None or call.index in {index, None}), None)
    if last is None or not name:
        # Without a name it can be no call of its own, even under a new id: some servers make one for each piece.
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
