"""Numbers as people write them into tables: `12,50`, `1.234,50`, `1,234.50`, `12,50 €`. What a column writes otherwise
tells which mark its fractions have, where one value alone does not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from services.json_values import JsonValue
from services.script_values import as_number

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
    """What stands before the fractions of these values; None where none tells, or they do not agree."""
    texts = [_bare(value) for value in values if isinstance(value, str)]
    has_comma = any(map(_COMMA_FRACTION.fullmatch, texts))
    has_point = any(map(_POINT_FRACTION.fullmatch, texts))
    if has_comma == has_point:
        return None
    return "," if has_comma else "."


def as_amount(value: JsonValue, mark: Mark | None = None) -> int | float | None:
    """The number that it is or that a text writes; None for all else, TRUE and FALSE too. `mark`: what its column has
    before fractions. Where that is not known, `1.234` is less than two, as in scripts, and `1,234` more than a
    thousand, as members say it."""
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
    """Without the currency and spaces; what is too long to be a number, as nothing."""
    return "" if len(text) > _LONGEST else _SPACES.sub("", _CURRENCY.sub("", text, count=1))
