"""Client of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson

from services.clock import Clock
from services.llm.encoding import dumps, guided, wire_name
from services.llm.model import UNSEEN, Image, ModelAnswer, ModelMessage, ModelRequest, Offer, ToolCall
from services.llm.profile import ModelProfile
from services.llm.provider import Provider, say_hello
from services.llm.reading.anthropic import read_body
from services.refs import JsonObject

_CACHED: JsonObject = {"cache_control": {"type": "ephemeral"}}
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def encode_tools(offer: Offer) -> bytes:
    """Encode the functions of `offer` as a JSON array, cached per offer. A cache breakpoint after the last function
    lets the provider cache the prefix that all chats share."""
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


def encode_conversation(
    messages: Sequence[ModelMessage], *, echo_reasoning: bool = True, sees: bool = False
) -> tuple[bytes, bytes]:
    """Encode the system blocks, with a cache breakpoint, and the turns, each as a JSON array. Only leading system
    messages become system blocks; the API allows no later ones, so they become user messages."""
    first = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    system: list[JsonObject] = [_text(one.content) for one in messages[:first] if one.content.strip()]
    if system:
        system[-1].update(_CACHED)
    return dumps(system), dumps(_turns(messages[first:], echo_reasoning=echo_reasoning, sees=sees))


def _turns(messages: Iterable[ModelMessage], *, echo_reasoning: bool, sees: bool) -> list[JsonObject]:
    """Alternating turns of user and assistant, starting with the user, as the API requires."""
    turns: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, echo_reasoning=echo_reasoning, sees=sees)
        if not turns and role == "assistant" and blocks:
            turns.append({"role": "user", "content": [_text("…")]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ModelMessage, *, echo_reasoning: bool, sees: bool) -> list[JsonObject]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message.call_id), "content": message.content}]
    opaque = (message.opaque or {}).get("anthropic")
    if opaque:
        return [block for block in opaque["content"] if echo_reasoning or block.get("type") not in _THOUGHTS]
    if message.images:
        pictures = [_image(one) for one in message.images] if sees else []
        return [_text(message.content if sees else message.content + UNSEEN), *pictures]
    # The API rejects empty text blocks.
    text_blocks = [_text(message.content)] if message.content.strip() else []
    return [*text_blocks, *(_tool_use(call) for call in message.calls)]


def _tool_use(call: ToolCall) -> JsonObject:
    return {"type": "tool_use", "id": _id(call.id), "name": wire_name(call.name), "input": call.arguments or {}}


def _image(image: Image) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _id(call_id: str) -> str:
    """Call id in permitted characters: ids of other providers may be invalid here."""
    return wire_name(call_id)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


_VERSION = "2023-06-01"
_USUAL_MAX_TOKENS = 4096
"""The API requires a limit; `max_tokens` among the profile's extra fields overrides it."""
_MODES = {"none": "none", "required": "any", "auto": "auto"}


class AnthropicMessages:
    """ChatModel over the Anthropic Messages API. Does not retry; see `ResilientModel`."""

    def __init__(self, profile: ModelProfile, clock: Clock) -> None:
        self.name = profile.name
        self._profile = profile
        self._clock = clock
        headers = {"x-api-key": profile.api_key.get_secret_value(), "anthropic-version": _VERSION}
        self._provider = Provider(profile.endpoint("messages", headers, bearer=False), clock)
        self._heads = profile.heads({"max_tokens": _USUAL_MAX_TOKENS})

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        status, headers, answer = await self._provider.post(self.encode(request), request.timeout_seconds)
        return self.read(request, status, headers, answer)

    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer:
        """Parse the server's response to `request`. Raises ModelError as `read_body` does."""
        return read_body(status, headers, answer, self._clock.now())

    def encode(self, request: ModelRequest) -> bytes:
        """Encode the request body: constant fields, functions, instructions, turns."""
        parts = [self._heads[request.thinks]]
        if request.offer is not None and request.offer.functions:
            parts += [b',"tools":', encode_tools(request.offer), self._tool_choice(request.tool_choice)]
        profile = self._profile
        system, turns = encode_conversation(guided(request), echo_reasoning=profile.echo_reasoning, sees=profile.sees)
        if system != b"[]":
            parts += [b',"system":', system]
        parts += [b',"messages":', turns, b"}"]
        return b"".join(parts)

    async def probe(self) -> str:
        return await say_hello(self, self._profile.model, self._clock)

    async def close(self) -> None:
        await self._provider.close()

    def _tool_choice(self, choice: str) -> bytes:
        if choice not in ("auto", "none") and not self._profile.tool_choice_required:
            choice = "auto"
        wanted: dict[str, str | bool] = (
            {"type": _MODES[choice]} if choice in _MODES else {"type": "tool", "name": choice}
        )
        if choice != "none" and self._profile.parallel_flag is not None:
            wanted["disable_parallel_tool_use"] = not self._profile.parallel_flag
        return b"" if wanted == {"type": "auto"} else b',"tool_choice":' + orjson.dumps(wanted)
