"""Chat completions and streams in the servers' format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from services.llm.model import ModelAnswer, ModelError, ToolCall
from services.llm.reading.openai import read_body, read_stream


def a_tool_call(arguments: Any, name: Any = "get_weather", call_id: Any = "call_1") -> dict[str, Any]:
    """An entry of `tool_calls`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def a_body(
    content: Any = None, calls: Any = None, finish: str | None = "stop", message: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A complete response. `message`: more fields of the message."""
    fields: dict[str, Any] = {"role": "assistant", "content": content, **(message or {})}
    if calls is not None:
        fields["tool_calls"] = calls
    return {"id": "chatcmpl-1", "model": "m-1", "choices": [{"index": 0, "message": fields, "finish_reason": finish}]}


def read(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> ModelAnswer:
    """The parsed answer of `body`: JSON, text or bytes."""
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return read_body(status, headers or {}, body)


def read_call(arguments: Any, name: str = "get_weather") -> ToolCall:
    """The only call of an answer with one tool call."""
    (call,) = read(a_body(calls=[a_tool_call(arguments, name)], finish="tool_calls")).calls
    return call


def failure(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> ModelError:
    """The error that results from `body`."""
    with pytest.raises(ModelError) as caught:
        read(body, status, headers)
    return caught.value


def a_delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream; `fields` are those of the delta."""
    return {"id": "chatcmpl-1", "model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def a_piece(arguments: Any, name: Any = None, **fields: Any) -> dict[str, Any]:
    """A chunk with a part of a tool call; `fields` are `index` and `id`."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return a_delta(tool_calls=[{**fields, "function": function}])


def a_stream(chunks: Sequence[Any], end: str = "\n\n", *, done: bool = True) -> bytes:
    """`chunks` as server-sent events."""
    lines = [f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False)}" for chunk in chunks]
    return "".join(line + end for line in [*lines, *(["data: [DONE]"] if done else [])]).encode()


def stream(chunks: Sequence[Any], *, done: bool = True) -> ModelAnswer:
    """The parsed answer of a stream of `chunks`."""
    return read_stream(a_stream(chunks, done=done))


def stream_failure(chunks: Sequence[Any], *, done: bool = True) -> ModelError:
    """The error that results from a stream of `chunks`."""
    with pytest.raises(ModelError) as caught:
        stream(chunks, done=done)
    return caught.value
