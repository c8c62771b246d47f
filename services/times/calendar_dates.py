"""Dates with a month, in figures and in words: 2012/8/10, 16.11.2016, Feb 18, the 15th of February, 22/Jan/2019."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from services.times.durations import unit_at
from services.times.lexicon import MONTHS, ORDINALS
from services.times.parts import Part, Span
from services.times.readings import Grain, days_in_month
from services.times.spans import year_span
from services.times.tokens import NUMBER, ORDINAL, WORD, Line

_SEPARATORS = frozenset("-/.–")
_CENTURY_TURN = 50
"""Two digits of a year: from here on they are of the last century."""
_MOST_DAY = 39
"""A bigger number is no slip in a day of the month."""
_YEAR_WORDS = frozenset((",", "of", ".", "in", "'", "the", "year"))
_YEAR_SIGNS = _YEAR_WORDS | {"/", "-"}
_CENTURIES = (17, 18, 19, 20)
Parts = Iterator[tuple[Part, int]]


def figures_at(line: Line, index: int, *, day_first: bool) -> Parts:
    """2012/8/10, 8/12, 16.11.2016, 20200701, 2014-10, 09/2012, 2019/sep/01, 3-7-27."""
    digits = line.words[index]
    if not digits.isdigit():
        return
    if len(digits) == 8 and digits[:2] in ("19", "20"):
        yield Part(year=int(digits[:4]), month=int(digits[4:6]), day=int(digits[6:])), index + 1
    elif len(digits) == 4 and "1" <= digits[0] <= "2":
        yield from _decade(line, index)
        yield from _year_first(line, index)
    elif len(digits) == 4 and line.words[index + 1] in _SEPARATORS:
        yield from _behind_year(line, index + 1, line.values[index])
    elif len(digits) <= 2 and line.words[index + 1] in _SEPARATORS and line.is_digits(index + 2):
        yield from _short_figures(line, index, day_first=day_first)


def _short_figures(line: Line, index: int, *, day_first: bool) -> Parts:
    """8/12, 09/2012, 16.11.2016, 3-7-27."""
    sign, first, second, end = line.words[index + 1], line.values[index], line.values[index + 2], index + 3
    is_glued = line.glued(index + 1) and line.glued(index + 2)
    if sign == "." and line.glued(index) and line.words[index - 1] == ".":  # within a version, or an address
        return
    if not (line.glued(index + 1) or line.glued(index + 2) or line.words[end] == sign):
        return
    if len(line.words[index + 2]) == 4 and first <= 12:
        yield Part(month=first, year=second), end
        return
    part = _day_month(first, second, day_first=day_first or sign == ".")
    if part is None:
        return
    if line.words[end] in (sign, ",") and line.is_digits(end + 1) and len(line.words[end + 1]) in (2, 4):
        yield {**part, "year": full_year(line.words[end + 1])}, end + 2
    is_version = sign == "." and line.words[end] == "." and line.glued(end) and line.glued(end + 1)
    if part["month"] <= 12 and len(line.words[index + 2]) <= 2 and is_glued and not is_version:
        yield part, end


def _year_first(line: Line, index: int) -> Parts:
    year, end = line.values[index], index + 1
    if line.words[end] == "," and line.words[end + 1] in MONTHS:
        end += 1
    if line.words[end] in MONTHS:
        yield Part(year=year, month=MONTHS[line.words[end]]), end + 1
    if line.words[end] in _SEPARATORS:
        yield from _behind_year(line, end, year)
    if unit_at(line, index + 1) != Grain.QUARTER:
        yield Part(year=year), index + 1


def _behind_year(line: Line, index: int, year: int) -> Parts:
    """`-10-02`, `/sep/01`, `-23-Sep`, `-10` behind a year."""
    sign, second, third = line.words[index], index + 1, index + 3
    month = MONTHS.get(line.words[second], line.values[second] if line.is_digits(second) else 0)
    last_month = MONTHS.get(line.words[third])
    if line.words[third - 1] == sign and last_month is not None:
        yield Part(year=year, month=last_month, day=month), third + 1
    elif line.words[third - 1] == sign and line.is_digits(third) and month:
        yield Part(year=year, month=month, day=line.values[third]), third + 1
    if 1 <= month <= 12 and sign != ".":
        yield Part(year=year, month=month), second + 1


def _decade(line: Line, index: int) -> Parts:
    """`1990s`, `1990 s`."""
    if len(line.words[index]) == 4 and line.values[index] % 10 == 0 and line.words[index + 1] == "s":
        start = date(line.values[index], 1, 1)
        yield Part(span=Span(start, year_span(start.year + 9).end, Grain.YEAR)), index + 2


def _day_month(first: int, second: int, *, day_first: bool) -> Part | None:
    """Two figures as day and month: in the order of the language unless only the other is possible."""
    day, month = (first, second) if day_first else (second, first)
    if month > 12 and day <= 12:
        day, month = month, day
        return Part(day=day, month=month)
    if month > 12:
        return Part(day=day, month=month) if month <= 31 and day <= 31 else None
    if not 1 <= day <= 31 or not month:
        return None
    if day > days_in_month(2024, month):
        return Part(day=day, month=month)
    return Part(day=day, month=month, is_numeric=True) if day <= 12 else Part(day=day, month=month)


def month_at(line: Line, index: int) -> Parts:
    """`Feb 18`, `march 3rd`, `october`, `Oct-2`, `Jan/3`, `Dec/2018`, with or without a year."""
    month, end = MONTHS[line.words[index]], index + 1
    if line.words[end] == "." and line.glued(end):
        end += 1
    after = end + (line.words[end] in ("-", "/", ",", "the", "–"))
    after += line.words[after] == "the"
    day = _day_number(line, after)
    if day is not None:
        part = Part(month=month, day=day)
        signs = _YEAR_SIGNS if line.words[after - 1] in ("/", "-") else _YEAR_WORDS
        yield from _with_year(line, after + 1, part, signs=signs)
        yield part, after + 1
    yield from _with_year(line, end, Part(month=month), bare=True)
    yield Part(month=month), end


def day_and_month_at(line: Line, index: int) -> Parts:
    """`15th of february`, `30 December`, `16. Nov.`, `third day of october`, `22/Jan/2019`."""
    day = line.values[index] if line.kinds[index] != WORD else ORDINALS[line.words[index]]
    end = index + 1
    if line.words[end] == "day":
        end += 1
    while line.words[end] in ("of", ".", "/", "-", ",", "in") and end - index < 3:
        end += 1
    month = MONTHS.get(line.words[end])
    if month is None or not 1 <= day <= _MOST_DAY or (line.words[end - 1] == "in" and line.kinds[index] == NUMBER):
        return
    end += 1
    if line.words[end] == "." and line.glued(end):
        end += 1
    part = Part(month=month, day=day)
    yield from _with_year(line, end, part)
    yield part, end


def _day_number(line: Line, index: int) -> int | None:
    """A number that is a day of a month rather than an hour or a year."""
    kind, then = line.kinds[index], line.words[index + 1]
    if kind == ORDINAL or (kind == WORD and line.words[index] == "second"):
        return line.values[index] or 2
    if kind != NUMBER or (line.is_digits(index) and len(line.words[index]) > 2):
        return None
    is_clock = then in ("am", "pm", "o'clock") or (then in (":", "h") and line.glued(index + 1))
    return None if is_clock or not 1 <= line.values[index] <= _MOST_DAY else line.values[index]


def _with_year(line: Line, index: int, part: Part, *, bare: bool = False, signs: frozenset[str] = _YEAR_SIGNS) -> Parts:
    """`part` with the year that stands at `index`: 2015, , 2015, of 1987, '35, 88 CE, nineteen eighty six. Two digits
    only count where they cannot be anything else; `bare`: `part` is a month without a day, and they can."""
    start = index
    while line.words[start] in signs and start - index < 2:
        start += 1
    if line.kinds[start] != NUMBER:
        return
    digits, value, then = line.words[start], line.values[start], line.words[start + 1]
    if not digits.isdigit():
        if value in _CENTURIES and line.kinds[start + 1] == NUMBER and 10 <= line.values[start + 1] < 100:
            yield {**part, "year": value * 100 + line.values[start + 1]}, start + 2
        elif 1000 <= value <= 2999:
            yield {**part, "year": value}, start + 1
    elif then in ("ce", "ad"):
        yield {**part, "year": value}, start + 2
    elif then not in (":", "pm", "am") and unit_at(line, start + 1) is None:
        is_short = len(digits) == 2 and not bare and line.words[start - 1] in (",", "/", "-", "'")
        if len(digits) == 4 or is_short:
            yield {**part, "year": full_year(digits)}, start + 1


def full_year(digits: str) -> int:
    """The year that two or four digits mean."""
    year = int(digits)
    if len(digits) != 2:
        return year
    return year + (2000 if year < _CENTURY_TURN else 1900)
