"""Pairing: every call in a conversation has exactly one result, directly after it, or providers refuse the request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import orjson

from services.llm.model import ModelMessage, ToolCall
from services.refs import ErrorCode

_LOST = orjson.dumps({"error": ErrorCode.UNKNOWN_OUTCOME.value, "message": "The result of this call is not known."})


def is_paired(messages: Sequence[ModelMessage]) -> bool:
    """Whether each message with calls is followed by one result for each of them, in their order, and no other
    results are there."""
    owed: list[str] = []
    for message in messages:
        if message.role == "tool":
            if not owed or owed.pop() != message.call_id:
                return False
            continue
        if owed:
            return False
        if message.calls:
            owed = [call.id for call in reversed(message.calls)]
            if len(owed) > 1 and len(set(owed)) < len(owed):
                return False
    return not owed


def paired(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """`messages` themselves where they are paired. Else a copy: a missing result is said to be unknown, one without its
    call is left out, and ids that one answer has twice are told apart."""
    return messages if is_paired(messages) else _repaired(messages)


def _repaired(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    repaired: list[ModelMessage] = []
    for place, message in enumerate(messages):
        if message.role == "tool":
            continue
        if not message.calls:
            repaired.append(message)
            continue
        results = _results_after(messages, place)
        calls = _told_apart(message.calls)
        repaired.append(replace(message, calls=calls))
        for was, call in zip(message.calls, calls, strict=True):
            found = results[was.id].pop(0) if results[was.id] else ModelMessage("tool", _LOST.decode())
            repaired.append(replace(found, call_id=call.id))
    return repaired


def _results_after(messages: Sequence[ModelMessage], place: int) -> dict[str, list[ModelMessage]]:
    """The results between the message at `place` and the next one with calls, by the ids of their calls."""
    results: dict[str, list[ModelMessage]] = defaultdict(list)
    for message in messages[place + 1 :]:
        if message.calls:
            break
        if message.role == "tool":
            results[message.call_id].append(message)
    return results


def _told_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    taken = {call.id for call in calls}
    seen: set[str] = set()
    apart: list[ToolCall] = []
    for call in calls:
        new, number = call.id, 1
        while new in seen or (new != call.id and new in taken):
            number += 1
            new = f"{call.id}-{number}"
        seen.add(new)
        apart.append(call if new == call.id else replace(call, id=new))
    return tuple(apart)
