"""Checks that a request body of a protocol contains everything in the ModelRequest."""

from __future__ import annotations

import re
from typing import Any

from services.llm.encoding import guided, wire_name
from services.llm.model import ModelRequest
from tests.fakes.wires import Wire

_IN_PROSE = frozenset({"json_text", "xml_text"})
_HEADINGS = re.compile(r"^### ([\w-]+)$", re.MULTILINE)
_NAMES = {
    "openai": re.compile(r'"function": \{"name": "([^"]*)"'),
    "anthropic": re.compile(r'\{"name": "([^"]*)", "description": '),
    "json_text": _HEADINGS,
    "xml_text": _HEADINGS,
}
"""Patterns of function names in the descriptions of a request."""


def is_told(wire: Wire, body: Any, request: ModelRequest) -> None:
    """Raise AssertionError unless `body` contains the results of `request`, each for its call, offers exactly its
    functions, and has the order of turns that the protocol requires."""
    same("results", wire.told(body), [_as_told(wire, one.content) for one in request.messages if one.role == "tool"])
    offered = [one.name for one in request.offer.functions] if request.offer is not None else []
    # The list of functions may follow an introduction of a group of them.
    described = wire.offered(body).rpartition("\n\nFunctions:")[2]
    same("functions", _NAMES[wire.name].findall(described), offered)
    _CHECKS.get(wire.name, _turns_alternate)(body, request)


def same(what: str, on_the_wire: Any, meant: Any) -> None:
    """Raise AssertionError with a description unless both are equal."""
    assert on_the_wire == meant, f"{what} on the wire: {on_the_wire}; meant: {meant}"


def _as_told(wire: Wire, content: str) -> str:
    """A result without sequences that would end its block, if the protocol writes results as text."""
    if wire.name not in _IN_PROSE:
        return content
    return content.replace("<result", "<\\result").replace("</result", "<\\/result")


def _openai(body: Any, request: ModelRequest) -> None:
    messages = body["messages"]
    same("roles", [one["role"] for one in messages], [one.role for one in guided(request)])
    answered = [one["tool_call_id"] for one in messages if one["role"] == "tool"]
    same("ids of results", answered, _ids_of_results(request))
    made = [call["id"] for one in messages for call in one.get("tool_calls", ())]
    same("ids of calls", made, _ids_of_calls(request))


def _anthropic(body: Any, request: ModelRequest) -> None:
    _turns_alternate(body, request)
    blocks = [block for one in body["messages"] for block in one["content"]]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    same("ids of results", answered, [wire_name(one) for one in _ids_of_results(request)])
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    same("ids of calls", made, [wire_name(one) for one in _ids_of_calls(request)])


def _ids_of_results(request: ModelRequest) -> list[str]:
    return [one.call_id for one in request.messages if one.role == "tool"]


def _ids_of_calls(request: ModelRequest) -> list[str]:
    return [call.id for one in request.messages if one.role == "assistant" for call in one.calls]


def _turns_alternate(body: Any, request: ModelRequest) -> None:
    roles = [one["role"] for one in body["messages"] if one["role"] != "system"]
    same("turns", roles, [("user", "assistant")[place % 2] for place in range(len(roles))])


_CHECKS = {"openai": _openai, "anthropic": _anthropic}
