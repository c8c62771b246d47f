"""What values are to one another: a number of a text, a text of a number, and whether something holds."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from decimal import Decimal

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.measuring import LARGEST, size_of, too_large
from services.json_values import JsonValue

_LARGEST_INT = 2**63 - 1
_SMALLEST_INT = -(2**63)
_LONGEST_NUMBER = 100
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
_MOST_WHOLE = 1e15
_LEAST_PLAIN = 1e-9
_DIGITS_SHOWN = 15


def kind_of(value: JsonValue) -> str:
    """What it is, in plain words for authors. Never the value itself, which may be a stranger's."""
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
    """Whether it holds: not NULL, 0, an empty text, list or map. The texts `false` and `0` do not hold either, since
    tables and settings keep everything as texts. All other texts hold."""
    if isinstance(value, str):
        return value.lower() not in ("", "0", "false")
    return bool(value)


def is_null(value: JsonValue) -> bool:
    """Whether it is NULL: nothing at all, or a search that found nothing (an empty list)."""
    return value is None or (type(value) is list and not value)


def text_of(value: JsonValue) -> str:
    """As it is said: NULL is the empty text, numbers have up to 15 digits and no needless `.0`, lists and maps are
    JSON. Raises RunFault (MEMORY) for what would be too long."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        number = settled(value)
        return str(number) if type(number) is int else _float_text(number)
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the text")
    return json.dumps(_tidy(value), ensure_ascii=False)


def as_number(value: JsonValue) -> int | float | None:
    """The number that it is or that a text writes (`12`, ` -3.5 `, `1,234.56`, `1e3`); TRUE is 1. None for all else."""
    kind = type(value)
    if kind is int or kind is float:
        return value if kind is float or _SMALLEST_INT <= value <= _LARGEST_INT else settled(value)
    if kind is bool:
        return int(value)
    return _number_text(value) if kind is str else None


def number_of(value: JsonValue) -> int | float:
    """The same, and NULL is 0, so that a count may start with nothing. Raises RunFault (WRONG_TYPE) for all else."""
    number = 0 if value is None else as_number(value)
    if number is None:
        raise RunFault(RunCode.WRONG_TYPE, f"a number is needed here, not {kind_of(value)}")
    return number


def settled(number: int | float) -> int | float:
    """The number as scripts may hold it: beyond 64 bits it is no whole number any more. Raises RunFault (BAD_VALUE)
    when it is larger than any number can be, or none at all."""
    if type(number) is int:
        if _SMALLEST_INT <= number <= _LARGEST_INT:
            return number
        if number.bit_length() > 1023:
            raise RunFault(RunCode.BAD_VALUE, "the number is too large")
        return float(number)
    if math.isnan(number):
        raise RunFault(RunCode.BAD_VALUE, "this has no result among the numbers")
    if math.isinf(number):
        raise RunFault(RunCode.BAD_VALUE, "the number is too large")
    return number


def whole_of(value: JsonValue, what: str) -> int:
    """The whole number that it is; a fraction is cut off. Raises RunFault, which names `what` it is for."""
    number = as_number(value)
    if number is None:
        raise RunFault(RunCode.WRONG_TYPE, f"{what} is a number, not {kind_of(value)}")
    return int(number)


def taken_in(value: JsonValue) -> JsonValue:
    """What comes from outside as scripts may hold it: numbers are settled, and keys are texts. The value itself where it
    is fine already. Raises RunFault (MEMORY, BAD_VALUE) for what is too large, too deep, or holds no number."""
    if size_of(value, LARGEST) > LARGEST:
        raise too_large("the value")
    return _settled_inside(value)


def same_number(left: int | float, right: int | float) -> bool:
    """Whether they are one number; fractions that differ in the last digits of the machine's are: 0.1 + 0.2 is 0.3."""
    if type(left) is int and type(right) is int:
        return left == right
    return left == right or math.isclose(left, right, rel_tol=1e-15, abs_tol=0.0)


def _settled_inside(value: JsonValue) -> JsonValue:
    if type(value) is list:
        items = [_settled_inside(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if type(value) is dict:
        entries = {str(key): _settled_inside(item) for key, item in value.items()}
        changed = any(entries[str(key)] is not item or type(key) is not str for key, item in value.items())
        return entries if changed else value
    return settled(value) if type(value) is int or type(value) is float else value


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
        return settled(int(plain))
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
    """With the numbers as they are said. Called for what is not too deep."""
    if type(value) is list:
        return [_tidy(item) for item in value]
    if type(value) is dict:
        return {key: _tidy(item) for key, item in value.items()}
    if type(value) is float:
        if value.is_integer() and abs(value) < _MOST_WHOLE:
            return int(value)
        return float(format(value, f".{_DIGITS_SHOWN}g"))
    return value
