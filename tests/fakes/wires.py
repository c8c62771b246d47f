"""Encodings of answers, and parsers of requests, for each protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import SecretStr

from services.clock import SystemClock
from services.llm import text_calls
from services.llm.model import ChatModel, ModelAnswer, ModelRequest
from services.llm.profile import ModelProfile
from services.llm.protocols.anthropic_messages import AnthropicMessages
from services.llm.protocols.openai_chat import OpenAIChat
from services.llm.protocols.text_protocol import TextProtocol

Answer = dict[str, Any]
Call = tuple[str, dict[str, Any]]
_RESULT = re.compile(r'<result function="[^"]*">(.*?)</result>', re.DOTALL)


class Client(ChatModel, Protocol):
    """A client of a protocol, with its encoder and its parser."""

    def encode(self, request: ModelRequest) -> bytes: ...
    def read(self, request: ModelRequest, status: int, headers: Mapping[str, str], answer: bytes) -> ModelAnswer: ...


@dataclass(frozen=True)
class Wire:
    """The server side of a protocol."""

    name: str
    model: Callable[[str], Client]
    """Returns a client for the server at this URL."""
    says: Callable[[str], Answer]
    calls: Callable[[str, Sequence[Call]], Answer]
    """A text followed by calls."""
    garbled: Callable[[str], Answer]
    """An invalid call of this function."""
    truncated: Answer
    refused: Answer
    told: Callable[[Any], list[str]]
    """Results in a request, in order."""
    offered: Callable[[Any], str]
    """The description of functions in a request."""


def _profile(url: str) -> ModelProfile:
    return ModelProfile("main", "m-1", url, SecretStr("k"))


def _completion(message: dict[str, Any], finish: str = "stop") -> Answer:
    message = {"role": "assistant", "content": None, **message}
    return {"body": {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}}


def _tool_calls(text: str, calls: Sequence[tuple[str, str]], finish: str = "tool_calls") -> Answer:
    wanted = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return _completion({"content": text or None, "tool_calls": wanted}, finish)


def _in_words(text: str, finish: str = "stop") -> Answer:
    return _completion({"content": text}, finish)


def _message(*content: dict[str, Any], stop: str = "end_turn") -> Answer:
    return {"body": {"id": "msg_1", "type": "message", "content": list(content), "stop_reason": stop}}


def _uses(text: str, calls: Sequence[Call]) -> Answer:
    said = [{"type": "text", "text": text}] if text else []
    uses = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments}
        for n, (name, arguments) in enumerate(calls)
    ]
    return _message(*said, *uses, stop="tool_use")


def _broken_use(name: str) -> Answer:
    piece = {"type": "input_json_delta", "partial_json": '{"city": }'}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "content": []}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]  # fmt: skip
    return {"sse": "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)}


def _joined(text: str, block: str) -> str:
    return f"{text}\n{block}" if text else block


def _results_in_words(request: Any) -> list[str]:
    return [found for one in request["messages"] for found in _RESULT.findall(one["content"])]


WIRES = (
    Wire(
        "openai",
        model=lambda url: OpenAIChat(_profile(url), SystemClock()),
        says=_in_words,
        calls=lambda text, calls: _tool_calls(text, [(name, json.dumps(arguments)) for name, arguments in calls]),
        garbled=lambda name: _tool_calls("", [(name, '{"city": }')]),
        truncated=_tool_calls("", [("weather", '{"city": "Os')], "length"),
        refused=_in_words("", "content_filter"),
        told=lambda request: [one["content"] for one in request["messages"] if one["role"] == "tool"],
        offered=lambda request: json.dumps(request.get("tools", "")),
    ),
    Wire(
        "anthropic",
        model=lambda url: AnthropicMessages(_profile(url), SystemClock()),
        says=lambda text: _message({"type": "text", "text": text}),
        calls=_uses,
        garbled=_broken_use,
        truncated=_message({"type": "tool_use", "id": "t", "name": "weather", "input": {}}, stop="max_tokens"),
        refused=_message({"type": "text", "text": "I had better not"}, stop="refusal"),
        told=lambda request: [
            block["content"]
            for one in request["messages"]
            for block in one["content"]
            if block["type"] == "tool_result"
        ],
        offered=lambda request: json.dumps(request.get("tools", "")),
    ),
    Wire(
        "json_text",
        model=lambda url: TextProtocol(_profile(url), SystemClock(), "json"),
        says=_in_words,
        calls=lambda text, calls: _in_words(_joined(text, text_calls.write_json_calls(calls))),
        garbled=lambda name: _in_words(f'{{"tool_calls": [{{"name": "{name}", "arguments": {{"city": }}}}]}}'),
        truncated=_in_words('{"tool_calls": [{"name": "weather", "arguments": {"city": "Os', "length"),
        refused=_in_words("", "content_filter"),
        told=_results_in_words,
        offered=lambda request: str(request["messages"][0]["content"]),
    ),
    Wire(
        "xml_text",
        model=lambda url: TextProtocol(_profile(url), SystemClock(), "xml"),
        says=_in_words,
        calls=lambda text, calls: _in_words(_joined(text, text_calls.write_xml_calls(calls))),
        garbled=lambda name: _in_words(f'<tool name="{name}"><parameters><city>Oslo</town></parameters></tool>'),
        truncated=_in_words('```xml\n<tool name="weather"><parameters><city>Os', "length"),
        refused=_in_words("", "content_filter"),
        told=_results_in_words,
        offered=lambda request: str(request["messages"][0]["content"]),
    ),
)
"""All protocols with a server."""
