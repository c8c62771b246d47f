"""Days: weekdays, dates in figures and words, today and tomorrow, next week, the last Friday of the month."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from services.times.durations import amount_at, unit_at
from services.times.holidays import holiday_at
from services.times.lexicon import ABBREVIATED_EDGES, EDGES, MONTHS, ORDINALS, SEASONS, TODAY, WEEKDAYS, WHICH
from services.times.parts import Part, Span
from services.times.readings import Grain, days_in_month
from services.times.spans import season_span, unit_span, weekend_span, year_span
from services.times.tokens import NUMBER, ORDINAL, WORD, Line

_SEPARATORS = frozenset("-/.–")
_CENTURY_TURN = 50
"""Two digits of a year: from here on they are of the last century."""
_YEAR_WORDS = frozenset((",", "of", ".", "in", "'", "the", "year"))
_YEAR_SIGNS = _YEAR_WORDS | {"/", "-"}
Parts = Iterator[tuple[Part, int]]


def dates_at(line: Line, index: int, today: date, *, day_first: bool = False) -> Parts:
    """The days that begin at `index`, the longest readings first, each with where it ends."""
    kind = line.kinds[index]
    if kind == NUMBER:
        yield from _numeric(line, index, day_first=day_first)
        yield from _day_and_month(line, index)
    elif kind == ORDINAL:
        yield from _nth(line, index, line.values[index], index + 1)
        yield from _day_and_month(line, index)
        if line.values[index] <= 31:
            yield {"day": line.values[index]}, index + 1
    elif kind == WORD:
        yield from _worded(line, index, today)


def _worded(line: Line, index: int, today: date) -> Parts:
    word = line.words[index]
    if word in ORDINALS or word in ("last", "penultimate"):
        if word == "second" and line.words[index + 1] in ("last", "to"):
            yield from _nth(line, index, 2, index + 1)
        elif word in ORDINALS:
            yield from _nth(line, index, ORDINALS[word], index + 1)
            yield from _day_and_month(line, index)
            yield {"day": ORDINALS[word]}, index + 1
        else:
            if word == "last":
                yield from _which(line, index, today)
            yield from _nth(line, index, -1 if word == "last" else -2, index + 1)
    holiday = holiday_at(line, index)
    if holiday is not None:
        yield {"holiday": holiday[0]}, holiday[1]
    if word in MONTHS:
        yield from _month(line, index)
    if word in WEEKDAYS:
        yield from _weekday(line, index)
    if word in TODAY:
        day = today + timedelta(days=TODAY[word])
        part = Part(span=Span(day, day + timedelta(days=1), Grain.DAY))
        if word in ("tonight", "tonite"):
            part["portion"] = "tonight"
        yield part, index + 1
    if word in WHICH and word != "last":
        yield from _which(line, index, today)
    if word == "day":
        yield from _day_beside(line, index, today)
    if word in SEASONS and word != "fall":
        yield Part(span=season_span(word, 0, today)), index + 1
    yield from _edges(line, index, today)
    yield from _units(line, index, today)


def _edges(line: Line, index: int, today: date) -> Parts:
    """`end of …`, `EOM`."""
    word = line.words[index]
    if word in ABBREVIATED_EDGES:
        edge, grain = ABBREVIATED_EDGES[word]
        yield Part(edge=edge, span=unit_span(grain, 0, 1, today)), index + 1
    if word not in EDGES:
        return
    end = index + 1
    while line.words[end] in ("of", "the", "in", "around", "about", "-"):
        end += 1
    if word in ("rest", "remainder", "remaining") and end == index + 1:
        return
    unit = unit_at(line, end)
    if unit in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR) and line.words[end + 1] != "of":
        if end > index + 1:
            yield Part(edge=EDGES[word], span=unit_span(unit, 0, 1, today)), end + 1
    elif end > index + 1 or line.words[end] in MONTHS or line.words[end] in WHICH:
        if end < line.size:
            yield Part(edge=EDGES[word]), end


def _decade(line: Line, index: int) -> Parts:
    """`1990s`, `1990 s`."""
    if len(line.words[index]) == 4 and line.values[index] % 10 == 0 and line.words[index + 1] == "s":
        start = date(line.values[index], 1, 1)
        yield Part(span=Span(start, year_span(start.year + 9).end, Grain.YEAR)), index + 2


def _units(line: Line, index: int, today: date) -> Parts:
    """`the week`, `quarter 3`, `q3`, `year 2008`, `week of …`, `weekend`."""
    word = line.words[index]
    if word == "q" and line.is_digits(index + 1) and line.glued(index + 1) and 1 <= line.values[index + 1] <= 4:
        yield Part(nth=(line.values[index + 1], Grain.QUARTER)), index + 2
    if word == "cy" and line.is_digits(index + 1) and len(line.words[index + 1]) in (2, 4):
        yield Part(year=full_year(line.words[index + 1])), index + 2
    if word == "calendar" and line.words[index + 1] == "year":
        index, word = index + 1, "year"
    if word == "year" and line.is_digits(index + 1) and len(line.words[index + 1]) == 4:
        yield Part(year=line.values[index + 1]), index + 2
    if word in ("weekend", "weekends") or (
        word == "week" and line.words[index + 1] == "-" and line.words[index + 2] == "end"
    ):
        end = index + 1 if word != "week" else index + 3
        if line.words[end] == "of":
            yield Part(nth=(0, "weekend")), end + 1
        if line.words[end] == "after" and line.words[end + 1] == "next":
            yield Part(span=weekend_span(2, today)), end + 2
        yield Part(span=weekend_span(0, today)), end
    if word in ("week", "w") and line.words[index + 1] in ("of", "starting", "beginning", "commencing"):
        end = index + 2
        while line.words[end] in ("on", "the"):
            end += 1
        yield Part(nth=(0, Grain.WEEK)), end
    if word == "w" and line.words[index + 1] == "/" and line.words[index + 2] == "c":
        yield Part(nth=(0, Grain.WEEK)), index + 3
    unit = unit_at(line, index)
    if unit in (Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR, "fortnight") and len(word) > 1:
        if line.words[index + 1] == "after" and line.words[index + 2] == "next":
            yield Part(span=unit_span(unit, 2, 1, today)), index + 3
        elif line.words[index - 1] in ("the", "of") if index else False:
            span = unit_span(unit, 0, 1, today)
            yield Part(span=Span(span.start, span.end, span.grain, is_loose=True)), index + 1


def _day_beside(line: Line, index: int, today: date) -> Parts:
    """`day after tomorrow`, `day before yesterday`, `day after`."""
    link, anchor = line.words[index + 1], line.words[index + 2]
    if link not in ("after", "before"):
        return
    step = 1 if link == "after" else -1
    if anchor == "the":
        anchor, index = line.words[index + 3], index + 1
    if anchor in TODAY:
        day = today + timedelta(days=TODAY[anchor] + step)
        yield Part(span=Span(day, day + timedelta(days=1), Grain.DAY)), index + 3
    elif index + 2 >= line.size:
        day = today + timedelta(days=step)
        yield Part(span=Span(day, day + timedelta(days=1), Grain.DAY)), index + 2


def _weekday(line: Line, index: int) -> Parts:
    """`fri`, `fri.`, `friday week`, `friday after next`, `friday next`."""
    weekday, end = WEEKDAYS[line.words[index]], index + 1
    if line.words[end] == "." and line.glued(end) and len(line.words[index]) < 6:
        end += 1
    if line.words[end] == "after" and line.words[end + 1] == "next":
        yield Part(weekday=weekday, which=2), end + 2
    elif line.words[end] == "next" and unit_at(line, end + 1) is None and line.words[end + 1] not in WEEKDAYS:
        yield Part(weekday=weekday, which=1), end + 1
    elif line.words[end] in ("week", "fortnight") and line.words[end + 1] not in ("of", "after"):
        yield Part(weekday=weekday, which=2 if line.words[end] == "week" else 3), end + 1
    yield Part(weekday=weekday), end


def _which(line: Line, index: int, today: date) -> Parts:
    """`this`, `next`, `last` … and what they stand before."""
    word = line.words[index]
    which, end = WHICH[word], index + 1
    if word == "this" and line.words[end] in ("coming", "past", "upcoming", "next"):
        which, end = (-1 if line.words[end] == "past" else 0), end + 1
    if word in ("last", "past") and line.words[end] == "couple":
        return
    named = line.words[end]
    if line.kinds[end] == NUMBER or named in ("couple", "few"):
        yield from _several(line, index, which, end, today)
        return
    if named in WEEKDAYS:
        if word in ("upcoming", "coming", "following") and which == 1:
            which = 0
        yield Part(weekday=WEEKDAYS[named], which=which), end + 1
    elif named in MONTHS:
        yield Part(month=MONTHS[named], year=_year_of_month(MONTHS[named], which, word, today)), end + 1
    elif named in SEASONS:
        yield Part(span=season_span(named, which, today)), end + 1
    elif named in ("season", "seasons"):
        yield Part(span=season_span("", which, today)), end + 1
    elif unit_at(line, end) == "weekend" or (
        named == "week" and line.words[end + 1] == "-" and line.words[end + 2] == "end"
    ):
        yield Part(span=weekend_span(which, today)), end + (3 if named == "week" else 1)
    elif unit_at(line, end) in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR, "fortnight", "decade"):
        yield Part(span=unit_span(unit_at(line, end), which, 1, today)), end + 1
    else:
        holiday = holiday_at(line, end)
        if holiday is not None:
            yield Part(holiday=holiday[0], which=which), holiday[1]


def _several(line: Line, index: int, which: int, end: int, today: date) -> Parts:
    """`next 3 weeks`, `last two days`, `next couple of weeks`."""
    if line.kinds[end] == NUMBER:
        count, after = line.values[end], end + 1
    else:
        count, after = (2 if line.words[end] == "couple" else 3), end + 1
        if line.words[after] == "of":
            after += 1
    unit = unit_at(line, after)
    if line.words[index] == "coming":
        which = 1
    if unit is None or unit in ("weekend", "weekday") or not 0 < count < 1000 or which == 0:
        return
    if unit in (Grain.SECOND, Grain.MINUTE, Grain.HOUR):
        if which > 0 and (amount := amount_at(line, end)) is not None:
            yield Part(length=amount[0].length, grain=amount[0].grain, deadline=True), amount[1]
        return
    if line.words[index] == "upcoming":
        if unit in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR):
            yield Part(span=unit_span(unit, count, 1, today)), after + 1
    elif unit in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR, "decade", "fortnight"):
        yield Part(span=unit_span(unit, 1 if which > 0 else -count, count, today)), after + 1


def _nth(line: Line, index: int, number: int, end: int) -> Parts:
    """`first Tuesday`, `3rd last week`, `last day`, `third qtr`, `second closest Mon to …` is another matter."""
    if line.words[end] == "last" or (line.words[end] == "to" and line.words[end + 1] == "last"):
        number, end = -number, end + (1 if line.words[end] == "last" else 2)
    word = line.words[end]
    if line.kinds[end] == NUMBER and 0 < line.values[end] < 100 and unit_at(line, end + 1) is not None:
        unit = unit_at(line, end + 1)
        if unit in (Grain.DAY, Grain.WEEK, Grain.MONTH) and line.words[end + 2] in ("of", "in"):
            yield Part(nth=(number, f"{line.values[end]} {unit}")), end + 2
        return
    if word in WEEKDAYS:
        yield Part(nth=(number, f"weekday {WEEKDAYS[word]}")), end + 1
    unit = unit_at(line, end)
    if unit in (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, "weekend", "weekday") and len(word) > 1:
        if unit == Grain.QUARTER or line.words[end + 1] in ("of", "in") or line.words[index] not in WHICH:
            yield Part(nth=(number, unit)), end + 1
    if word in ("business", "working", "work") and unit_at(line, end + 1) == Grain.DAY:
        yield Part(nth=(number, "weekday")), end + 2


def _month(line: Line, index: int) -> Parts:
    """`Feb 18`, `march 3rd`, `october`, `Oct-2`, `Jan/3`, `Dec/2018`, with or without a year."""
    month, end = MONTHS[line.words[index]], index + 1
    if line.words[end] == "." and line.glued(end):
        end += 1
    after = end
    if line.words[after] in ("-", "/", ",", "the", "–") or line.words[after] == "of":
        after += 1
    if line.words[after] == "the":
        after += 1
    day = _day_number(line, after)
    if day is not None and line.words[after - 1] != "of":
        part = Part(month=month, day=day)
        yield from _with_year(
            line, after + 1, part, signs=_YEAR_SIGNS if line.words[after - 1] in ("/", "-") else _YEAR_WORDS
        )
        yield part, after + 1
    yield from _with_year(line, end, Part(month=month), bare=True)
    yield Part(month=month), end


def _day_and_month(line: Line, index: int) -> Parts:
    """`15th of february`, `30 December`, `16. Nov.`, `third day of october`, `22/Jan/2019`."""
    day = line.values[index] if line.kinds[index] != WORD else ORDINALS[line.words[index]]
    end = index + 1
    if line.words[end] == "day":
        end += 1
    while line.words[end] in ("of", ".", "/", "-", ",", "in") and end - index < 3:
        end += 1
    month = MONTHS.get(line.words[end])
    if month is None or not 1 <= day <= 39 or (line.words[end - 1] == "in" and line.kinds[index] == NUMBER):
        return
    end += 1
    if line.words[end] == "." and line.glued(end):
        end += 1
    part = Part(month=month, day=day)
    yield from _with_year(line, end, part)
    yield part, end


def _day_number(line: Line, index: int) -> int | None:
    """A number that is a day of a month rather than an hour or a year."""
    if line.kinds[index] == ORDINAL or (line.kinds[index] == WORD and line.words[index] == "second"):
        return line.values[index] or 2
    if line.kinds[index] != NUMBER or len(line.words[index]) > 2 and line.is_digits(index):
        return None
    if not 1 <= line.values[index] <= 39 or (line.words[index + 1] in (":", "h", "am", "pm") and line.glued(index + 1)):
        return None
    if line.words[index + 1] in ("am", "pm", "o'clock"):
        return None
    return line.values[index]


def _with_year(line: Line, index: int, part: Part, *, bare: bool = False, signs: frozenset[str] = _YEAR_SIGNS) -> Parts:
    """`part` with the year that stands at `index`: 2015, , 2015, of 1987, '35, nineteen eighty six."""
    start = index
    while line.words[start] in signs and start - index < 2:
        start += 1
    if line.kinds[start] != NUMBER:
        return
    digits, value = line.words[start], line.values[start]
    if digits.isdigit():
        if line.words[start + 1] in (":", "pm", "am", "h") or (unit_at(line, start + 1) is not None):
            return
        if len(digits) == 4 or (len(digits) == 2 and not bare and line.words[start - 1] in (",", "/", "-", "'")):
            year, end = full_year(digits), start + 1
            if line.words[end] in ("ce", "ad"):
                year, end = value, end + 1
            yield {**part, "year": year}, end
        elif line.words[start + 1] in ("ce", "ad"):
            yield {**part, "year": value}, start + 2
    elif value in (19, 20, 18, 17) and line.kinds[start + 1] == NUMBER and 10 <= line.values[start + 1] < 100:
        yield {**part, "year": value * 100 + line.values[start + 1]}, start + 2
    elif 1000 <= value <= 2999:
        yield {**part, "year": value}, start + 1


def full_year(digits: str) -> int:
    """The year that two or four digits mean."""
    year = int(digits)
    if len(digits) != 2:
        return year
    return year + (2000 if year < _CENTURY_TURN else 1900)


def _numeric(line: Line, index: int, *, day_first: bool) -> Parts:
    """2012/8/10, 8/12, 16.11.2016, 20200701, 2014-10, 09/2012, 2019/sep/01, 3-7-27."""
    digits = line.words[index]
    if not digits.isdigit():
        return
    if len(digits) == 8 and digits[:2] in ("19", "20"):
        yield Part(year=int(digits[:4]), month=int(digits[4:6]), day=int(digits[6:])), index + 1
        return
    if len(digits) == 4 and "1" <= digits[0] <= "2":
        yield from _decade(line, index)
        yield from _year_first(line, index)
        return
    sign = line.words[index + 1]
    if len(digits) > 2 or sign not in _SEPARATORS or not line.is_digits(index + 2):
        return
    first, second, end = line.values[index], line.values[index + 2], index + 3
    if not line.glued(index + 1) and not line.glued(index + 2) and line.words[end] != sign:
        return
    if len(line.words[index + 2]) == 4 and first <= 12:
        yield Part(month=first, year=second), end
        return
    part = _day_month(first, second, day_first=day_first or sign == ".")
    if part is None:
        return
    if line.words[end] in (sign, ",") and line.is_digits(end + 1) and len(line.words[end + 1]) in (2, 4):
        yield {**part, "year": full_year(line.words[end + 1])}, end + 2
    if part["month"] <= 12 and len(line.words[index + 2]) <= 2 and line.glued(index + 1) and line.glued(index + 2):
        yield part, end


def _year_first(line: Line, index: int) -> Parts:
    year, end = line.values[index], index + 1
    if line.words[end] in (",",) and line.words[end + 1] in MONTHS:
        end += 1
    if line.words[end] in MONTHS:
        yield Part(year=year, month=MONTHS[line.words[end]]), end + 1
    if line.words[end] in _SEPARATORS:
        sign, second = line.words[end], end + 1
        month = MONTHS.get(line.words[second], line.values[second] if line.is_digits(second) else 0)
        if line.words[second + 1] == sign and (line.is_digits(second + 2) or line.words[second + 2] in MONTHS):
            day = MONTHS.get(line.words[second + 2])
            if day is not None:
                yield Part(year=year, month=day, day=month), second + 3
            elif month:
                yield Part(year=year, month=month, day=line.values[second + 2]), second + 3
        if 1 <= month <= 12 and sign != ".":
            yield Part(year=year, month=month), second + 1
    if unit_at(line, index + 1) == Grain.QUARTER:
        return
    yield Part(year=year), index + 1


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


def _year_of_month(month: int, which: int, word: str, today: date) -> int:
    if which < 0:
        return today.year if month < today.month else today.year - 1
    if which == 0:
        return today.year
    return today.year if month > today.month else today.year + 1
