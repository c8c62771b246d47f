"""The operators of the language. Whole numbers stay whole where they can; what becomes too large is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.comparing import is_in, is_like, order, same
from function_calls.basic.conversions import as_number, kind_of, settled, text_of, truth
from function_calls.basic.measuring import check_count, check_length
from function_calls.basic.moments import days_later, read_plain
from services.json_values import JsonValue

_MOST_BITS = 1023


def negated(value: JsonValue) -> JsonValue:
    """`-value`. Raises RunFault (WRONG_TYPE)."""
    return settled(-_operand(value, "-"))


def added(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left + right`: numbers are added, where one side is a text both are joined as texts, and two lists become one.
    A date as NOW and TODAY give it, and a number, is so many days later. NULL is 0, the empty text or the empty list.
    Raises RunFault."""
    if type(left) is int and type(right) is int:
        return settled(left + right)
    if type(left) is str and type(right) is str:
        check_length(len(left) + len(right), "the text")
        return left + right
    if type(left) is str or type(right) is str:
        later = _moved(left, right, 1)
        return joined(left, right) if later is None else later
    if type(left) is list or type(right) is list:
        return _lists(left, right)
    return settled(_operand(left, "+") + _operand(right, "+"))


def subtracted(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left - right` of numbers. A date and a number is so many days earlier, and two dates are the days between them.
    Raises RunFault."""
    if type(left) is int and type(right) is int:
        return settled(left - right)
    if type(left) is str:
        earlier = _moved(left, right, -1)
        if earlier is not None:
            return earlier
        last, first = read_plain(left), read_plain(right) if type(right) is str else None
        if last is not None and first is not None:
            days = (last.at - first.at).total_seconds() / 86_400
            return int(days) if days.is_integer() else days
    return settled(_operand(left, "-") - _operand(right, "-"))


def joined(left: JsonValue, right: JsonValue) -> JsonValue:
    """`left & right`: both as texts, one behind the other. Raises RunFault (MEMORY)."""
    first, second = text_of(left), text_of(right)
    check_length(len(first) + len(second), "the text")
    return first + second


def _moved(date: JsonValue, days: JsonValue, sign: int) -> str | None:
    """The date so many days away; None where it is no date or no number."""
    if type(date) is not str or (type(days) is not int and type(days) is not float):
        return None
    moment = read_plain(date)
    return None if moment is None else str(days_later(moment, sign * days))


def _lists(left: JsonValue, right: JsonValue) -> JsonValue:
    first = [] if left is None else left
    second = [] if right is None else right
    if type(first) is not list or type(second) is not list:
        raise RunFault(
            RunCode.WRONG_TYPE,
            f"`+` joins two lists, not {kind_of(left)} and {kind_of(right)}; PUSH puts one value into a list",
        )
    check_count(len(first) + len(second), "the list")
    return first + second


def _operand(value: JsonValue, operator: str) -> int | float:
    number = 0 if value is None else as_number(value)
    if number is None:
        hint = "; DATEADD and DATEDIFF reckon with dates" if type(value) is str and value[:4].isdecimal() else ""
        raise RunFault(RunCode.WRONG_TYPE, f"`{operator}` needs numbers, not {kind_of(value)}{hint}")
    return number


def _reckoned(operator: str, reckon: Callable[[int | float, int | float], int | float]) -> Callable[..., JsonValue]:
    def run(left: JsonValue, right: JsonValue) -> JsonValue:
        if type(left) is not int or type(right) is not int:
            left, right = _operand(left, operator), _operand(right, operator)
        try:
            return settled(reckon(left, right))
        except OverflowError:
            raise RunFault(RunCode.BAD_VALUE, "the number is too large") from None

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
    return math.trunc(settled(left / right))


def _remainder(left: int | float, right: int | float) -> int | float:
    """With the sign of the left side, as BASIC has always had it."""
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
        raise RunFault(RunCode.BAD_VALUE, "the number is too large")
    if base < 0 and exponent != int(exponent):
        raise RunFault(RunCode.BAD_VALUE, "a negative number has no such root")
    return math.pow(base, exponent)


def _power_of_one(base: int, exponent: int) -> int:
    """Of -1, 0 and 1, however large the exponent."""
    if not exponent:
        return 1
    return base if exponent % 2 else base * base


def _cut(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _refuse_zero(number: int | float) -> None:
    if not number:
        raise RunFault(RunCode.DIVISION, "nothing can be divided by 0")


def _compared(holds: Callable[[int | float, int | float], bool]) -> Callable[..., JsonValue]:
    def run(left: JsonValue, right: JsonValue) -> JsonValue:
        if type(left) is int and type(right) is int:
            return holds(left, right)
        return holds(order(left, right), 0)

    return run


OPERATORS: Mapping[str, Callable[[JsonValue, JsonValue], JsonValue]] = MappingProxyType(
    {
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
)
"""By the `operator` of a Binary. Each gives a value or raises RunFault. `and` and `or` are for who has both sides
already; a run looks at the right side only where it must."""
