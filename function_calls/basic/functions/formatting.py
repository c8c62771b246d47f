"""FORMAT: a number, date or text as a pattern wants it."""

from __future__ import annotations

import re

from function_calls.basic.codes import RunCode, RunFault
from function_calls.basic.conversions import as_number, kind_of, text_of
from function_calls.basic.functions.date_patterns import format_date
from function_calls.basic.functions.declaring import ANY, DATE, TEXT, also, function
from function_calls.basic.functions.number_patterns import format_number
from function_calls.basic.measuring import check_length
from function_calls.basic.moments import Moment, read
from function_calls.basic.world import World
from services.json_values import JsonValue

_SHORT = 60
_LONGEST = 200
_TEXT_MARKS = re.compile("[@!><&]")


def _format(world: World, value: JsonValue, pattern: str = "") -> JsonValue:
    if type(value) in (list, dict):
        raise RunFault(RunCode.WRONG_TYPE, f"FORMAT needs a number, a date or a text, not {kind_of(value)}")
    if value is None or value == "" or not pattern:
        return text_of(value)
    if len(pattern) > _LONGEST:
        raise RunFault(RunCode.BAD_VALUE, f"a pattern for FORMAT has {_LONGEST} characters at the most")
    number = None if type(value) is bool else as_number(value)
    if number is not None:
        made = format_number(number, pattern, world.language)
        if made is not None:
            return made
    moment = read(value, lambda: world.now().tzinfo) if type(value) is str else None
    if moment is not None and "@" not in pattern and any(mark.isalpha() for mark in pattern):
        return format_date(moment, pattern, world.language)
    if _TEXT_MARKS.search(pattern):
        return _text(text_of(value), pattern)
    what = "number" if number is not None else "text"
    known = "#,##0.00, 0000, 0%, n, F2, C2[pt]" if number is not None else "@, !, < and >, and none for dates fits it"
    raise RunFault(RunCode.BAD_VALUE, f"FORMAT knows no pattern `{pattern[:_SHORT]}` for a {what}; it knows {known}")


def _text(text: str, pattern: str) -> str:
    """`@` is the text, several `@@@` its characters one by one. Without an `@`, `!` and `>` are the text in capitals,
    `<` and `&` in small letters."""
    if "@@" in pattern:
        characters = iter(text)
        return "".join(next(characters, "") if mark == "@" else mark for mark in pattern) + "".join(characters)
    check_length(len(text) * 3 * len(_TEXT_MARKS.findall(pattern)), "the text that FORMAT makes")
    if "@" in pattern:
        return pattern.replace("@", text)
    changed = {"!": text.upper(), ">": text.upper(), "<": text.lower(), "&": text.lower()}
    return "".join(changed.get(mark, mark) for mark in pattern)


def _format_date(world: World, moment: Moment, pattern: str = "yyyy-MM-dd") -> JsonValue:
    return format_date(moment, pattern[:_LONGEST], world.language)


def _format_time(world: World, moment: Moment, pattern: str = "HH:mm") -> JsonValue:
    return format_date(moment, pattern[:_LONGEST], world.language)


FORMATTING = (
    function(
        "FORMAT(value, [pattern])",
        (ANY, TEXT),
        _format,
        "A number, date or text as the pattern wants it; without one, as a text.",
        'FORMAT(1234.5, "#,##0.00")',
        "1,234.50",
        fewest=1,
        world=True,
    ),
    *also(
        function(
            "FORMAT_DATE(date, [pattern])",
            (DATE, TEXT),
            _format_date,
            "The date as the pattern wants it, as in 2026-11-20 without one.",
            'FORMAT_DATE("2026-11-20", "dd.MM.yyyy")',
            "20.11.2026",
            fewest=1,
            world=True,
        ),
        "formatdate",
        "date_format",
    ),
    *also(
        function(
            "FORMAT_TIME(date, [pattern])",
            (DATE, TEXT),
            _format_time,
            "The time as the pattern wants it, as in 22:15 without one.",
            'FORMAT_TIME("2026-11-20 22:15:00", "hh:mm tt")',
            "10:15 PM",
            fewest=1,
            world=True,
        ),
        "formattime",
    ),
)
