"""Messages and functions as OpenAI chat completions JSON, and strict schemas."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import orjson

from services.llm.model import UNSEEN, Image, ModelMessage, ModelRequest, Offer, OfferedFunction, ToolCall
from services.refs import JsonObject, JsonValue

_SUPPORTED = frozenset({"type", "description", "enum", "const", "properties", "items", "anyOf", "required"})
_DROPPED = frozenset({"default", "example", "examples", "additionalProperties"})
"""Keywords that do not affect validation or are set again."""
_LEAVES = frozenset({"string", "number", "integer", "boolean", "null"})


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """`schema` in OpenAI's strict form (all properties required, optional ones nullable, no others); None if it has no
    equivalent strict form."""
    try:
        return _strict(schema)
    except _CannotBeStrict:
        return None


class _CannotBeStrict(Exception):
    """A part of the schema has no strict form."""


def _strict(schema: JsonValue) -> JsonObject:
    if not isinstance(schema, dict) or not schema.keys() <= _SUPPORTED | _DROPPED:
        raise _CannotBeStrict
    result = {key: value for key, value in schema.items() if key in _SUPPORTED}
    if "anyOf" in result:
        result["anyOf"] = [_strict(one) for one in result["anyOf"]]
    elif result.get("type") == "object":
        _close(result, schema)
    elif result.get("type") == "array":
        result["items"] = _strict(result.get("items"))
    elif not _is_leaf(result.get("type")):
        raise _CannotBeStrict
    return result


def _close(result: JsonObject, schema: JsonObject) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") not in (None, False):
        raise _CannotBeStrict
    required = schema.get("required") or []
    result["properties"] = {
        name: _strict(one) if name in required else _or_null(_strict(one)) for name, one in properties.items()
    }
    result["required"] = list(properties)
    result["additionalProperties"] = False


def _or_null(schema: JsonObject) -> JsonObject:
    named = schema.get("type")
    if isinstance(named, str) and named in _LEAVES and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [named, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _is_leaf(named: JsonValue) -> bool:
    names = named if isinstance(named, list) else [named]
    return bool(names) and all(name in _LEAVES for name in names)


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def encode_tools(offer: Offer, *, strict: bool = False) -> bytes:
    """Encode the functions of `offer` as a JSON array of tools; cached per function and per offer. `strict` marks
    functions whose schema has a strict form."""
    key = "openai-strict" if strict else "openai"
    encoded = offer.encoded.get(key)
    if encoded is None:
        encoded = offer.encoded[key] = b"[%b]" % b",".join(_tool(one, key, strict) for one in offer.functions)
    return encoded


def _tool(function: OfferedFunction, key: str, strict: bool) -> bytes:
    encoded = function.encoded.get(key)
    if encoded is None:
        tool = {"type": "function", "function": _function(function, strict)}
        encoded = function.encoded[key] = orjson.dumps(tool)
    return encoded


def _function(function: OfferedFunction, strict: bool) -> JsonObject:
    result = {"name": function.name, "description": function.description, "parameters": function.parameters}
    narrowed = strict_schema(function.parameters) if strict else None
    return result if narrowed is None else {**result, "parameters": narrowed, "strict": True}


def estimated_tokens(text: str) -> int:
    """Estimated tokens of `text`: about 4 English letters per token, 1 Chinese, Japanese or Korean character, or 1.6
    letters of alphabets with two bytes per letter. Computed from the length in UTF-8, without a tokenizer."""
    letters = len(text)
    size = letters if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return (3 * size - letters + 7) // 8


def tokens_of(function: OfferedFunction) -> int:
    """Estimated tokens of `function` in a request."""
    return estimated_tokens(_tool(function, "openai", strict=False).decode())


def offer_tokens(offer: Offer) -> int:
    """Estimated tokens of all functions of `offer`; cached in it."""
    if offer.tokens is None:
        offer.tokens = sum(map(tokens_of, offer.functions))
    return offer.tokens


def encode_messages(messages: Sequence[ModelMessage], *, echo_reasoning: bool = True, sees: bool = False) -> bytes:
    """Encode `messages` as a JSON array of chat completions messages; unreadable arguments become `{}`.
    `echo_reasoning` returns a model's reasoning verbatim: some providers require it with tool calls, others reject
    it. `sees`: pictures are sent; otherwise a note says that there are some."""
    return dumps([_encode(message, echo_reasoning, sees) for message in messages])


def guided(request: ModelRequest) -> Sequence[ModelMessage]:
    """Messages of `request`, with the functions' usage instructions after the system messages."""
    messages, offer = request.messages, request.offer
    if offer is None or not offer.guidance:
        return messages
    first = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    return [*messages[:first], ModelMessage("system", offer.guidance), *messages[first:]]


def dumps(value: JsonValue) -> bytes:
    """Encode `value` as JSON; unpaired surrogates are replaced by `?`. Raises TypeError for values that are not
    JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # Unpaired surrogates occur in file names, for example.
        return orjson.dumps(_without_surrogates(value))


@functools.lru_cache(maxsize=4096)
def wire_name(name: str) -> str:
    """`name` restricted to ASCII letters, digits, `_` and `-` (others become `_`) and to 64 characters; `unnamed` if
    empty: providers reject a whole conversation for an invalid name, even in its history."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def _encode(message: ModelMessage, echo_reasoning: bool, sees: bool) -> JsonObject:
    role = message.role
    if message.images:
        parts = [{"type": "text", "text": message.content}, *map(_image_part, message.images)]
        return {"role": role, "content": parts if sees else message.content + UNSEEN}
    if role == "tool":
        return {"role": role, "tool_call_id": message.call_id, "content": message.content}
    if role != "assistant" or not (message.calls or message.opaque):
        return {"role": role, "content": message.content}
    encoded: JsonObject = {"role": "assistant", "content": message.content}
    opaque = (message.opaque or {}).get("openai", {})
    if echo_reasoning:
        encoded.update(opaque.get("message", {}))
    if message.calls:
        extras = opaque.get("calls", {})
        encoded["content"] = message.content or None
        encoded["tool_calls"] = [{**_encode_call(call), **extras.get(call.id, {})} for call in message.calls]
    return encoded


def _image_part(image: Image) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}


def _encode_call(call: ToolCall) -> JsonObject:
    # Providers also reject arguments that cannot be parsed.
    if call.arguments is None:
        arguments = "{}"
    elif call.raw.startswith("{"):
        arguments = call.raw
    else:
        arguments = orjson.dumps(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": wire_name(call.name), "arguments": arguments}}


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
