"""The reader of the OpenAI chat-completions wire: bytes in, a ModelAnswer or a ModelError out. No network.

What is a call is decided by the calls that are there; the finish reason can only forbid to run them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from services.json_values import JsonObject
from services.llm.answer_bodies import NO_HEADERS, accepted, exact, is_stream, parse
from services.llm.answer_rules import nothing_to_say, passing, refuse_finish
from services.llm.markup import ReadText, visible_text
from services.llm.model import ModelAnswer, ModelError, Usage
from services.llm.openai_stream import collect_stream
from services.llm.provider_errors import error_of_payload, request_id_of
from services.llm.tool_calls import Calls, read_calls
from services.llm.usual_answers import usage, usual_answer
from services.refs import ErrorCode

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

_OBJECT_ARGUMENTS = re.compile(rb'"arguments"\s*:\s*\{')


def read_body(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime | None = None,
    read_text: ReadText = visible_text,
) -> ModelAnswer:
    """The answer in an HTTP response. Names in `headers` are lower case. `now` dates a `Retry-After` that is a date.
    `read_text` says what of the text people may see, and which calls it holds.

    Raises ModelError: `provider_error` or `content_filtered` for a refusal, `empty_response`, `malformed_by_provider`
    for what is no answer, `truncated`, `leaked_markup`, and for a stream what `read_stream` raises.
    """
    body = accepted(status, headers, body, now)
    if is_stream(body):
        return read_stream(body, headers, read_text)
    return _read_whole(body, request_id_of(headers), read_text)


def read_stream(sse: bytes, headers: Mapping[str, str] = NO_HEADERS, read_text: ReadText = visible_text) -> ModelAnswer:
    """The answer in a whole stream of server-sent events. Raises ModelError as `read_body` does, and
    `stream_incomplete` for a stream that ends before the answer does."""
    request_id = request_id_of(headers)
    sse = accepted(200, headers, sse)
    if sse.lstrip().startswith(b"{"):
        return _read_whole(sse, request_id, read_text)
    return _read_completion(collect_stream(sse, request_id), request_id, read_text)


def _read_whole(body: bytes, request_id: str, read_text: ReadText) -> ModelAnswer:
    data = parse(body, request_id)
    # A dialect may have calls where nothing else shows it.
    usual = usual_answer(data, request_id) if read_text is visible_text else None
    return usual or _read_completion(exact(body, data, _OBJECT_ARGUMENTS, request_id), request_id, read_text)


def _read_completion(data: JsonObject, request_id: str, read_text: ReadText) -> ModelAnswer:
    if data.get("error"):
        raise error_of_payload(data["error"], request_id=request_id)
    if data.get("object") == "error":
        raise error_of_payload(data, request_id=request_id)
    choice = _first_choice(data, request_id)
    message = choice.get("message")
    if not isinstance(message, dict):
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "the choice has no message", request_id)
    answer_id = data.get("id")
    request_id = request_id or (answer_id if isinstance(answer_id, str) else "")
    finish = choice.get("finish_reason")
    finish = finish.strip().lower() if isinstance(finish, str) else ""
    model = data.get("model")
    model = model if isinstance(model, str) else ""
    return _read_message(message, finish, model, request_id, usage(data.get("usage")), read_text)


def _first_choice(data: JsonObject, request_id: str) -> JsonObject:
    choices = data.get("choices")
    if not choices:
        if "choices" not in data or "data" in data:
            passing(ErrorCode.MALFORMED_BY_PROVIDER, "there are no choices where they belong", request_id)
        passing(ErrorCode.EMPTY_RESPONSE, "the list of choices is empty", request_id)
    choice = choices[0] if isinstance(choices, list) else None
    if not isinstance(choice, dict):
        passing(ErrorCode.MALFORMED_BY_PROVIDER, "the first choice is no object", request_id)
    if choice.get("error"):
        raise error_of_payload(choice["error"], request_id=request_id)
    return choice


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
        # Where a server gives calls as fields, what looks like calls in the text is not asked for.
        text, leaked, calls = visible.text, visible.leaked and not calls, calls or visible.calls
    refuse_finish(finish, bool(calls or found.unreadable), bool(text.strip()), request_id)
    if leaked:
        raise ModelError(
            ErrorCode.LEAKED_MARKUP, "the text holds calls or special tokens of the model", request_id=request_id
        )
    if not calls and not text.strip():
        nothing_to_say(finish, found.unreadable, request_id)
    return ModelAnswer(text, calls, finish, model, request_id, used, _opaque(message, found))


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
