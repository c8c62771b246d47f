"""Operations on values: operators, conversions, members, comparison. Values are immutable."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from function_calls.basic.codes import RunCode, RunError
from function_calls.basic.date_texts import days_later, read_plain
from function_calls.basic.value_sizes import (
    LARGEST,
    check_count,
    check_length,
    check_size,
    size_of,
    too_large,
)
from services.refs import JsonObject, JsonValue

_SHOWN_WORDS = 8

_LARGEST_INT = 2**63 - 1
_SMALLEST_INT = -(2**63)
_LONGEST_NUMBER = 100
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
_MOST_WHOLE = 1e15
_LEAST_PLAIN = 1e-9
_DIGITS_SHOWN = 15


def kind_of(value: JsonValue) -> str:
    """The value's type in plain words for authors. Never the value itself, which may be from a stranger."""
    if value is None:
        return "nothing (NULL)"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    return "a list" if isinstance(value, list) else "a map"


def truth(value: JsonValue) -> bool:
    """Truth value: false for NULL, 0, an empty text, list or map. The texts `false` and `0` are false as well, because
    tables and settings store all values as texts."""
    if isinstance(value, str):
        return value.lower() not in ("", "0", "false")
    return bool(value)


def is_null(value: JsonValue) -> bool:
    """Whether the value is NULL, or an empty list, such as a search without results."""
    return value is None or (type(value) is list and not value)


def text_of(value: JsonValue) -> str:
    """Text form: NULL is the empty text, numbers have up to 15 digits and no needless `.0`, lists and maps are JSON.
    Raises RunError (MEMORY) if the text would be too long."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        number = normalized_number(value)
        return str(number) if type(number) is int else _float_text(number)
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the text")
    return json.dumps(_tidy(value), ensure_ascii=False)


def as_number(value: JsonValue) -> int | float | None:
    """The number, or the number a text spells (`12`, ` -3.5 `, `1,234.56`, `1e3`); TRUE is 1. None for other values.
    Raises RunError for numbers that are too large."""
    kind = type(value)
    if kind is int or kind is float:
        return normalized_number(value)
    if kind is bool:
        return int(value)
    return _number_text(value) if kind is str else None


def number_of(value: JsonValue) -> int | float:
    """Like `as_number`, but NULL is 0, so that counters need no initial value. Raises RunError (WRONG_TYPE) for values
    that are no number."""
    number = 0 if value is None else as_number(value)
    if number is None:
        raise RunError(RunCode.WRONG_TYPE, f"expected a number, found {kind_of(value)}")
    return number


def normalized_number(number: int | float) -> int | float:
    """The number in its range for scripts: integers beyond 64 bits become floats. Raises RunError (BAD_VALUE) for NaN
    and for numbers that are too large."""
    if type(number) is int:
        if _SMALLEST_INT <= number <= _LARGEST_INT:
            return number
        if number.bit_length() > 1023:
            raise RunError(RunCode.BAD_VALUE, "the number is too large")
        return float(number)
    if math.isnan(number):
        raise RunError(RunCode.BAD_VALUE, "the result is not a number")
    if math.isinf(number):
        raise RunError(RunCode.BAD_VALUE, "the number is too large")
    return number


def whole_of(value: JsonValue, what: str) -> int:
    """The value as an integer, with fractions truncated. Raises RunError with `what` in the message."""
    number = as_number(value)
    if number is None:
        raise RunError(RunCode.WRONG_TYPE, f"{what} must be a number, not {kind_of(value)}")
    return int(number)


def normalized_value(value: JsonValue) -> JsonValue:
    """A JSON value from outside with numbers converted by `settled`; the same object if nothing changes. Raises
    RunError (MEMORY, BAD_VALUE) if it is too large, too deep, or contains an invalid number."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the value")
    return _normalized_inside(value)


def same_number(left: int | float, right: int | float) -> bool:
    """Whether the numbers are equal except for floating-point rounding: 0.1 + 0.2 equals 0.3."""
    if type(left) is int and type(right) is int:
        return left == right
    return left == right or math.isclose(left, right, rel_tol=1e-15, abs_tol=0.0)


def _normalized_inside(value: JsonValue) -> JsonValue:
    if type(value) is list:
        items = [_normalized_inside(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if type(value) is dict:
        entries = {key: _normalized_inside(item) for key, item in value.items()}
        return entries if any(entries[key] is not item for key, item in value.items()) else value
    return normalized_number(value) if type(value) is int or type(value) is float else value


def _number_text(text: str) -> int | float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    written = text.strip()
    if not written.isascii():
        written = unicodedata.normalize("NFKC", written)
    if not any(character.isdecimal() for character in written) or not _NUMBER.fullmatch(written):
        return None
    mantissa = re.split("[eE]", written, maxsplit=1)[0]
    if not any(character.isdecimal() for character in mantissa):
        return None
    plain = written.replace(",", "")
    if mantissa == written and "." not in plain:
        return normalized_number(int(plain))
    number = float(plain)
    return number if math.isfinite(number) else None


def _float_text(number: float) -> str:
    if number.is_integer() and abs(number) < _MOST_WHOLE:
        return str(int(number))
    short = format(number, f".{_DIGITS_SHOWN}g")
    if "e" in short and _LEAST_PLAIN <= abs(number) < _MOST_WHOLE:
        return format(Decimal(short), "f")
    return short


def _tidy(value: JsonValue) -> JsonValue:
    """Copy with numbers as they are displayed. The depth has been checked by the caller."""
    if type(value) is list:
        return [_tidy(item) for item in value]
    if type(value) is dict:
        return {key: _tidy(item) for key, item in value.items()}
    if type(value) is float:
        if value.is_integer() and abs(value) < _MOST_WHOLE:
            return int(value)
        return float(format(value, f".{_DIGITS_SHOWN}g"))
    return value


_LONGEST_PATTERN = 1000
_MOST_COMPARED = 1_000_000
_ANY_NUMBER = "*%"
_ANY_ONE = "?_"
_TRUTHS = {"true": True, "false": False}


def same(left: JsonValue, right: JsonValue) -> bool:
    """`left = right`. Texts are compared exactly. A number and a numeric text are compared as numbers, TRUE and FALSE
    also with the texts `true` and `false`. NULL equals the empty text and the empty list. Raises RunError if the values
    are too large."""
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
    """Negative if `left` sorts before `right`, positive if after, 0 if equal. Numbers and numeric texts are compared by
    value, other texts by character, so dates by time; NULL is 0 or the empty text. Raises RunError (WRONG_TYPE) for
    values without an order."""
    if left is None:
        left = "" if type(right) is str else 0
    if right is None:
        right = "" if type(left) is str else 0
    first, second = as_number(left), as_number(right)
    if first is not None and second is not None:
        return 0 if same_number(first, second) else (-1 if first < second else 1)
    if type(left) is str and type(right) is str:
        return 0 if left == right else (-1 if left < right else 1)
    raise RunError(RunCode.WRONG_TYPE, f"cannot compare {kind_of(left)} with {kind_of(right)}")


def is_in(value: JsonValue, group: JsonValue) -> bool:
    """`value IN group`: an equal item of a list, a key of a map, a substring of a text; always false for NULL. Raises
    RunError (WRONG_TYPE) for a list or map in a text or map, and for other groups."""
    if type(group) is list:
        return any(map(finder(value, group), group))
    if group is None:
        return False
    if type(value) in (list, dict) or type(group) not in (dict, str):
        raise RunError(RunCode.WRONG_TYPE, f"IN needs a list to search for {kind_of(value)}, not {kind_of(group)}")
    return text_of(value) in group


def finder(value: JsonValue, group: list[Any]) -> Callable[[JsonValue], bool]:
    """Predicate for items equal to `value`. Raises RunError (MEMORY) if comparing all items could take too long: a list
    may contain the same large list many times."""
    if type(value) in (list, dict):
        check_size(group, "the searched list")
    return partial(same, value)


def is_like(value: JsonValue, pattern: JsonValue) -> bool:
    """Whether `value LIKE pattern`: `*` and `%` match any characters, `?` and `_` match one; case-insensitive. NULL
    matches only `*`. Time is bounded by the product of both lengths for every pattern. Raises RunError for lists, maps,
    a pattern that is not a text, and a too long one."""
    if type(pattern) is not str or type(value) in (list, dict):
        raise RunError(RunCode.WRONG_TYPE, f"LIKE needs a text and a pattern, not {kind_of(value)}")
    if len(pattern) > _LONGEST_PATTERN:
        raise RunError(RunCode.BAD_VALUE, f"a pattern for LIKE may have at most {_LONGEST_PATTERN:,} characters")
    return _fits(text_of(value).lower(), pattern.lower())


def _same_inside(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are equal. Compares without recursion up to the first difference, since lists may be deeply
    nested. Raises RunError if they are too large."""
    pairs = [(left, right)]
    looked_at = 0
    while pairs:
        one, other = pairs.pop()
        if type(one) in (list, dict) or type(other) in (list, dict):
            if type(one) is not type(other) or len(one) != len(other):
                return False
            looked_at += len(one) + 1
            if looked_at > _MOST_COMPARED:
                raise RunError(RunCode.MEMORY, "the compared values are too large")
            if type(one) is list:
                pairs.extend(zip(one, other, strict=True))
            elif one.keys() == other.keys():
                pairs.extend((item, other[key]) for key, item in one.items())
            else:
                return False
        elif one != other:
            return False
    return True


def _fits(text: str, pattern: str) -> bool:
    """Whether the whole text matches the LIKE pattern. Keeps a bit set of all reachable positions in the pattern."""
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


_MOST_BITS = 1023


def negated(value: JsonValue) -> JsonValue:
    """`-value`. Raises RunError (WRONG_TYPE) for values that are no number."""
    return normalized_number(-_operand(value, "-"))


def added(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left + right`: adds numbers, concatenates if one side is a text, joins two lists. A date in the format of NOW or
    TODAY plus a number is that many days later. NULL is 0, the empty text or the empty list. Raises RunError."""
    if type(left) is int and type(right) is int:
        return normalized_number(left + right)
    if type(left) is str and type(right) is str:
        check_length(len(left) + len(right), "the text")
        return left + right
    if type(left) is str or type(right) is str:
        later = _moved(left, right, 1)
        return joined(left, right) if later is None else later
    if type(left) is list or type(right) is list:
        return _lists(left, right)
    return normalized_number(_operand(left, "+") + _operand(right, "+"))


def subtracted(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left - right` of numbers. A date minus a number is that many days earlier; two dates give the days between them.
    Raises RunError."""
    if type(left) is int and type(right) is int:
        return normalized_number(left - right)
    if type(left) is str:
        earlier = _moved(left, right, -1)
        if earlier is not None:
            return earlier
        last, first = read_plain(left), read_plain(right) if type(right) is str else None
        if last is not None and first is not None:
            days = (last.at - first.at).total_seconds() / 86_400
            return int(days) if days.is_integer() else days
    return normalized_number(_operand(left, "-") - _operand(right, "-"))


def joined(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left & right`: concatenates both as texts. Raises RunError (MEMORY)."""
    first, second = text_of(left), text_of(right)
    check_length(len(first) + len(second), "the text")
    return first + second


def _moved(date: JsonValue, days: JsonValue, sign: int) -> str | None:
    """The date moved by `sign * days`; None if it is not a date or `days` is not a number."""
    if type(date) is not str or (type(days) is not int and type(days) is not float):
        return None
    moment = read_plain(date)
    return None if moment is None else str(days_later(moment, sign * days))


def _lists(left: JsonValue, right: JsonValue) -> JsonValue:
    first = [] if left is None else left
    second = [] if right is None else right
    if type(first) is not list or type(second) is not list:
        raise RunError(
            RunCode.WRONG_TYPE,
            f"`+` cannot join {kind_of(left)} and {kind_of(right)}; use PUSH to add one value to a list",
        )
    check_count(len(first) + len(second), "the list")
    return first + second


def _operand(value: JsonValue, operator: str) -> int | float:
    number = 0 if value is None else as_number(value)
    if number is None:
        hint = "; use DATEADD and DATEDIFF for dates" if type(value) is str and value[:4].isdecimal() else ""
        raise RunError(RunCode.WRONG_TYPE, f"`{operator}` needs numbers, not {kind_of(value)}{hint}")
    return number


def _reckoned(operator: str, reckon: Callable[[int | float, int | float], int | float]) -> Callable[..., JsonValue]:
    def run(left: JsonValue, right: JsonValue) -> JsonValue:
        if type(left) is not int or type(right) is not int:
            left, right = _operand(left, operator), _operand(right, operator)
        try:
            return normalized_number(reckon(left, right))
        except OverflowError:
            raise RunError(RunCode.BAD_VALUE, "the number is too large") from None

    return run


def _quotient(left: int | float, right: int | float) -> int | float:
    _refuse_zero(right)
    if type(left) is int and type(right) is int and not left % right:
        return left // right
    return left / right


def _whole_quotient(left: int | float, right: int | float) -> int | float:
    _refuse_zero(right)
    if type(left) is int and type(right) is int:
        return _cut(left, right)
    return math.trunc(normalized_number(left / right))


def _remainder(left: int | float, right: int | float) -> int | float:
    """Remainder of the division, with the sign of the left side, as in traditional BASIC. Raises RunError if `right` is
    0."""
    _refuse_zero(right)
    if type(left) is int and type(right) is int:
        return left - right * _cut(left, right)
    return math.fmod(left, right)


def _power(base: int | float, exponent: int | float) -> int | float:
    if not base and exponent < 0:
        _refuse_zero(base)
    if type(base) is int and type(exponent) is int and exponent >= 0:
        if base.bit_length() * exponent <= _MOST_BITS or abs(base) <= 1:
            return int(base**exponent) if abs(base) > 1 else _power_of_one(base, exponent)
        raise RunError(RunCode.BAD_VALUE, "the number is too large")
    if base < 0 and exponent != int(exponent):
        raise RunError(RunCode.BAD_VALUE, "a negative number has no real root")
    return math.pow(base, exponent)


def _power_of_one(base: int, exponent: int) -> int:
    """Power of -1, 0 or 1, in constant time for any exponent."""
    if not exponent:
        return 1
    return base if exponent % 2 else base * base


def _cut(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _refuse_zero(number: int | float) -> None:
    if not number:
        raise RunError(RunCode.DIVISION, "division by 0")


def _compared(holds: Callable[[int | float, int | float], bool]) -> Callable[..., JsonValue]:
    def run(left: JsonValue, right: JsonValue) -> JsonValue:
        if type(left) is int and type(right) is int:
            return holds(left, right)
        return holds(order(left, right), 0)

    return run


OPERATORS: Mapping[str, Callable[[JsonValue, JsonValue], JsonValue]] = {
    "+": added,
    "-": subtracted,
    "*": _reckoned("*", lambda left, right: left * right),
    "/": _reckoned("/", _quotient),
    "\\": _reckoned("\\", _whole_quotient),
    "mod": _reckoned("MOD", _remainder),
    "^": _reckoned("^", _power),
    "&": joined,
    "=": same,
    "<>": lambda left, right: not same(left, right),
    "<": _compared(lambda left, right: left < right),
    "<=": _compared(lambda left, right: left <= right),
    ">": _compared(lambda left, right: left > right),
    ">=": _compared(lambda left, right: left >= right),
    "in": is_in,
    "like": is_like,
    "and": lambda left, right: truth(left) and truth(right),
    "or": lambda left, right: truth(left) or truth(right),
}
"""Functions by the `operator` of a Binary node. Each returns a value or raises RunError. `and` and `or` take both
values; the machine evaluates the right side only if needed."""


_COUNTS = frozenset({"length", "count", "size"})


def member(of: JsonValue, name: str) -> JsonValue:
    """`of.name`: the map's entry with this key, by exact match first, then case-insensitively; NULL if there is no
    entry. A list delegates to its first item; NULL and the empty list give NULL. `.length`, `.count` and `.size` give
    the length of a list or text without such a member. Raises RunError (WRONG_TYPE)."""
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
    """`of[index]`: the item of a list or character of a text, from 0; the entry of a map or NULL. A name as the index
    of a list is a member of its first item. NULL gives NULL. Raises RunError beyond the end (NO_SUCH_INDEX) and for
    other values (WRONG_TYPE)."""
    if type(of) is dict:
        return of.get(index if type(index) is str else text_of(index))
    if of is None:
        return None
    if type(of) is list or type(of) is str:
        if type(of) is list and type(index) is str and as_number(index) is None:
            return member(of, index)
        return of[_place(index, len(of), "text" if type(of) is str else "list")]
    raise RunError(RunCode.WRONG_TYPE, f"only lists, maps and texts have items, not {kind_of(of)}")


def set_member(of: JsonValue, name: str, value: JsonValue) -> JsonValue:
    """`of` with `value` as a member: of a map, of a list's first item, or of a new map for NULL and the empty list.
    Returns a copy. Raises RunError (WRONG_TYPE) for other values."""
    if type(of) is dict:
        key = name if name in of else _key_like(of, name) or name
        return {**of, key: value}
    if of is None or (type(of) is list and not of):
        return {name: value}
    if type(of) is list and (of[0] is None or type(of[0]) is dict):
        return [set_member(of[0], name, value), *of[1:]]
    raise RunError(RunCode.WRONG_TYPE, f"`.{name} =` needs a map, not {kind_of(of)}")


def set_item(of: JsonValue, index: JsonValue, value: JsonValue) -> JsonValue:
    """`of` with `value` at the index. A list is extended with NULLs up to the index; NULL and the empty list become a
    map if the index is a name. Returns a copy. Raises RunError for a negative index (NO_SUCH_INDEX), other values
    (WRONG_TYPE) and too many items (MEMORY)."""
    named = type(index) is str and as_number(index) is None
    if type(of) is dict:
        return {**of, (index if type(index) is str else text_of(index)): value}
    if of is None or type(of) is list:
        if named:
            return set_member(of, str(index), value)
        return _with_item(of or [], index, value)
    raise RunError(RunCode.WRONG_TYPE, f"`[…] =` needs a list or a map, not {kind_of(of)}")


def items_of(value: JsonValue) -> list[Any]:
    """The sequence that FOR EACH iterates over: items of a list, keys of a map, characters of a text, nothing for NULL.
    Raises RunError for other values (WRONG_TYPE) and too many items (MEMORY). Callers must not modify the list."""
    if type(value) is list:
        return value
    if value is None:
        return []
    if type(value) is dict or type(value) is str:
        check_count(len(value), "the sequence of FOR EACH")
        return list(value)
    raise RunError(RunCode.WRONG_TYPE, f"FOR EACH needs a list, a map or a text, not {kind_of(value)}")


def _key_like(of: JsonObject, name: str) -> str | None:
    """The key equal to the name, if possible exactly, otherwise ignoring case; None if there is no such key."""
    if name in of:
        return name
    wanted = name.lower()
    return next((key for key in of if len(key) == len(name) and key.lower() == wanted), None)


def _no_member(of: JsonValue, name: str) -> JsonValue:
    raise RunError(RunCode.WRONG_TYPE, f"`.{name}` needs a map, not {kind_of(of)}")


def _place(index: JsonValue, count: int, what: str) -> int:
    place = _whole(index)
    if 0 <= place < count:
        return place
    if place < 0:
        raise RunError(RunCode.NO_SUCH_INDEX, f"no item {place}: the first item is 0")
    last = f"the last item of this {what} is {count - 1}" if count else f"this {what} is empty"
    raise RunError(RunCode.NO_SUCH_INDEX, f"no item {place}: {last}")


def _with_item(items: list[Any], index: JsonValue, value: JsonValue) -> list[Any]:
    place = _whole(index)
    if place < 0:
        raise RunError(RunCode.NO_SUCH_INDEX, f"no item {place}: the first item is 0")
    if place < len(items):
        changed = items.copy()
        changed[place] = value
        return changed
    check_count(place + 1, "the list")
    return [*items, *[None] * (place - len(items)), value]


def _whole(index: JsonValue) -> int:
    number = as_number(index)
    if number is None:
        raise RunError(RunCode.WRONG_TYPE, f"an index must be a number, not {kind_of(index)}")
    if number != int(number):
        raise RunError(RunCode.NO_SUCH_INDEX, f"no item {text_of(number)}: an index must be a whole number")
    return int(number)


def abbreviated(words: Sequence[str]) -> tuple[str, ...]:
    """The first eight words, followed by `…` if there are more."""
    return tuple(words) if len(words) <= _SHOWN_WORDS else (*words[:_SHOWN_WORDS], "…")
