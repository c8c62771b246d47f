"""A stream of Anthropic message events, put together into the body that the same answer would have had in one piece."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from services.json_values import JsonObject, JsonValue
from services.llm.answer_rules import passing
from services.llm.provider_errors import error_of_payload
from services.llm.server_events import read_events, refuse_incomplete
from services.refs import ErrorCode

_JOINED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Where each kind of piece belongs in its block."""


def collect_message(sse: bytes, request_id: str = "") -> JsonObject:
    """The message whose events are in `sse`. Arguments stay the text that they came as.

    Raises ModelError: `provider_error` for an error within the stream, `malformed_by_provider` for events that are no
    JSON, `empty_response` for no bytes at all, `stream_incomplete` for an end without a stop reason.
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
    """One block of the content so far."""

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
    """The answer so far."""

    head: JsonObject = field(default_factory=dict)
    blocks: dict[int, _Block] = field(default_factory=dict)
    ended: bool = False

    def take(self, event: JsonObject) -> None:
        """Add one event; kinds that are not known are passed over, as the provider asks."""
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
            # The last count holds; what it leaves out was said at the start.
            before = self.head.get("usage")
            self.head["usage"] = {**(before if isinstance(before, dict) else {}), **usage}

    def as_message(self) -> JsonObject:
        """What the server would have sent without streaming."""
        return {**self.head, "content": [block.as_json() for _, block in sorted(self.blocks.items())]}


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0
