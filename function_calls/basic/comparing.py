"""Whether values are the same, which comes first, and what fits a pattern."""

from __future__ import annotations

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, is_null, kind_of, same_number, text_of
from function_calls.basic.measuring import LARGEST, size_of, too_large
from services.json_values import JsonValue

_LONGEST_PATTERN = 1000
_ANY_NUMBER = "*%"
_ANY_ONE = "?_"
_TRUTHS = {"true": True, "false": False}


def same(left: JsonValue, right: JsonValue) -> bool:
    """`left = right`. Texts are compared as they are written. A number and a text that writes one are compared as
    numbers, TRUE and FALSE with the texts `true` and `false` too. NULL is the same as an empty text or list."""
    if type(left) is str and type(right) is str:
        return left == right
    if is_null(left) or is_null(right):
        return (is_null(left) or left == "") and (is_null(right) or right == "")
    if type(left) in (list, dict) or type(right) in (list, dict):
        return _same_inside(left, right)
    if type(left) is bool and type(right) is str:
        left, right = right, left
    if type(left) is str and type(right) is bool and left.lower() in _TRUTHS:
        return _TRUTHS[left.lower()] is right
    first, second = as_number(left), as_number(right)
    return first is not None and second is not None and same_number(first, second)


def order(left: JsonValue, right: JsonValue) -> int:
    """Below 0 when `left` comes before `right`, above 0 when behind it, 0 where neither does. Numbers, and texts that
    write numbers, by their value; other texts character by character, so dates by time; NULL is 0 or the empty text.
    Raises RunFault (WRONG_TYPE) for what has no order."""
    if left is None:
        left = "" if type(right) is str else 0
    if right is None:
        right = "" if type(left) is str else 0
    first, second = as_number(left), as_number(right)
    if first is not None and second is not None:
        return 0 if same_number(first, second) else (-1 if first < second else 1)
    if type(left) is str and type(right) is str:
        return 0 if left == right else (-1 if left < right else 1)
    raise RunFault(RunCode.WRONG_TYPE, f"{kind_of(left)} and {kind_of(right)} cannot be put in order")


def is_in(value: JsonValue, group: JsonValue) -> bool:
    """`value IN group`: whether a list has an item that is the same, a map this key, a text this part; nothing is in
    NULL. Raises RunFault (WRONG_TYPE)."""
    if type(group) is list:
        return any(same(value, item) for item in group)
    if group is None:
        return False
    if type(value) in (list, dict) or type(group) not in (dict, str):
        raise RunFault(RunCode.WRONG_TYPE, f"IN asks for {kind_of(value)} in {kind_of(group)}; it needs a list")
    return text_of(value) in group


def is_like(value: JsonValue, pattern: JsonValue) -> bool:
    """`value LIKE pattern`: `*` and `%` are any characters or none, `?` and `_` are one, capitals do not matter. NULL
    fits nothing but `*`. Time grows with both lengths, whatever the pattern. Raises RunFault."""
    if type(pattern) is not str or type(value) in (list, dict):
        raise RunFault(RunCode.WRONG_TYPE, f"LIKE compares a text with a pattern, not {kind_of(value)}")
    if len(pattern) > _LONGEST_PATTERN:
        raise RunFault(RunCode.BAD_VALUE, f"a pattern for LIKE has {_LONGEST_PATTERN:,} characters at the most")
    return _fits(text_of(value).lower(), pattern.lower())


def _same_inside(left: JsonValue, right: JsonValue) -> bool:
    if type(left) is not type(right) or len(left) != len(right):
        return False
    if size_of(left) > LARGEST or size_of(right) > LARGEST:  # and neither is too deep to be walked
        raise too_large("what is compared")
    return bool(left == right)


def _fits(text: str, pattern: str) -> bool:
    """All places of the pattern that may be reached are kept as the bits of one number."""
    stays, any_one, of = 0, 0, dict[str, int]()
    place = 0
    for character in pattern:
        if character in _ANY_NUMBER:
            stays |= 1 << place
            continue
        if character in _ANY_ONE:
            any_one |= 1 << place
        else:
            of[character] = of.get(character, 0) | 1 << place
        place += 1
    reached = 1
    for character in text:
        reached = ((reached & (of.get(character, 0) | any_one)) << 1) | (reached & stays)
        if not reached:
            return False
    return bool(reached >> place & 1)
