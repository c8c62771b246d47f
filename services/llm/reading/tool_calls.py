"""Calls of a chat completions message in all known formats."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from services.llm.model import ToolCall
from services.llm.reading.tool_arguments import read_arguments, same_arguments
from services.refs import JsonObject, JsonValue

_WRAPPERS = ("functions.", "default_api.", "tools.")
_PARALLEL = "multi_tool_use.parallel"
_NUMBERED = re.compile(r"functions\.(?P<name>.+):\d{1,4}")
_ARGUMENTS = ("arguments", "parameters", "input")
"""Keys for arguments; the later ones are from other protocols and passed on by some gateways."""
_EXTRAS = ("extra_content", "thought_signature", "provider_specific_fields")
"""Fields of a call that a provider requires back."""


class Calls(NamedTuple):
    """Calls parsed from a message, with the number of unreadable entries."""

    calls: tuple[ToolCall, ...]
    unreadable: int
    """Number of entries that are not calls: null, not an object, or without a function name."""
    extras: dict[str, JsonObject]
    """Fields to return verbatim, by call id."""


class _Entry(NamedTuple):
    """Normalized entry of the wire format: one `tool_calls` item before its arguments are decoded."""

    id: str
    name: str
    arguments: JsonValue
    extras: JsonObject


def read_calls(message: JsonObject, seed: str) -> Calls:
    """Parse the calls of `message` from `tool_calls`, else `function_call`. Missing ids are derived from `seed`,
    repeated calls with the same id are dropped. Empty if there are none. Calls with unreadable arguments have a
    `fault`."""
    entries = [_read_entry(raw) for raw in _raw_entries(message)]
    named = [entry for entry in entries if entry is not None]
    calls: list[ToolCall] = []
    extras: dict[str, JsonObject] = {}
    for entry in named:
        first = len(calls)
        for call in _calls_of(entry):
            _add(calls, call, seed)
        if entry.extras and first < len(calls):
            extras[calls[first].id] = entry.extras
    return Calls(tuple(calls), len(entries) - len(named), extras)


def calls_under(finish: str, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """`calls`, uncertain if `finish` is empty: nothing says then that the answer is complete."""
    return calls if finish else tuple(replace(call, uncertain=True) for call in calls)


def plain_name(name: str) -> str:
    """`name` without the wrappers that some models add, such as `functions.` or `default_api.`."""
    # A special token ends the name.
    name = name.split("<|", 1)[0].strip()
    numbered = _NUMBERED.fullmatch(name)
    if numbered:
        return numbered["name"]
    for wrapper in _WRAPPERS:
        if name.startswith(wrapper):
            return name[len(wrapper) :]
    return name


def _raw_entries(message: JsonObject) -> list[JsonValue]:
    calls = message.get("tool_calls")
    if calls:
        return calls if isinstance(calls, list) else [calls]
    legacy = message.get("function_call")
    return [{"function": legacy}] if legacy else []


def _read_entry(raw: JsonValue) -> _Entry | None:
    if not isinstance(raw, dict):
        return None
    function = raw.get("function", raw)
    if not isinstance(function, dict):
        return None
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        return None
    call_id = raw.get("id")
    arguments = next((function[key] for key in _ARGUMENTS if key in function), None)
    extras = {field: raw[field] for field in _EXTRAS if raw.get(field)}
    return _Entry(call_id.strip() if isinstance(call_id, str) else "", name, arguments, extras)


def _calls_of(entry: _Entry) -> Iterable[ToolCall]:
    """Calls of an entry: several, with numbered ids, if the server or the model combined them. Unreadable arguments
    give a call with a fault."""
    name = plain_name(entry.name)
    readings = read_arguments(entry.arguments)
    if name == _PARALLEL and len(readings) == 1:
        inner = _unwrapped(readings[0].arguments)
        if inner:
            return _numbered(entry.id, [call for one in inner for call in _calls_of(one)])
    written = entry.name.strip() if entry.name.strip() != name else ""
    if len(readings) == 1:
        (reading,) = readings
        return (ToolCall(entry.id, name, reading.arguments, reading.raw, reading.fault, written=written),)
    return _numbered(entry.id, [ToolCall("", name, r.arguments, r.raw, r.fault, written=written) for r in readings])


def _unwrapped(arguments: JsonObject | None) -> list[_Entry]:
    """Calls inside the wrapper for parallel calls; empty if it is invalid."""
    uses = arguments.get("tool_uses") if arguments else None
    entries: list[_Entry] = []
    for use in uses if isinstance(uses, list) else ():
        name = use.get("recipient_name") if isinstance(use, dict) else None
        # A nested wrapper is invalid; it is not resolved, so its look-up fails.
        if not isinstance(name, str) or plain_name(name) == _PARALLEL:
            return []
        entries.append(_Entry("", name, use.get("parameters"), {}))
    return entries


def _numbered(call_id: str, calls: list[ToolCall]) -> list[ToolCall]:
    if not call_id:
        return calls
    return [replace(call, id=f"{call_id}_{n}" if n > 1 else call_id) for n, call in enumerate(calls, 1)]


def _add(calls: list[ToolCall], call: ToolCall, seed: str) -> None:
    """Append `call` with a unique id, unless it duplicates a call with the same id."""
    for other in calls if call.id else ():
        if other.id == call.id:
            if _is_same(other, call):
                return
            call = replace(call, id="")
            break
    if not call.id:
        call = replace(call, id=made_id(seed, len(calls), call))
    calls.append(call)


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    if one.name != other.name or one.fault != other.fault:
        return False
    return one.raw == other.raw if one.fault else same_arguments(one.arguments, other.arguments)


def made_id(seed: str, place: int, call: ToolCall) -> str:
    """Deterministic call id, so that parsing a stored answer again changes nothing. Nine letters and digits, as the
    strictest provider requires."""
    words = f"{seed}\0{place}\0{call.name}\0{call.raw}"
    return hashlib.blake2s(words.encode("utf-8", "replace")).hexdigest()[:9]
