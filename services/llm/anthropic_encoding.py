"""Messages and functions as the Anthropic messages wire wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from services.json_values import JsonObject
from services.llm.encoding import dumps, wire_name
from services.llm.model import ModelMessage, Offer, ToolCall

_CACHED: JsonObject = {"cache_control": {"type": "ephemeral"}}
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def encode_tools(offer: Offer) -> bytes:
    """The functions of `offer` as a JSON array, encoded once for each Offer. The provider may keep what it has read up
    to the last one, which is the same for all chats."""
    encoded = offer.encoded.get("anthropic")
    if encoded is None:
        tools: list[JsonObject] = [
            {"name": function.name, "description": function.description, "input_schema": function.parameters}
            for function in offer.functions
        ]
        if tools:
            tools[-1].update(_CACHED)
        encoded = offer.encoded["anthropic"] = orjson.dumps(tools)
    return encoded


def encode_conversation(messages: Sequence[ModelMessage], *, echo_reasoning: bool = True) -> tuple[bytes, bytes]:
    """The instructions, which the provider may keep, and the turns; each a JSON array. Instructions are the system's
    messages at the beginning; later ones are said by the user, since this wire has no place for them."""
    first = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    system: list[JsonObject] = [_text(one.content) for one in messages[:first] if one.content.strip()]
    if system:
        system[-1].update(_CACHED)
    return dumps(system), dumps(_turns(messages[first:], echo_reasoning=echo_reasoning))


def _turns(messages: Iterable[ModelMessage], *, echo_reasoning: bool) -> list[JsonObject]:
    """Turns of the user and the assistant by turns, the user's first, as the provider insists."""
    turns: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, echo_reasoning=echo_reasoning)
        if not turns and role == "assistant" and blocks:
            turns.append({"role": "user", "content": [_text("…")]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ModelMessage, *, echo_reasoning: bool) -> list[JsonObject]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message.call_id), "content": message.content}]
    kept = (message.opaque or {}).get("anthropic")
    if kept:
        return [block for block in kept["content"] if echo_reasoning or block.get("type") not in _THOUGHTS]
    # An empty text is refused.
    said = [_text(message.content)] if message.content.strip() else []
    return [*said, *(_tool_use(call) for call in message.calls)]


def _tool_use(call: ToolCall) -> JsonObject:
    return {"type": "tool_use", "id": _id(call.id), "name": wire_name(call.name), "input": call.arguments or {}}


def _id(call_id: str) -> str:
    """A call of another provider's may have an id that this one refuses."""
    return wire_name(call_id)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
