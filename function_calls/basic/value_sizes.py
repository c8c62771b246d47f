"""Sizes of values, and limits on new values."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from services.refs import JsonValue

LARGEST = 8 * 1024 * 1024
"""Bytes of one value, as counted by `size_of`. Settings limit the total of a run's values."""
MOST_ITEMS = 200_000
"""Limit on lists created by functions."""
DEEPEST = 100
"""Nesting depth of lists and maps."""

_TEXT = 56
_SCALAR = 32
_LIST = 64
_SLOT = 8
_MAP = 64
_ENTRY = 96


def shallow_size(value: JsonValue) -> int:
    """Approximate bytes of the value without the contents of its items, in constant time.

    A run that sums this for every new value, and measures with `size_of` only when the sum has grown by the free
    amount, spends no more time on measuring than on creating values."""
    if type(value) is str:
        return _text_size(value)
    if type(value) is list:
        return _LIST + _SLOT * len(value)
    if type(value) is dict:
        return _MAP + _ENTRY * len(value)
    return _SCALAR


def size_of(value: JsonValue, most: int = LARGEST) -> int:
    """Approximate bytes of the value with all its contents, as if nothing in it were shared. Stops counting soon after
    `most`. Raises RunError (MEMORY) for values nested too deep to be serialized."""
    total = shallow_size(value)
    level = [value] if type(value) is list or type(value) is dict else []
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RunError(RunCode.MEMORY, f"lists and maps are nested more than {DEEPEST} deep")
        below: list[JsonValue] = []
        for container in level:
            total += _items_size(container, below)
            if total >= most:
                return total
        level = below
    return total


def check_size(value: JsonValue, what: str = "the value") -> None:
    """Raises RunError (MEMORY) if the value exceeds the limit."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large(what)


def check_length(characters: int, what: str) -> None:
    """Raises RunError (MEMORY) if a text of this length would exceed the limit."""
    if characters > LARGEST:
        raise too_large(what)


def check_count(items: int, what: str) -> None:
    """Raises RunError (MEMORY) if a list of this length would exceed the limit."""
    if items > MOST_ITEMS:
        raise RunError(RunCode.MEMORY, f"{what} would have more than {MOST_ITEMS:,} items")


def too_large(what: str) -> RunError:
    """The error for a value over the size limit."""
    return RunError(RunCode.MEMORY, f"{what} would be larger than {LARGEST // (1024 * 1024)} MB")


def _text_size(text: str) -> int:
    return _TEXT + (len(text) if text.isascii() else 4 * len(text))


def _items_size(container: JsonValue, below: list[JsonValue]) -> int:
    """Size of the container's items; lists and maps among them are appended to `below`."""
    total = 0
    if type(container) is dict:
        items = container.values()
        for key in container:
            total += _text_size(key)
    else:
        items = container
    for item in items:
        kind = type(item)
        if kind is str:
            total += _text_size(item)
        elif kind is list or kind is dict:
            total += shallow_size(item)
            below.append(item)
        else:
            total += _SCALAR
    return total
