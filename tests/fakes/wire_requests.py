"""Whether a request, as it goes to the server of a protocol, says all that is in it."""

from __future__ import annotations

import re
from typing import Any

from services.llm.encoding import wire_name
from services.llm.model import ModelMessage, ModelRequest
from tests.fakes.wires import Wire

_IN_PROSE = frozenset({"json_text", "xml_text"})
_HEADINGS = re.compile(r"^### ([\w-]+)$", re.MULTILINE)
_NAMES = {
    "openai": re.compile(r'"function": \{"name": "([^"]*)"'),
    "anthropic": re.compile(r'\{"name": "([^"]*)", "description": '),
    "json_text": _HEADINGS,
    "xml_text": _HEADINGS,
}
"""What finds the names of functions where a request describes them."""


def is_told(wire: Wire, body: Any, request: ModelRequest) -> None:
    """Raise AssertionError unless `body` tells the results of `request`, each for its call, offers its functions and no
    others, and has the turns that the protocol wants."""
    results = [_as_told(wire, one.content) for one in request.messages if one.role == "tool"]
    assert wire.told(body) == results
    offered = [one.name for one in request.offer.functions] if request.offer is not None else []
    assert _NAMES[wire.name].findall(wire.offered(body)) == offered
    _CHECKS.get(wire.name, _turns_alternate)(body, request)


def _as_told(wire: Wire, content: str) -> str:
    """A result, less what would end it early, where it stands in prose."""
    if wire.name not in _IN_PROSE:
        return content
    return content.replace("<result", "<\\result").replace("</result", "<\\/result")


def _ids(messages: Any) -> list[str]:
    return [one.call_id for one in messages if one.role == "tool"]


def _openai(body: Any, request: ModelRequest) -> None:
    messages = body["messages"]
    assert [one["role"] for one in messages if one["role"] != "system"] == [
        one.role for one in request.messages if one.role != "system"
    ]
    assert [one["tool_call_id"] for one in messages if one["role"] == "tool"] == _ids(request.messages)
    made = [[call["id"] for call in one.get("tool_calls", ())] for one in messages if one["role"] == "assistant"]
    assert made == [[call.id for call in one.calls] for one in _answers(request)]


def _anthropic(body: Any, request: ModelRequest) -> None:
    _turns_alternate(body, request)
    blocks = [block for one in body["messages"] for block in one["content"]]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert answered == [wire_name(one) for one in _ids(request.messages)]
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert made == [wire_name(call.id) for one in _answers(request) for call in one.calls]


def _answers(request: ModelRequest) -> list[ModelMessage]:
    return [one for one in request.messages if one.role == "assistant"]


def _turns_alternate(body: Any, request: ModelRequest) -> None:
    roles = [one["role"] for one in body["messages"] if one["role"] != "system"]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]


_CHECKS = {"openai": _openai, "anthropic": _anthropic}
