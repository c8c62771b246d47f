"""Days: weekdays, today and tomorrow, holidays, the last Friday of the month; and all other ways to name days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from services.times.calendar_dates import day_and_month_at, figures_at, month_at
from services.times.durations import unit_at
from services.times.holidays import holiday_at
from services.times.lexicon import MONTHS, ORDINALS, SEASONS, TODAY, WEEKDAYS, WHICH
from services.times.parts import Part
from services.times.readings import Grain
from services.times.spans import one_day, season_span
from services.times.stretches import edges_at, units_at, which_at
from services.times.tokens import NUMBER, ORDINAL, WORD, Line

_MOST_DAY = 31
_MOST_COUNT = 100
_DAY = timedelta(days=1)
_COUNTABLE = (Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.QUARTER, "weekend", "weekday")
Parts = Iterator[tuple[Part, int]]


def dates_at(line: Line, index: int, today: date, *, day_first: bool = False) -> Parts:
    """The days that begin at `index`, the longest readings first, each with where it ends."""
    kind = line.kinds[index]
    if kind == NUMBER:
        yield from figures_at(line, index, day_first=day_first)
        yield from day_and_month_at(line, index)
    elif kind == ORDINAL:
        yield from _nth(line, index, line.values[index], index + 1)
        yield from day_and_month_at(line, index)
        if line.values[index] <= _MOST_DAY:
            yield Part(day=line.values[index]), index + 1
    elif kind == WORD:
        yield from _worded(line, index, today)


def _worded(line: Line, index: int, today: date) -> Parts:
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
        yield _named_day(word, today), index + 1
    elif word in WHICH and word != "last":
        yield from which_at(line, index, today)
    elif word == "day":
        yield from _day_beside(line, index, today)
    elif word in SEASONS and word != "fall":
        yield Part(span=season_span(word, 0, today)), index + 1
    yield from edges_at(line, index, today)
    yield from units_at(line, index, today)


def _counted(line: Line, index: int, today: date) -> Parts:
    """What begins with an ordinal in words, or with `last`."""
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


def _day_beside(line: Line, index: int, today: date) -> Parts:
    """`day after tomorrow`, `day before yesterday`, `day after`."""
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
    """`first Tuesday`, `3rd last week`, `last day`, `third qtr`, `first 2 weeks of`."""
    to_last = [word for word in line.words[end : end + 4] if word != "-"][:2] == ["to", "last"]
    if line.words[end] == "last" or to_last:
        number, end = -number, line.words.index("last", end) + 1
    word, unit = line.words[end], unit_at(line, end)
    if line.kinds[end] == NUMBER:
        unit = unit_at(line, end + 1)
        counted = 0 < line.values[end] < _MOST_COUNT and line.words[end + 2] in ("of", "in")
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
