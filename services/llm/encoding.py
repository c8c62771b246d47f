"""Messages and functions as the OpenAI chat-completions wire wants them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import orjson

from services.json_values import JsonObject
from services.llm.model import ModelMessage, Offer, OfferedFunction, ToolCall

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def encode_tools(offer: Offer) -> bytes:
    """The functions of `offer` as a JSON array: encoded once for each function, and joined once for each Offer."""
    encoded = offer.encoded.get("openai")
    if encoded is None:
        encoded = offer.encoded["openai"] = b"[%b]" % b",".join(map(_encode_tool, offer.functions))
    return encoded


def _encode_tool(function: OfferedFunction) -> bytes:
    encoded = function.encoded.get("openai")
    if encoded is None:
        definition = {
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters,
        }
        encoded = function.encoded["openai"] = orjson.dumps({"type": "function", "function": definition})
    return encoded


def encode_messages(messages: Sequence[ModelMessage], *, echo_reasoning: bool = True) -> bytes:
    """`messages` as a JSON array. `echo_reasoning` sends a model's reasoning back to it, word for word: some providers
    insist on it beside tool calls, some refuse it."""
    encoded = [_encode(message, echo_reasoning=echo_reasoning) for message in messages]
    try:
        return orjson.dumps(encoded)
    except TypeError:
        # Half a surrogate pair, for instance from a file's name, is no text for any provider.
        return orjson.dumps(_without_surrogates(encoded))


def _encode(message: ModelMessage, *, echo_reasoning: bool) -> JsonObject:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if message.role != "assistant":
        return {"role": message.role, "content": message.content}
    encoded: JsonObject = {"role": "assistant", "content": message.content}
    kept = (message.opaque or {}).get("openai", {})
    if echo_reasoning:
        encoded.update(kept.get("message", {}))
    if message.calls:
        extras = kept.get("calls", {})
        encoded["content"] = message.content or None
        encoded["tool_calls"] = [{**_encode_call(call), **extras.get(call.id, {})} for call in message.calls]
    return encoded


def _encode_call(call: ToolCall) -> JsonObject:
    # Providers refuse a whole conversation for a name or for arguments that they cannot parse, even in the past.
    name = _NOT_IN_NAMES.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
    if call.arguments is None:
        arguments = "{}"
    elif call.raw.startswith("{"):
        arguments = call.raw
    else:
        arguments = orjson.dumps(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
