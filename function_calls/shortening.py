"""Makes JSON values short enough for a model, and leaves them JSON: texts end at a word, lists at an item."""

from __future__ import annotations

from typing import Any

import orjson

from services.json_values import JsonObject

_SMALLEST = 24
"""Characters below which a value is left out rather than cut."""
_ENDS = ("\n", ". ", "! ", "? ", "。", "！", "？", "；", ", ", "，", " ")
_MARK = "…"


def fitting(value: JsonObject, characters: int) -> str:
    """`value` as JSON of at most `characters` characters; when something had to go, it has a `cut` that says how much.
    A limit below 100 may be passed by that note."""
    text = _dumped(value)
    if len(text) <= characters:
        return text
    note = {"cut": f"{len(text) - characters} or more of {len(text)} characters were left out"}
    room = characters - len(_dumped(note)) + 1
    return _dumped({**_short_object(value, max(room, 2)), **note})


def _short(value: Any, room: int) -> Any:
    """`value`, made to take at most `room` characters of JSON, as far as its kind allows."""
    if len(_dumped(value)) <= room:
        return value
    match value:
        case str():
            return _short_text(value, room)
        case list() | tuple():
            return _short_list(list(value), room)
        case dict():
            return _short_object(value, room)
    return None


def _short_text(text: str, room: int) -> str:
    low, high = 0, min(len(text), max(0, room - 3))
    while low < high:  # escapes make the JSON longer than the text
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_dumped(text[:middle])) <= room - len(_MARK) else (low, middle - 1)
    head = text[:low]
    for end in _ENDS:
        at = head.rfind(end)
        if at >= len(head) * 0.7:
            return head[: at + len(end)].rstrip() + _MARK
    return head + _MARK


def _short_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    left = room - 2
    for item in items:
        size = len(_dumped(item)) + 1
        if size > left:
            if not kept and left >= _SMALLEST:
                kept.append(_short(item, left - 1))
            break
        kept.append(item)
        left -= size
    return kept


def _short_object(value: JsonObject, room: int) -> JsonObject:
    """Small entries stay whole; large ones share what is left."""
    sizes = {name: len(_dumped(one)) for name, one in value.items()}
    left = room - 2
    rooms: dict[str, int] = {}
    names = sorted(sizes, key=lambda name: sizes[name])
    for place, name in enumerate(names):
        frame = len(_dumped(name)) + 2
        given = min(sizes[name], left // (len(names) - place) - frame)
        if given < min(sizes[name], _SMALLEST):
            continue
        rooms[name] = given
        left -= given + frame
    return {name: _short(one, rooms[name]) for name, one in value.items() if name in rooms}


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
