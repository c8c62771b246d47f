"""English days and calendar periods: weekdays, today, 2012/8/10, Feb 18, this quarter, end of the month."""

from __future__ import annotations

from datetime import date, timedelta

from services.times.en.durations import amount_at, unit_at
from services.times.words.holidays import holiday_at
from services.times.words.lexicon import ABBREVIATED_EDGES, EDGES, MONTHS, ORDINALS, SEASONS, TODAY, WEEKDAYS, WHICH
from services.times.words.parts import Part, Parts, Span, one_day, season_span, unit_span, weekend_span, year_span
from services.times.words.readings import Grain, days_in_month
from services.times.words.tokens import NUMBER, ORDINAL, WORD, Line

_SEPARATORS = frozenset("-/.–")
_CENTURY_TURN = 50
"""Two-digit years from here on are in the 20th century."""
_MOST_DAY = 39
"""Larger numbers are not mistyped days of the month."""
_YEAR_WORDS = frozenset((",", "of", ".", "in", "'", "the", "year"))
_YEAR_SIGNS = _YEAR_WORDS | {"/", "-"}
_CENTURIES = (17, 18, 19, 20)


def figures_at(line: Line, index: int, *, day_first: bool) -> Parts:
    """Dates in figures that start at `index`: 2012/8/10, 8/12, 16.11.2016, 20200701, 2014-10, 2019/sep/01, 3-7-27.
    `day_first`: 3/4 is the 3rd of April."""
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
    """Dates at `index` that begin with a day or month in figures: 8/12, 09/2012, 16.11.2016, 3-7-27."""
    sign, first, second, end = line.words[index + 1], line.values[index], line.values[index + 2], index + 3
    is_glued = line.glued(index + 1) and line.glued(index + 2)
    if sign == "." and line.glued(index) and line.words[index - 1] == ".":  # part of a version or an address
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
    """Rest of a date at `index` after `year`: `-10-02`, `/sep/01`, `-23-Sep`, `-10`."""
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
    """Decade of the year at `index`: `1990s`, `1990 s`."""
    if len(line.words[index]) == 4 and line.values[index] % 10 == 0 and line.words[index + 1] == "s":
        start = date(line.values[index], 1, 1)
        yield Part(span=Span(start, year_span(start.year + 9).end, Grain.YEAR)), index + 2


def _day_month(first: int, second: int, *, day_first: bool) -> Part | None:
    """Two numbers as day and month, in the configured order unless only the other is valid; None if neither is."""
    day, month = (first, second) if day_first else (second, first)
    if month > 12 and day <= 12:
        return Part(day=month, month=day)
    if month > 12:
        return Part(day=day, month=month) if month <= 31 and day <= 31 else None
    if not 1 <= day <= 31 or not month:
        return None
    if day > days_in_month(2024, month):
        return Part(day=day, month=month)
    return Part(day=day, month=month, is_numeric=True) if day <= 12 else Part(day=day, month=month)


def month_at(line: Line, index: int) -> Parts:
    """Dates that begin with the month name at `index`: `Feb 18`, `march 3rd`, `october`, `Jan/3`, `Dec/2018`, with or
    without a year."""
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
    """Dates that begin with the day at `index`, before a month name: `15th of february`, `30 December`, `16. Nov.`,
    `22/Jan/2019`."""
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
    """Day of the month at `index`; None if the number is an hour, a year or too large."""
    kind, then = line.kinds[index], line.words[index + 1]
    if kind == ORDINAL or (kind == WORD and line.words[index] == "second"):
        return line.values[index] or 2
    if kind != NUMBER or (line.is_digits(index) and len(line.words[index]) > 2):
        return None
    is_clock = then in ("am", "pm", "o'clock") or (then in (":", "h") and line.glued(index + 1))
    return None if is_clock or not 1 <= line.values[index] <= _MOST_DAY else line.values[index]


def _with_year(line: Line, index: int, part: Part, *, bare: bool = False, signs: frozenset[str] = _YEAR_SIGNS) -> Parts:
    """`part` with a following year: 2015, , 2015, of 1987, '35, 88 CE, nineteen eighty six. Two digits count only if
    they are unambiguous, which excludes a month without a day (`bare`)."""
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
    """Full year of two or four digits; two digits from 50 on mean the 20th century."""
    year = int(digits)
    if len(digits) != 2:
        return year
    return year + (2000 if year < _CENTURY_TURN else 1900)


_CALENDAR = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR)
_LONG = (Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR, "fortnight")
_CLOCK = (Grain.SECOND, Grain.MINUTE, Grain.HOUR)
_MOST_COUNT = 1000


def edges_at(line: Line, index: int, today: date) -> Parts:
    """Beginnings, ends and rests of periods at `index`: `end of …`, `early in …`, `rest of the week`, `EOM`."""
    word = line.words[index]
    if word in ABBREVIATED_EDGES:
        edge, grain = ABBREVIATED_EDGES[word]
        if grain == Grain.DAY and (line.words[index + 1] in WEEKDAYS or line.words[index + 1] in TODAY or index > 0):
            yield Part(edge=edge), index + 1
        yield Part(edge=edge, span=unit_span(grain, 0, 1, today)), index + 1
    if word not in EDGES:
        return
    end = index + 1
    while line.words[end] in ("of", "the", "in", "around", "about", "-"):
        end += 1
    is_linked = end > index + 1
    unit = unit_at(line, end)
    if unit in _CALENDAR and line.words[end + 1] != "of":
        if is_linked:
            yield Part(edge=EDGES[word], span=unit_span(unit, 0, 1, today)), end + 1
    elif end < line.size:
        is_named = line.words[end] in MONTHS or line.words[end] in WHICH or line.words[end] == "today"
        if is_linked or (is_named and word not in ("rest", "remainder", "remaining")):
            yield Part(edge=EDGES[word]), end


def units_at(line: Line, index: int, today: date) -> Parts:
    """Calendar units at `index`: `the week`, `q3`, `year 2008`, `week of …`, `weekend`, `month after next`."""
    word, then = line.words[index], line.words[index + 1]
    if line.is_digits(index + 1):
        yield from _numbered(line, index)
    if weekend_ends(line, index):
        yield from _weekend(line, index, today)
    if word in ("week", "w") and then in ("of", "starting", "beginning", "commencing"):
        end = index + 2
        while line.words[end] in ("on", "the"):
            end += 1
        yield Part(nth=(0, Grain.WEEK)), end
    if word == "w" and then == "/" and line.words[index + 2] == "c":
        yield Part(nth=(0, Grain.WEEK)), index + 3
    unit = unit_at(line, index)
    if unit not in _LONG or len(word) == 1:
        return
    if then == "after" and line.words[index + 2] == "next":
        yield Part(span=unit_span(unit, 2, 1, today)), index + 3
    elif index and line.words[index - 1] in ("the", "of"):
        span = unit_span(unit, 0, 1, today)
        yield Part(span=Span(span.start, span.end, span.grain, is_loose=True)), index + 1


def _numbered(line: Line, index: int) -> Parts:
    """Numbered units at `index`: `q3`, `cy18`, `year 2008`."""
    word, value, digits = line.words[index], line.values[index + 1], line.words[index + 1]
    if word == "q" and line.glued(index + 1) and 1 <= value <= 4:
        yield Part(nth=(value, Grain.QUARTER)), index + 2
    elif word == "cy" and len(digits) in (2, 4):
        yield Part(year=full_year(digits)), index + 2
    elif word == "year" and len(digits) == 4:
        yield Part(year=value), index + 2


def weekend_ends(line: Line, index: int) -> int:
    """End of `weekend` or `week-end` at `index`; 0 for any other word."""
    if line.words[index] in ("weekend", "weekends"):
        return index + 1
    is_split = line.words[index : index + 3] == ["week", "-", "end"]
    return index + 3 if is_split else 0


def _weekend(line: Line, index: int, today: date) -> Parts:
    end = weekend_ends(line, index)
    if line.words[end] == "of":
        yield Part(nth=(0, "weekend")), end + 1
    if line.words[end] == "after" and line.words[end + 1] == "next":
        yield Part(span=weekend_span(2, today)), end + 2
    yield Part(span=weekend_span(0, today)), end


def which_at(line: Line, index: int, today: date) -> Parts:
    """Periods at `index` that begin with `this`, `next`, `last` and the like, with the following noun."""
    word = line.words[index]
    which, end = WHICH[word], index + 1
    if word == "this" and line.words[end] in ("coming", "past", "upcoming", "next"):
        which, end = (-1 if line.words[end] == "past" else 0), end + 1
    named, unit = line.words[end], unit_at(line, end)
    if line.kinds[end] == NUMBER or named in ("couple", "few"):
        if word not in ("last", "past") or named != "couple":
            yield from _several(line, index, which, end, today)
    elif named in WEEKDAYS:
        is_coming = word in ("upcoming", "following")
        yield Part(weekday=WEEKDAYS[named], which=0 if is_coming else which), end + 1
    elif named in MONTHS:
        yield Part(month=MONTHS[named], year=_year_of_month(MONTHS[named], which, today)), end + 1
    elif named in SEASONS or named in ("season", "seasons"):
        yield Part(span=season_span(named if named in SEASONS else "", which, today)), end + 1
    elif weekend_ends(line, end):
        yield Part(span=weekend_span(which, today)), weekend_ends(line, end)
    elif unit in _CALENDAR or unit in _LONG or unit == "decade":
        yield Part(span=unit_span(unit, which, 1, today)), end + 1
    elif (holiday := holiday_at(line, end)) is not None:
        yield Part(holiday=holiday[0], which=which), holiday[1]


def _several(line: Line, index: int, which: int, end: int, today: date) -> Parts:
    """Several units from `end` on, after `which`: `next 3 weeks`, `last two days`, `coming 5 minutes`."""
    if line.kinds[end] == NUMBER:
        count, after = line.values[end], end + 1
    else:
        count, after = (2 if line.words[end] == "couple" else 3), end + 1
        after += line.words[after] == "of"
    unit, word = unit_at(line, after), line.words[index]
    which = 1 if word == "coming" else which
    if not 0 < count < _MOST_COUNT or which == 0:
        return
    if unit in _CLOCK:
        if which > 0 and (amount := amount_at(line, end)) is not None:
            yield Part(length=amount[0].length, grain=amount[0].grain, deadline=True), amount[1]
    elif word == "upcoming":
        if unit in _CALENDAR:
            yield Part(span=unit_span(unit, count, 1, today)), after + 1
    elif unit in _CALENDAR or unit in _LONG or unit == "decade":
        yield Part(span=unit_span(unit, 1 if which > 0 else -count, count, today)), after + 1


def _year_of_month(month: int, which: int, today: date) -> int:
    if which == 0:
        return today.year
    is_this_year = month < today.month if which < 0 else month > today.month
    return today.year if is_this_year else today.year + which


_DATES_MOST_DAY = 31
_DATES_MOST_COUNT = 100
_DAY = timedelta(days=1)
_COUNTABLE = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, "weekend", "weekday")


def dates_at(line: Line, index: int, today: date, *, day_first: bool = False) -> Parts:
    """Days and periods that start at `index`, each with its end, usually longest first."""
    kind = line.kinds[index]
    if kind == NUMBER:
        yield from figures_at(line, index, day_first=day_first)
        yield from day_and_month_at(line, index)
    elif kind == ORDINAL:
        yield from _nth(line, index, line.values[index], index + 1)
        yield from day_and_month_at(line, index)
        if line.values[index] <= _DATES_MOST_DAY:
            yield Part(day=line.values[index]), index + 1
    elif kind == WORD:
        yield from _in_words(line, index, today)


def _in_words(line: Line, index: int, today: date) -> Parts:
    word = line.words[index]
    if word in ORDINALS or word in ("last", "penultimate"):
        yield from _counted(line, index, today)
    holiday = holiday_at(line, index)
    if holiday is not None:
        yield Part(holiday=holiday[0]), holiday[1]
    if word in MONTHS:
        yield from month_at(line, index)
    elif word in WEEKDAYS:
        yield from _weekday(line, index)
    elif word in TODAY:
        if TODAY[word] == 1 and line.words[index + 1] == "week":
            yield Part(span=one_day(today + (TODAY[word] + 7) * _DAY)), index + 2
        yield _named_day(word, today), index + 1
    elif word in WHICH and word != "last":
        yield from which_at(line, index, today)
    elif word == "day":
        yield from _neighbouring_day(line, index, today)
    elif word in SEASONS and word != "fall":
        yield Part(span=season_span(word, 0, today)), index + 1
    yield from edges_at(line, index, today)
    yield from units_at(line, index, today)


def _counted(line: Line, index: int, today: date) -> Parts:
    """Dates that start with an ordinal word or with `last`."""
    word = line.words[index]
    if word not in ORDINALS:
        if word == "last":
            yield from which_at(line, index, today)
        yield from _nth(line, index, -1 if word == "last" else -2, index + 1)
        return
    yield from _nth(line, index, ORDINALS[word], index + 1)
    if word != "second" or line.words[index + 1] not in ("last", "to"):
        yield from day_and_month_at(line, index)
        yield Part(day=ORDINALS[word]), index + 1


def _named_day(word: str, today: date) -> Part:
    part = Part(span=one_day(today + TODAY[word] * _DAY))
    if word in ("tonight", "tonite"):
        part["portion"] = "tonight"
    return part


def _weekday(line: Line, index: int) -> Parts:
    """Weekday at `index` with the words after it: `fri.`, `friday week`, `friday after next`, `friday next`."""
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


def _neighbouring_day(line: Line, index: int, today: date) -> Parts:
    """Day at `index` next to another: `day after tomorrow`, `day before yesterday`; at the end of the line also `day
    after` and `day before`, relative to today."""
    link, anchor = line.words[index + 1], line.words[index + 2]
    if link not in ("after", "before"):
        return
    step = 1 if link == "after" else -1
    if anchor == "the":
        anchor, index = line.words[index + 3], index + 1
    if anchor in TODAY:
        yield Part(span=one_day(today + (TODAY[anchor] + step) * _DAY)), index + 3
    elif index + 2 >= line.size:
        yield Part(span=one_day(today + step * _DAY)), index + 2


def _nth(line: Line, index: int, number: int, end: int) -> Parts:
    """The nth of a unit, to be resolved within the rest of the phrase: `first Tuesday`, `3rd last week`, `last day`,
    `first 2 weeks of`."""
    to_last = [word for word in line.words[end : end + 4] if word != "-"][:2] == ["to", "last"]
    if line.words[end] == "last" or to_last:
        number, end = -number, line.words.index("last", end) + 1
    word, unit = line.words[end], unit_at(line, end)
    if line.kinds[end] == NUMBER:
        unit = unit_at(line, end + 1)
        counted = 0 < line.values[end] < _DATES_MOST_COUNT and line.words[end + 2] in ("of", "in")
        if counted and unit in (Grain.DAY, Grain.WEEK, Grain.MONTH):
            yield Part(nth=(number, f"{line.values[end]} {unit}")), end + 2
    elif word in WEEKDAYS:
        is_dotted = line.words[end + 1] == "." and line.glued(end + 1)
        yield Part(nth=(number, f"weekday {WEEKDAYS[word]}")), end + 1 + is_dotted
    elif unit in _COUNTABLE and len(word) > 1:
        if unit == Grain.QUARTER or line.words[end + 1] in ("of", "in") or line.words[index] not in WHICH:
            yield Part(nth=(number, str(unit))), end + 1
    elif word in ("business", "working", "work") and unit_at(line, end + 1) == Grain.DAY:
        yield Part(nth=(number, "weekday")), end + 2
