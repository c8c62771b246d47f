"""Stretches of the calendar by name: the week, this quarter, next 3 weeks, the weekend, the end of the month."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from services.times.calendar_dates import full_year
from services.times.durations import amount_at, unit_at
from services.times.holidays import holiday_at
from services.times.lexicon import ABBREVIATED_EDGES, EDGES, MONTHS, SEASONS, WEEKDAYS, WHICH
from services.times.parts import Part, Span
from services.times.readings import Grain
from services.times.spans import season_span, unit_span, weekend_span
from services.times.tokens import NUMBER, Line

_CALENDAR = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR)
_LONG = (Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR, "fortnight")
_CLOCK = (Grain.SECOND, Grain.MINUTE, Grain.HOUR)
_MOST_COUNT = 1000
Parts = Iterator[tuple[Part, int]]


def edges_at(line: Line, index: int, today: date) -> Parts:
    """`end of …`, `early in …`, `rest of the week`, `EOM`."""
    word = line.words[index]
    if word in ABBREVIATED_EDGES:
        edge, grain = ABBREVIATED_EDGES[word]
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
    """`the week`, `q3`, `year 2008`, `week of …`, `weekend`, `month after next`."""
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
    """`q3`, `cy18`, `year 2008`, `calendar year 2008`."""
    word, value, digits = line.words[index], line.values[index + 1], line.words[index + 1]
    if word == "q" and line.glued(index + 1) and 1 <= value <= 4:
        yield Part(nth=(value, Grain.QUARTER)), index + 2
    elif word == "cy" and len(digits) in (2, 4):
        yield Part(year=full_year(digits)), index + 2
    elif word == "year" and len(digits) == 4:
        yield Part(year=value), index + 2


def weekend_ends(line: Line, index: int) -> int:
    """Where a `weekend` or `week-end` at `index` ends; 0 when there is none."""
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
    """`this`, `next`, `last` … and what they stand before."""
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
    """`next 3 weeks`, `last two days`, `next couple of weeks`, `coming 5 minutes`."""
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
