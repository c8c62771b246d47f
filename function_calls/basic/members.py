"""Members of maps, items of lists, and what a FOR EACH goes over. Values are never changed: a changed one is a new one,
whose other items are the old ones."""

from __future__ import annotations

from typing import Any

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, kind_of, text_of
from function_calls.basic.measuring import check_count
from services.json_values import JsonObject, JsonValue

_COUNTS = frozenset({"length", "count", "size"})


def member(of: JsonValue, name: str) -> JsonValue:
    """`of.name`: what stands in the map under this name, as written or else in other letter case; NULL where nothing
    does. Of a list it is the member of its first item, NULL when the list is empty; of NULL it is NULL. `.length`,
    `.count` and `.size` are those of a list or text where it has no such member. Raises RunFault (WRONG_TYPE)."""
    if type(of) is dict:
        if name in of:
            return of[name]
        key = _key_like(of, name)
        return None if key is None else of[key]
    if of is None:
        return None
    if type(of) is list:
        first = of[0] if of else None
        if name.lower() in _COUNTS and not (type(first) is dict and _key_like(first, name) is not None):
            return len(of)
        return member(first, name) if first is None or type(first) is dict else _no_member(first, name)
    if type(of) is str and name.lower() in _COUNTS:
        return len(of)
    return _no_member(of, name)


def item(of: JsonValue, index: JsonValue) -> JsonValue:
    """`of[index]`: the item of a list or the character of a text, from 0; what a map has under this key, else NULL. A
    name as the index of a list asks its first item. Of NULL it is NULL. Raises RunFault (NO_SUCH_INDEX, WRONG_TYPE)."""
    if type(of) is dict:
        return of.get(index if type(index) is str else text_of(index))
    if of is None:
        return None
    if type(of) is list or type(of) is str:
        if type(of) is list and type(index) is str and as_number(index) is None:
            return member(of, index)
        return of[_place(index, len(of), "text" if type(of) is str else "list")]
    raise RunFault(RunCode.WRONG_TYPE, f"only lists, maps and texts have items; this is {kind_of(of)}")


def set_member(of: JsonValue, name: str, value: JsonValue) -> JsonValue:
    """`of` with `value` under this name: of a map, of the first item of a list, a new map for NULL and the empty list.
    Raises RunFault (WRONG_TYPE)."""
    if type(of) is dict:
        key = name if name in of else _key_like(of, name) or name
        return {**of, key: value}
    if of is None or (type(of) is list and not of):
        return {name: value}
    if type(of) is list and (of[0] is None or type(of[0]) is dict):
        return [set_member(of[0], name, value), *of[1:]]
    raise RunFault(RunCode.WRONG_TYPE, f"only a map takes `.{name} =`; this is {kind_of(of)}")


def set_item(of: JsonValue, index: JsonValue, value: JsonValue) -> JsonValue:
    """`of` with `value` there. A list grows as far as the index, with NULLs between; NULL and the empty list become a
    map where the index is a name. Raises RunFault (NO_SUCH_INDEX, WRONG_TYPE, MEMORY)."""
    named = type(index) is str and as_number(index) is None
    if type(of) is dict:
        return {**of, (index if type(index) is str else text_of(index)): value}
    if of is None or type(of) is list:
        if named:
            return set_member(of, str(index), value)
        return _with_item(of or [], index, value)
    raise RunFault(RunCode.WRONG_TYPE, f"only lists and maps take `[…] =`; this is {kind_of(of)}")


def items_of(value: JsonValue) -> list[Any]:
    """What FOR EACH goes over: the items of a list, the keys of a map, the characters of a text, nothing for NULL.
    Raises RunFault (WRONG_TYPE, MEMORY). The list is not to be changed."""
    if type(value) is list:
        return value
    if value is None:
        return []
    if type(value) is dict or type(value) is str:
        check_count(len(value), "what FOR EACH goes over")
        return list(value)
    raise RunFault(RunCode.WRONG_TYPE, f"FOR EACH goes over a list, a map or a text, not {kind_of(value)}")


def _key_like(of: JsonObject, name: str) -> str | None:
    """The key that differs from the name in letter case alone, or not at all."""
    if name in of:
        return name
    wanted = name.lower()
    return next((key for key in of if len(key) == len(name) and key.lower() == wanted), None)


def _no_member(of: JsonValue, name: str) -> JsonValue:
    raise RunFault(RunCode.WRONG_TYPE, f"only a map has members such as `.{name}`; this is {kind_of(of)}")


def _place(index: JsonValue, count: int, what: str) -> int:
    place = _whole(index)
    if 0 <= place < count:
        return place
    if place < 0:
        raise RunFault(RunCode.NO_SUCH_INDEX, f"there is no item {place}: they are counted from 0")
    last = f"the last one of this {what} is {count - 1}" if count else f"this {what} is empty"
    raise RunFault(RunCode.NO_SUCH_INDEX, f"there is no item {place}: {last}")


def _with_item(items: list[Any], index: JsonValue, value: JsonValue) -> list[Any]:
    place = _whole(index)
    if place < 0:
        raise RunFault(RunCode.NO_SUCH_INDEX, f"there is no item {place}: they are counted from 0")
    if place < len(items):
        changed = items.copy()
        changed[place] = value
        return changed
    check_count(place + 1, "the list")
    return [*items, *[None] * (place - len(items)), value]


def _whole(index: JsonValue) -> int:
    number = as_number(index)
    if number is None:
        raise RunFault(RunCode.WRONG_TYPE, f"an index is a number, not {kind_of(index)}")
    if number != int(number):
        raise RunFault(RunCode.NO_SUCH_INDEX, f"there is no item {text_of(number)}: an index is a whole number")
    return int(number)
