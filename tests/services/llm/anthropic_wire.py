"""Anthropic messages and event streams in the server's format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from services.llm.model import ModelAnswer, ModelError
from services.llm.reading.anthropic import read_body, read_stream


def a_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def a_use(arguments: Any, name: str = "get_weather", call_id: str = "toolu_1") -> dict[str, Any]:
    """A block with a function call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def a_message(*content: dict[str, Any], stop: str | None = None, **fields: Any) -> dict[str, Any]:
    """A complete answer."""
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c-1",
        "content": list(content),
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **fields,
    }


def events(*chunks: dict[str, Any]) -> str:
    """A stream of `chunks`."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in chunks)


def streamed(*blocks: tuple[dict[str, Any], Sequence[dict[str, Any]]], stop: str | None = "tool_use") -> str:
    """A complete stream; each block has its deltas."""
    chunks: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**a_message(), "stop_reason": None}},
        {"type": "ping"},
    ]
    for index, (block, deltas) in enumerate(blocks):
        chunks.append({"type": "content_block_start", "index": index, "content_block": block})
        chunks += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        chunks.append({"type": "content_block_stop", "index": index})
    if stop is not None:
        end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
        chunks += [end, {"type": "message_stop"}]
    return events(*chunks)


def read(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> ModelAnswer:
    """The parsed answer of `body`: JSON or text."""
    return read_body(status, headers or {}, (body if isinstance(body, str) else json.dumps(body)).encode())


def failure(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> ModelError:
    """The error that results from `body`."""
    with pytest.raises(ModelError) as caught:
        read(body, status, headers)
    return caught.value


def stream_failure(sse: str) -> ModelError:
    """The error that results from a stream."""
    with pytest.raises(ModelError) as caught:
        read_stream(sse.encode())
    return caught.value
