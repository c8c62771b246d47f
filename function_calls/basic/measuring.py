"""Size of values, and limits on what may be created."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunError
from services.refs import JsonValue

LARGEST = 8 * 1024 * 1024
"""Bytes of one value, as `size_of` counts them. What all values of a run may hold together is up to its settings."""
MOST_ITEMS = 200_000
"""Of a list that a function makes."""
DEEPEST = 100
"""Lists and maps within one another."""

_TEXT = 56
_SCALAR = 32
_LIST = 64
_SLOT = 8
_MAP = 64
_ENTRY = 96


def shallow_size(value: JsonValue) -> int:
    """About how many bytes the value itself takes, without what its items hold; at once, however long it is.

    A run that adds this up for every value that is made, and measures with `size_of` only when the sum has grown by as
    much as there is room for, spends no more on measuring than on making."""
    if type(value) is str:
        return _text_size(value)
    if type(value) is list:
        return _LIST + _SLOT * len(value)
    if type(value) is dict:
        return _MAP + _ENTRY * len(value)
    return _SCALAR


def size_of(value: JsonValue, most: int = LARGEST) -> int:
    """About how many bytes the value takes with everything in it, as if nothing in it were shared. Stops counting soon
    after `most`. Raises RunError (MEMORY) for what is nested too deep to be written down."""
    total = shallow_size(value)
    level = [value] if type(value) is list or type(value) is dict else []
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RunError(RunCode.MEMORY, f"lists and maps stand more than {DEEPEST} deep within one another")
        below: list[JsonValue] = []
        for container in level:
            total += _items_size(container, below)
            if total >= most:
                return total
        level = below
    return total


def check_size(value: JsonValue, what: str = "the value") -> None:
    """Raises RunError (MEMORY) for a value that is larger than one may be."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large(what)


def check_length(characters: int, what: str) -> None:
    """Raises RunError (MEMORY) where a text would get so many characters and that is too many."""
    if characters > LARGEST:
        raise too_large(what)


def check_count(items: int, what: str) -> None:
    """Raises RunError (MEMORY) where a list would get so many items and that is too many."""
    if items > MOST_ITEMS:
        raise RunError(RunCode.MEMORY, f"{what} would have more than {MOST_ITEMS:,} items")


def too_large(what: str) -> RunError:
    """The fault for what would be larger than a value may be."""
    return RunError(RunCode.MEMORY, f"{what} would be larger than {LARGEST // (1024 * 1024)} MB")


def _text_size(text: str) -> int:
    return _TEXT + (len(text) if text.isascii() else 4 * len(text))


def _items_size(container: JsonValue, below: list[JsonValue]) -> int:
    """Of what stands in it; lists and maps in it are put to `below`."""
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
