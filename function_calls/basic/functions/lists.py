"""Functions of lists and maps."""

from __future__ import annotations

import json
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.functions.declaration import (
    ANY,
    GROUP,
    LIST,
    NUMBER,
    TEXT,
    Group,
    LanguageFunction,
    Series,
    function,
)
from function_calls.basic.value_sizes import check_count, check_size
from function_calls.basic.values import (
    abbreviated,
    as_number,
    finder,
    is_in,
    is_null,
    kind_of,
    member,
    normalized_number,
    order,
    set_item,
    text_of,
)
from services.refs import JsonValue
from services.scripts.values import as_amount, mark_of


def _end(value: JsonValue, place: int) -> JsonValue:
    """First (`place` 0) or last (-1) item of a list, NULL if it is empty; for a text, its first or last word, or an
    empty text. Raises RunError for a map."""
    if type(value) is dict:
        raise RunError(RunCode.WRONG_TYPE, "FIRST and LAST need a list or a text, not a map")
    if type(value) is list:
        return value[place] if value else None
    words = text_of(value).split(None, 1) if place == 0 else text_of(value).rsplit(None, 1)
    return words[place] if words else ""


def _part(value: JsonValue, count: JsonValue, place: int) -> JsonValue:
    """The first (`place` 0) or last `count` items or words; if `count` is a name, that member of the first or last
    item, or NULL if the item is not a map. Raises RunError for a map, or a negative or fractional count."""
    number = as_number(count)
    if number is None:
        item = _end(value, place)
        return member(item, text_of(count)) if type(item) is dict else None
    if number < 0 or number != int(number):
        raise RunError(RunCode.BAD_VALUE, f"FIRST and LAST need a whole number of items, not {text_of(count)}")
    if type(value) is dict:
        raise RunError(RunCode.WRONG_TYPE, "FIRST and LAST need a list or a text, not a map")
    items = value if type(value) is list else text_of(value).split()
    most = int(number)
    return items[:most] if place == 0 else items[len(items) - min(most, len(items)) :]


def _numbers(items: list[Any], name: str | None, what: str) -> list[int | float]:
    """Numbers of a list, or of the member `name` of its rows. NULL and empty texts are skipped. Raises RunError for
    other values, and for a column that no row has; `what` is the function named in the message."""
    values = items if name is None else column(items, name)
    if name is not None:
        _check_column(items, values, name)
    numbers, mark = [], mark_of(values)
    where = "" if name is None else f" in the column {name!r}"
    for place, value in enumerate(values):
        if is_null(value) or value == "":
            continue
        number = as_amount(value, mark) if type(value) is str else as_number(value)
        if number is None:
            raise RunError(RunCode.WRONG_TYPE, f"{what} needs numbers; item {place}{where} is {kind_of(value)}")
        numbers.append(number)
    return numbers


def _check_column(items: list[Any], values: list[Any], name: str) -> None:
    """Raise RunError for a column that no row has; otherwise a typo would look like an empty column."""
    rows = [item for item in items if type(item) is dict]
    if not rows or not all(map(is_null, values)) or any(_has_key(row, name) for row in rows):
        return
    known = ", ".join(abbreviated(tuple(dict.fromkeys(key for row in rows for key in row))))
    raise RunError(RunCode.BAD_VALUE, f"no row has a column {name!r}; the columns are: {known}")


def _total(numbers: list[int | float]) -> int | float:
    try:
        return normalized_number(sum(numbers))
    except OverflowError:
        raise RunError(RunCode.BAD_VALUE, "the number is too large") from None


def _compared(values: tuple[JsonValue, ...], name: str) -> list[Any]:
    """The values to compare, without NULL: the arguments, the items of a single list, or a member of its rows; as
    numbers if all are amounts. Raises RunError for a list or a map among them."""
    if type(values[0]) is list and len(values) == 2 and type(values[1]) is str:
        items = column(values[0], values[1])
        _check_column(values[0], items, values[1])
        values = tuple(items)
    elif type(values[0]) is list and len(values) == 1:
        values = tuple(values[0])
    kept = [value for value in values if not is_null(value)]
    if any(type(value) is str and value and as_number(value) is None for value in kept):
        mark = mark_of(kept)
        numbers = [as_amount(value, mark) for value in kept if value != ""]
        if None not in numbers:
            return numbers
    for value in kept:
        if type(value) in (list, dict):
            raise RunError(RunCode.WRONG_TYPE, f"{name} compares numbers or texts, not {kind_of(value)}")
    return kept


LISTS: list[LanguageFunction] = []


def _extreme(name: str, sign: int, about: str, example: str, gives: int) -> None:
    @function(LISTS, f"{name}(value, …)", example, gives, about=about)
    def _(*values: JsonValue) -> JsonValue:
        found: JsonValue = None
        for value in _compared(values, name):
            if found is None or sign * order(value, found) > 0:
                found = value
        return found


@function(LISTS, "COUNT(group, [value])", "COUNT([4, 5, 4], 4)", 2, takes=(GROUP, ANY), fewest=1)
def _count(group: JsonValue, *value: JsonValue) -> JsonValue:
    """The number of items of a list or map, or how often a value occurs in it."""
    if not value:
        return len(group)
    if type(group) is str:
        part = text_of(value[0])
        return group.count(part) if part else 0
    return sum(map(finder(value[0], group), group)) if type(group) is list else int(is_in(value[0], group))


@function(LISTS, "UBOUND(list, [dimension])", 'UBOUND(SPLIT("2+2", "+"))', 2)
def _ubound(items: Group, dimension: int = 1) -> JsonValue:
    """The number of items of the list; the index of the last one is UBOUND - 1."""
    return len(items)


@function(LISTS, "LBOUND(list, [dimension])", "LBOUND([7])", 0)
def _lbound(items: Group, dimension: int = 1) -> JsonValue:
    """Always 0."""
    return 0


@function(LISTS, "FIRST(value[, count])", "FIRST([7, 8])", 7)
def _first(value: JsonValue, count: JsonValue = None) -> JsonValue:
    """The first item of a list (NULL if empty) or word of a text. With a count, a list of the first ones."""
    return _end(value, 0) if count is None else _part(value, count, 0)


@function(LISTS, "LAST(value[, count])", "LAST([7, 8])", 8)
def _last(value: JsonValue, count: JsonValue = None) -> JsonValue:
    """The last item of a list (NULL if empty) or word of a text. With a count, a list of the last ones."""
    return _end(value, -1) if count is None else _part(value, count, -1)


@function(LISTS, "INDEXOF(list, value)", 'INDEXOF(["a", "b"], "b")', 1)
def _index_of(series: Series, value: JsonValue) -> JsonValue:
    """The index of the value, from 0; -1 if the list does not contain it."""
    if isinstance(series, str):
        return series.find(text_of(value))
    found = finder(value, series)
    return next((place for place, item in enumerate(series) if found(item)), -1)


@function(LISTS, "SUM(list, [member])", 'SUM([{"price": 2}, {"price": 3}], "price")', 5)
def _sum(items: list[Any], name: str | None = None) -> JsonValue:
    """The sum of the numbers, or of a column of the rows."""
    return _total(_numbers(items, name, "SUM"))


@function(LISTS, "AVG(list, [member])", "AVG([1, 2, 6])", 3, also=("average", "mean"))
def _average(items: list[Any], name: str | None = None) -> JsonValue:
    """The mean, or NULL for an empty list."""
    numbers = _numbers(items, name, "AVG")
    if not numbers:
        return None
    total = _total(numbers)
    return total // len(numbers) if type(total) is int and not total % len(numbers) else total / len(numbers)


@function(LISTS, "MEDIAN(list, [member])", "MEDIAN([1, 2, 6])", 2)
def _median(items: list[Any], name: str | None = None) -> JsonValue:
    """The median of the numbers."""
    numbers = sorted(_numbers(items, name, "MEDIAN"))
    half = len(numbers) // 2
    if not numbers:
        return None
    return numbers[half] if len(numbers) % 2 else _average([numbers[half - 1], numbers[half]])


_extreme("MIN", -1, "The smallest of the values, or of the items of a list.", "MIN([3, 1, 2])", 1)
_extreme("MAX", 1, "The largest of the values, or of the items of a list.", "MAX(3, 1, 2)", 3)


@function(
    LISTS, "COLUMN(rows, member)", 'COLUMN([{"name": "Ann"}, {"name": "Bo"}], "name")', ["Ann", "Bo"], also=("pluck",)
)
def column(items: list[Any], name: str) -> list[Any]:
    """The values of a column, one for each row.

    This member of each row. Raises RunError for an item that has no members."""
    return [member(item, name) for item in items]


@function(LISTS, "KEYS(map)", 'KEYS({"a": 1})', ["a"])
def _keys(of: dict[str, Any]) -> JsonValue:
    """The keys of a map."""
    return list(of)


@function(LISTS, "VALUES(map)", 'VALUES({"a": 1})', [1])
def _values(of: dict[str, Any]) -> JsonValue:
    """The values of a map."""
    return list(of.values())


@function(LISTS, "HASKEY(map, key)", 'HASKEY({"a": 1}, "A")', True)
def _has_key(of: dict[str, Any], name: str) -> JsonValue:
    """Whether the map has this key, ignoring case."""
    return name in of or any(key.lower() == name.lower() for key in of)


def _items(value: JsonValue, name: str) -> list[Any]:
    if value is None:
        return []
    if type(value) is not list:
        raise RunError(RunCode.WRONG_TYPE, f"{name} needs a list as its first argument, not {kind_of(value)}")
    return value


def _rank(value: JsonValue) -> tuple[int, int | float, str, str]:
    """Sort key: numbers, then texts ignoring case, then lists and maps, then NULL."""
    number = as_number(value)
    if number is not None:
        return 0, number, "", ""
    if value is None:
        return 3, 0, "", ""
    text = text_of(value)
    return (1 if type(value) is str else 2), 0, text.lower(), text


def _mark(value: JsonValue) -> str:
    """Comparison key of a value: equal for 1 and 1.0, and for maps regardless of key order."""
    text = text_of(value)
    return json.dumps(json.loads(text), sort_keys=True) if type(value) in (list, dict) else f"{value is None}{text}"


@function(LISTS, "PUSH(list, value, …)", "PUSH([1], 2)", [1, 2], also=("append",))
def _push(items: JsonValue, *values: JsonValue) -> JsonValue:
    """The list with the values appended."""
    held = _items(items, "PUSH")
    check_count(len(held) + len(values), "the list")
    return [*held, *values]


@function(LISTS, "UNSHIFT(list, value, …)", "UNSHIFT([1], 2)", [2, 1], also=("prepend",))
def _prepend(items: JsonValue, *values: JsonValue) -> JsonValue:
    """The list with the values inserted at its start."""
    held = _items(items, "UNSHIFT")
    check_count(len(held) + len(values), "the list")
    return [*values, *held]


@function(LISTS, "POP(list)", "POP([1, 2])", [1])
def _pop(items: list[Any]) -> JsonValue:
    """The list without its last item; LAST returns that item."""
    return items[:-1]


@function(LISTS, "SHIFT(list)", "SHIFT([1, 2])", [2])
def _shift(items: list[Any]) -> JsonValue:
    """The list without its first item; FIRST returns that item."""
    return items[1:]


@function(LISTS, "INSERTAT(list, index, value)", "INSERTAT([1, 3], 1, 2)", [1, 2, 3])
def _insert(items: list[Any], index: int, value: JsonValue) -> JsonValue:
    """The list with the value inserted at this index."""
    check_count(len(items) + 1, "the list")
    if not 0 <= index <= len(items):
        raise RunError(
            RunCode.NO_SUCH_INDEX, f"INSERTAT: no index {index}; the list has {len(items)} items, counted from 0"
        )
    return [*items[:index], value, *items[index:]]


@function(LISTS, "REMOVEAT(list, index)", "REMOVEAT([1, 2], 0)", [2])
def _remove_at(items: list[Any], index: int) -> JsonValue:
    """The list without the item at this index."""
    if not 0 <= index < len(items):
        raise RunError(RunCode.NO_SUCH_INDEX, f"no item {index}: the list has {len(items)} items, counted from 0")
    return [*items[:index], *items[index + 1 :]]


@function(LISTS, "REMOVE(group, value)", "REMOVE([1, 2, 1], 1)", [2])
def _remove(group: JsonValue, value: JsonValue) -> JsonValue:
    """The list without every item equal to this value, or the map without this key."""
    if type(group) is dict:
        key = text_of(value)
        return {name: item for name, item in group.items() if name != key}
    items = _items(group, "REMOVE")
    found = finder(value, items)
    return [item for item in items if not found(item)]


@function(LISTS, "PUT(map, key, value)", 'PUT({"a": 1}, "b", 2)', {"a": 1, "b": 2})
def _put(group: JsonValue, key: JsonValue, value: JsonValue) -> JsonValue:
    """The map with this key set to the value."""
    return set_item({} if group is None or group == [] else group, key, value)


@function(LISTS, "SLICE(value, from, [to])", "SLICE([1, 2, 3, 4], 1, 3)", [2, 3])
def _slice(series: Series, start: int, end: int | None = None) -> JsonValue:
    """The part from an index, counted from 0, to before another; negative indexes count from the end."""
    return series[start:end]


@function(
    LISTS,
    "SORT(list, [member], [order])",
    'SORT([10, 9, 8.5], "DESC")',
    [10, 9, 8.5],
    takes=(LIST, TEXT, TEXT),
    fewest=1,
)
def _sorted(items: list[Any], *how: str) -> JsonValue:
    """The sorted list: numbers by value, then texts; rows by a column; in descending order with "DESC".

    SORT(list) or SORT(rows, "price"), each with an optional "DESC": a new list. Raises RunError if an item of rows
    has no members, or the values are too large."""
    words = list(how)
    backwards = bool(words) and words[-1].strip().lower() in ("desc", "descending")
    if words and words[-1].strip().lower() in ("desc", "descending", "asc", "ascending"):
        words.pop()
    values = column(items, words[0]) if words else items
    check_size(values, "the values for SORT")
    places = sorted(range(len(items)), key=[_rank(value) for value in values].__getitem__, reverse=backwards)
    return [items[place] for place in places]


@function(LISTS, "UNIQUE(list, [member])", "UNIQUE([1, 2, 1])", [1, 2], also=("distinct",))
def _unique(items: list[Any], name: str | None = None) -> JsonValue:
    """The list without duplicates; for rows, the first one for each value of the column."""
    values = items if name is None else column(items, name)
    check_size(values, "the values for UNIQUE")
    kept, seen = [], set()
    for item, value in zip(items, values, strict=True):
        mark = (type(value) is str, value if type(value) is str else _mark(value))
        if mark not in seen:
            seen.add(mark)
            kept.append(item)
    return kept


@function(LISTS, "FLATTEN(list)", "FLATTEN([1, [2, 3]])", [1, 2, 3])
def _flattened(items: list[Any]) -> JsonValue:
    """The list with nested lists replaced by their items."""
    check_count(sum(len(item) if type(item) is list else 1 for item in items), "the list")
    return [inner for item in items for inner in (item if type(item) is list else [item])]


@function(LISTS, "RANGE([first], last, [step])", "RANGE(1, 4)", [1, 2, 3, 4], takes=(NUMBER, NUMBER, NUMBER), fewest=1)
def _range(one: int | float, *others: int | float) -> JsonValue:
    """The numbers from first (default 1) to last, both included."""
    first, last = (one, others[0]) if others else (1, one)
    step = others[1] if len(others) > 1 else (1 if first <= last else -1)
    if not step:
        raise RunError(RunCode.BAD_VALUE, "RANGE needs a step other than 0")
    if (last - first) / step < 0:
        return []
    steps = (last - first) / step
    check_count(int(min(steps, 1e9)) + 1, "the result of RANGE")
    return [normalized_number(first + place * step) for place in range(int(steps + 1e-9) + 1)]


CHANGING = frozenset((
    "push", "append", "unshift", "prepend", "pop", "shift", "insertat", "removeat", "remove", "put", "sort", "shuffle",
    "reverse",
))  # fmt: skip
"""Functions that, used as a statement, assign their result to the variable passed as first argument."""
