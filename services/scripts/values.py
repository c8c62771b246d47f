"""Comparison, sorting and text form of script values, and parsing of numbers in tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

from services.refs import JsonValue
from services.scripts.errors import DataError, DataProblem

_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.{0,20})?", re.ASCII)
_TRUTHS = {"true": True, "false": False}
_DEEPEST = 100
SortKey = tuple[int, float, str]
LAST_KEY: SortKey = (9, 0.0, "")
"""Sort key of empty values."""


def to_json(value: JsonValue, most_bytes: int) -> tuple[str, int]:
    """`value` as JSON, and its size in bytes. Raises DataError (TOO_LARGE, NOT_KEEPABLE)."""
    if is_deeper(value, _DEEPEST):
        raise DataError(DataProblem.NOT_KEEPABLE)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except UnicodeEncodeError:  # lone surrogates are written as escapes, which the store accepts
        text = json.dumps(value, separators=(",", ":"))
        size = len(text)
    except (ValueError, TypeError):
        raise DataError(DataProblem.NOT_KEEPABLE) from None
    if size > most_bytes:
        raise DataError(DataProblem.TOO_LARGE, most=most_bytes // 1000)
    return text, size


def as_number(value: JsonValue) -> int | float | None:
    """A number, or the number written in a text; None for other values, including TRUE and FALSE."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or not _NUMBER.fullmatch(written_number := value.strip()):
        return None
    number = float(written_number)
    if not math.isfinite(number):
        return None
    return int(written_number) if written_number.lstrip("+-").isdigit() else number


def as_moment(value: JsonValue) -> datetime | None:
    """The date or time in a text in ISO 8601, with its offset if it has one; a date means midnight. None for other
    values."""
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def as_text(value: JsonValue) -> str:
    """Text form of a value: NULL is empty, truth values are `true` and `false`, whole floats have no point, lists and
    maps are JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def same(left: JsonValue, right: JsonValue) -> bool:
    """Whether the values are equal. Texts are compared exactly; a number and a numeric text as numbers; TRUE and FALSE
    also equal these words, and 1 and 0. NULL equals the empty text."""
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if is_empty(left) or is_empty(right):
        return is_empty(left) and is_empty(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return _as_truth(left) is _as_truth(right) is not None
    first, second = as_number(left), as_number(right)
    if first is not None and second is not None:
        return first == second
    return bool(left == right)


def order(left: JsonValue, right: JsonValue) -> int | None:
    """Negative if `left` is less than `right`, positive if greater, 0 if equal; None if they cannot be compared.
    Numbers and numeric texts by value; dates and times by time, or by wall time if one has no offset; other texts by
    code point."""
    if is_empty(left) or is_empty(right):
        return None
    first, second = as_number(left), as_number(right)
    if first is not None and second is not None:
        return _sign(first, second)
    if not isinstance(left, str) or not isinstance(right, str):
        return None
    early, late = as_moment(left), as_moment(right)
    if early is not None and late is not None:
        if early.tzinfo is None or late.tzinfo is None:
            early, late = early.replace(tzinfo=None), late.replace(tzinfo=None)
        return (early > late) - (early < late)
    return (left > right) - (left < right)


def is_empty(value: JsonValue) -> bool:
    """Whether it is NULL or an empty text."""
    return value is None or value == ""


def key_of(value: JsonValue) -> str:
    """A text as a hash key: equal values have the same text, so the number 1 and the text `1` do."""
    if isinstance(value, str):
        return value
    number = as_number(value)
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return as_text(value)


def sort_key(value: JsonValue) -> SortKey:
    """Sort key for any value: numbers first, then dates and times, texts ignoring case, others, and empty values
    last."""
    if is_empty(value):
        return LAST_KEY
    number = as_number(value)
    if number is not None:
        return 0, _as_float(number), ""
    moment = as_moment(value)
    if moment is not None:
        return 1, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), ""
    if isinstance(value, str):
        return 2, 0.0, value.casefold()
    return 3, 0.0, as_text(value)


def _as_truth(value: JsonValue) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        value = _TRUTHS.get(value.strip().lower(), as_number(value))
    return bool(value) if value in (0, 1) else None


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _sign(first: float, second: float) -> int:
    return (first > second) - (first < second)


def is_deeper(value: JsonValue, levels: int) -> bool:
    """Whether lists and maps in `value` are nested deeper than `levels`."""
    now = [value]
    for _ in range(levels):
        now = [
            inner
            for one in now
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not now:
            return False
    return True


Mark = Literal[",", "."]
_LONGEST = 60
_CURRENCY = re.compile(r"R\$|[€$£¥₹₩元円]|\b[A-Za-z]{3}\b")
_SPACES = re.compile(r"['\u00a0\u202f ]")
_SHAPE = re.compile(r"[+-]?\d[\d.,]*", re.ASCII)
_BY_COMMA, _BY_POINT = r"[+-]?\d{1,3}(?:,\d{3})+", r"[+-]?\d{1,3}(?:\.\d{3})+"
_COMMA_FRACTION = re.compile(rf"(?:[+-]?\d+|{_BY_POINT}),(?:\d{{1,2}}|\d{{4,}})|{_BY_POINT},\d+", re.ASCII)
_POINT_FRACTION = re.compile(rf"(?:[+-]?\d+|{_BY_COMMA})\.(?:\d{{1,2}}|\d{{4,}})|{_BY_COMMA}\.\d+", re.ASCII)
_GROUPS = {",": re.compile(_BY_COMMA, re.ASCII), ".": re.compile(_BY_POINT, re.ASCII)}


def mark_of(values: Iterable[JsonValue]) -> Mark | None:
    """The decimal mark of these values; None if unknown or inconsistent."""
    texts = [_bare(value) for value in values if isinstance(value, str)]
    has_comma = any(map(_COMMA_FRACTION.fullmatch, texts))
    has_point = any(map(_POINT_FRACTION.fullmatch, texts))
    if has_comma == has_point:
        return None
    return "," if has_comma else "."


def as_amount(value: JsonValue, mark: Mark | None = None) -> int | float | None:
    """A number, or the number written in a text, also with a currency and thousands separators; None for other values,
    including TRUE and FALSE. `mark`: the decimal mark of its column. Without it, the point in `1.234` is a decimal
    mark, as in scripts, and the comma in `1,234` a thousands separator."""
    if not isinstance(value, str):
        return as_number(value)
    bare = _bare(value)
    if mark == "," and _GROUPS["."].fullmatch(bare):
        return int(bare.replace(".", ""))
    plain = as_number(bare)
    if plain is not None:
        return plain
    if not _SHAPE.fullmatch(bare):
        return None
    if mark != "," and _GROUPS[","].fullmatch(bare):
        return int(bare.replace(",", ""))
    if _GROUPS["."].fullmatch(bare):
        return int(bare.replace(".", ""))
    whole, fraction_mark, fraction = bare.rpartition("," if bare.rfind(",") > bare.rfind(".") else ".")
    other = "." if fraction_mark == "," else ","
    if not fraction.isdecimal() or not (whole.lstrip("+-").isdecimal() or _GROUPS[other].fullmatch(whole)):
        return None
    return float(f"{whole.replace(other, '')}.{fraction}")


def _bare(text: str) -> str:
    """`text` without currency and spaces; empty if it is too long to be a number."""
    return "" if len(text) > _LONGEST else _SPACES.sub("", _CURRENCY.sub("", text, count=1))
