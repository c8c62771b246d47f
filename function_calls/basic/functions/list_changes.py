"""Functions that give another list or map than the one they take. As a statement, they change the variable."""

from __future__ import annotations

import json
from typing import Any

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.comparing import finder
from function_calls.basic.conversions import as_number, kind_of, settled, text_of
from function_calls.basic.functions.declaring import ANY, LIST, NUMBER, SERIES, TEXT, WHOLE, also, function
from function_calls.basic.functions.lists import column
from function_calls.basic.measuring import check_count, check_size
from function_calls.basic.members import set_item
from services.json_values import JsonValue


def _push(items: JsonValue, *values: JsonValue) -> JsonValue:
    held = _items(items, "PUSH")
    check_count(len(held) + len(values), "the list")
    return [*held, *values]


def _prepend(items: JsonValue, *values: JsonValue) -> JsonValue:
    held = _items(items, "UNSHIFT")
    check_count(len(held) + len(values), "the list")
    return [*values, *held]


def _items(value: JsonValue, name: str) -> list[Any]:
    if value is None:
        return []
    if type(value) is not list:
        raise RunFault(RunCode.WRONG_TYPE, f"{name} needs a list to put things into, not {kind_of(value)}")
    return value


def _insert(items: list[Any], index: int, value: JsonValue) -> JsonValue:
    check_count(len(items) + 1, "the list")
    if not 0 <= index <= len(items):
        raise RunFault(RunCode.NO_SUCH_INDEX, f"INSERTAT cannot reach {index}: the list has {len(items)} items, from 0")
    return [*items[:index], value, *items[index:]]


def _remove_at(items: list[Any], index: int) -> JsonValue:
    if not 0 <= index < len(items):
        raise RunFault(RunCode.NO_SUCH_INDEX, f"there is no item {index}: the list has {len(items)}, from 0")
    return [*items[:index], *items[index + 1 :]]


def _remove(group: JsonValue, value: JsonValue) -> JsonValue:
    if type(group) is dict:
        key = text_of(value)
        return {name: item for name, item in group.items() if name != key}
    items = _items(group, "REMOVE")
    found = finder(value, items)
    return [item for item in items if not found(item)]


def _put(group: JsonValue, key: JsonValue, value: JsonValue) -> JsonValue:
    return set_item({} if group is None or group == [] else group, key, value)


def _slice(series: JsonValue, start: int, end: int | None = None) -> JsonValue:
    return series[start:end]


def _sorted(items: list[Any], *how: str) -> JsonValue:
    """SORT(list), SORT(rows, "price"), either with "DESC" behind."""
    words = list(how)
    backwards = bool(words) and words[-1].strip().lower() in ("desc", "descending")
    if words and words[-1].strip().lower() in ("desc", "descending", "asc", "ascending"):
        words.pop()
    values = column(items, words[0]) if words else items
    check_size(values, "what SORT compares")
    places = sorted(range(len(items)), key=[_rank(value) for value in values].__getitem__, reverse=backwards)
    return [items[place] for place in places]


def _rank(value: JsonValue) -> tuple[int, int | float, str, str]:
    """Numbers, then texts whatever their capitals, then lists and maps, then NULL."""
    number = as_number(value)
    if number is not None:
        return 0, number, "", ""
    if value is None:
        return 3, 0, "", ""
    text = text_of(value)
    return (1 if type(value) is str else 2), 0, text.lower(), text


def _unique(items: list[Any], name: str | None = None) -> JsonValue:
    values = items if name is None else column(items, name)
    check_size(values, "what UNIQUE compares")
    kept, seen = [], set()
    for item, value in zip(items, values, strict=True):
        mark = (type(value) is str, value if type(value) is str else _mark(value))
        if mark not in seen:
            seen.add(mark)
            kept.append(item)
    return kept


def _mark(value: JsonValue) -> str:
    """The same for 1 and 1.0, and for maps however their keys are ordered."""
    text = text_of(value)
    return json.dumps(json.loads(text), sort_keys=True) if type(value) in (list, dict) else f"{value is None}{text}"


def _flattened(items: list[Any]) -> JsonValue:
    check_count(sum(len(item) if type(item) is list else 1 for item in items), "the list")
    return [inner for item in items for inner in (item if type(item) is list else [item])]


def _range(one: int | float, *others: int | float) -> JsonValue:
    first, last = (one, others[0]) if others else (1, one)
    step = others[1] if len(others) > 1 else (1 if first <= last else -1)
    if not step:
        raise RunFault(RunCode.BAD_VALUE, "RANGE cannot go on in steps of 0")
    if (last - first) / step < 0:
        return []
    steps = (last - first) / step
    check_count(int(min(steps, 1e9)) + 1, "what RANGE makes")
    return [settled(first + place * step) for place in range(int(steps + 1e-9) + 1)]


LIST_CHANGES = (
    *also(
        function(
            "PUSH(list, value, …)",
            (ANY, ANY),
            _push,
            "The list with the values behind.",
            "PUSH([1], 2)",
            [1, 2],
            more=True,
        ),
        "append",
    ),
    *also(
        function(
            "UNSHIFT(list, value, …)",
            (ANY, ANY),
            _prepend,
            "The list with the values in front.",
            "UNSHIFT([1], 2)",
            [2, 1],
            more=True,
        ),
        "prepend",
    ),
    function(
        "POP(list)",
        (LIST,),
        lambda items: items[:-1],
        "The list without its last item; LAST tells that one.",
        "POP([1, 2])",
        [1],
    ),
    function(
        "SHIFT(list)",
        (LIST,),
        lambda items: items[1:],
        "The list without its first item; FIRST tells that one.",
        "SHIFT([1, 2])",
        [2],
    ),
    function(
        "INSERTAT(list, index, value)",
        (LIST, WHOLE, ANY),
        _insert,
        "The list with the value at this index.",
        "INSERTAT([1, 3], 1, 2)",
        [1, 2, 3],
    ),
    function(
        "REMOVEAT(list, index)",
        (LIST, WHOLE),
        _remove_at,
        "The list without the item at this index.",
        "REMOVEAT([1, 2], 0)",
        [2],
    ),
    function(
        "REMOVE(group, value)",
        (ANY, ANY),
        _remove,
        "The list without this value, or the map without this key.",
        "REMOVE([1, 2, 1], 1)",
        [2],
    ),
    function(
        "PUT(map, key, value)",
        (ANY, ANY, ANY),
        _put,
        "The map with the value under this key.",
        'PUT({"a": 1}, "b", 2)',
        {"a": 1, "b": 2},
    ),
    function(
        "SLICE(value, from, [to])",
        (SERIES, WHOLE, WHOLE),
        _slice,
        "The part from this index to before that one, from 0; negative ones count from the end.",
        "SLICE([1, 2, 3, 4], 1, 3)",
        [2, 3],
        fewest=2,
    ),
    function(
        "SORT(list, [member], [order])",
        (LIST, TEXT, TEXT),
        _sorted,
        'In order: numbers by value, then texts; rows by a member; backwards with "DESC".',
        'SORT([10, 9, 8.5], "DESC")',
        [10, 9, 8.5],
        fewest=1,
    ),
    *also(
        function(
            "UNIQUE(list, [member])",
            (LIST, TEXT),
            _unique,
            "Every value once, or every row with another value of the member.",
            "UNIQUE([1, 2, 1])",
            [1, 2],
            fewest=1,
        ),
        "distinct",
    ),
    function(
        "FLATTEN(list)",
        (LIST,),
        _flattened,
        "With the items of its lists in their place.",
        "FLATTEN([1, [2, 3]])",
        [1, 2, 3],
    ),
    function(
        "RANGE([first], last, [step])",
        (NUMBER, NUMBER, NUMBER),
        _range,
        "The numbers from the first (1) to the last, both included.",
        "RANGE(1, 4)",
        [1, 2, 3, 4],
        fewest=1,
    ),
)

CHANGING = frozenset(
    {
        "push",
        "append",
        "unshift",
        "prepend",
        "pop",
        "shift",
        "insertat",
        "removeat",
        "remove",
        "put",
        "sort",
        "shuffle",
        "reverse",
    }
)
"""Functions that, written as a statement, put what they give into the variable that is their first argument."""
