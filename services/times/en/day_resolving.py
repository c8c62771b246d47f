"""Resolution of days: the coming Friday, the 3rd of next month, the last Monday in May."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from services.times.words.holidays import LENGTHS, day_of, nth_weekday
from services.times.words.parts import (
    Part,
    Span,
    month_span,
    one_day,
    passed_date,
    unit_span,
    weekend_span,
    without,
    year_span,
)
from services.times.words.readings import Grain, TimeProblem, days_in_month

_DAY = timedelta(days=1)
_DAY_BEGINS = 4
_YEARS_AHEAD = 12
"""Range of years that contains every date, including 29 February around 2100."""


class NoSuchDay(ValueError):
    """The calendar has no such day, such as 30 February or a fifth Monday."""


Found = tuple[Span, TimeProblem | None]


def day_of_part(part: Part, today: date, hour: int = 12) -> Found | None:
    """Days of `part` with their problem, if any; None if it specifies no day. Raises NoSuchDay, and OverflowError or
    ValueError outside the calendar. `hour` is the current hour."""
    if "nth" in part:
        return _nth(part, today), None
    return _without_nth(part, today, hour)


def _without_nth(part: Part, today: date, hour: int = 12) -> Found | None:
    if "holiday" in part:
        return _checked_weekday(part, _holiday(part, today), today)
    if "span" in part:
        return None if "which" in part else _within(part, part["span"], today)
    if "month" in part:
        return None if "which" in part and "day" not in part else _in_month(part, today)
    if "year" in part:
        return None if "day" in part or "weekday" in part else (year_span(part["year"]), None)
    if "day" in part:
        return _checked_weekday(part, _day_of_month(part["day"], today), today)
    if "weekday" in part:
        return one_day(_weekday(part["weekday"], part.get("which"), today, hour)), None
    return None


def edge_day(edge: str, span: Span, today: date) -> datetime | tuple[Span, date]:
    """Beginning, middle or end of a period: its span (Span) and a representative day. For a single day: a time."""
    days = (span.end - span.start).days
    if edge == "rest":
        return Span(max(span.start, today), span.end, Grain.DAY), max(span.start, today)
    if days == 1:
        at = {"begin": time(9), "middle": time(12), "end": time(23, 59, 59)}[edge]
        return datetime.combine(span.start, at)
    if span.grain == Grain.YEAR and days > 300:
        year = span.start.year
        first, last = {"begin": (1, 3), "middle": (5, 8), "end": (9, 12)}[edge]
        stretch = Span(date(year, first, 1), month_span(year, last).end, Grain.MONTH)
        return stretch, {"begin": span.start, "middle": date(year, 7, 2), "end": span.end - _DAY}[edge]
    third = 3 if days <= 7 else 10
    start = {"begin": span.start, "middle": span.start + (days // 2) * _DAY, "end": span.end - third * _DAY}[edge]
    if edge == "end" and span.grain == Grain.MONTH and days <= 31:
        start = span.start + 20 * _DAY
    end = span.end if edge == "end" else start + third * _DAY
    day = {"begin": span.start, "middle": start, "end": span.end - _DAY}[edge]
    return Span(start, end, Grain.DAY), day


def _weekday(weekday: int, which: int | None, today: date, hour: int) -> date:
    """The coming weekday, or the weekday of the week `which`. Today's weekday means next week, except early in the
    morning, which counts as the night before."""
    if which is None and hour < _DAY_BEGINS and weekday == today.isoweekday():
        return today
    coming = today + ((weekday - today.isoweekday() - 1) % 7 + 1) * _DAY
    monday = today - (today.isoweekday() - 1) * _DAY
    if which == 0:
        return today + (weekday - today.isoweekday()) % 7 * _DAY
    if which == 1:
        return monday + (7 + weekday - 1) * _DAY
    if which == -1:
        return today - ((today.isoweekday() - weekday - 1) % 7 + 1) * _DAY
    return coming + {None: 0, 2: 7, 3: 14}[which] * _DAY


def _day_of_month(day: int, today: date) -> Span:
    """Next such day of the month, today included. Raises NoSuchDay."""
    found = day_on_weekday(day, None, today)
    if found is None:
        raise NoSuchDay
    return found


def day_on_weekday(day: int, weekday: int | None, today: date) -> Span | None:
    """Next such day of the month on `weekday`, or on any if None, today included; None if there is none."""
    year, month = today.year, today.month
    for _ in range(12 * _YEARS_AHEAD):
        if 1 <= day <= days_in_month(year, month):
            found = date(year, month, day)
            if found >= today and weekday in (None, found.isoweekday()):
                return one_day(found)
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return None


def _checked_weekday(part: Part, span: Span, today: date) -> Found:
    """`span`, with AMBIGUOUS if `part` also names a weekday that is not in it; without a year perhaps the same date on
    that weekday in the last month."""
    weekday = part.get("weekday")
    if weekday is None or (weekday - span.start.isoweekday()) % 7 < (span.end - span.start).days:
        return span, None
    past = (
        None if "year" in part else passed_date(span.start, weekday, today, has_month="day" in part and "month" in part)
    )
    return (span, TimeProblem.AMBIGUOUS) if past is None else (one_day(past), None)


def _in_month(part: Part, today: date) -> Found:
    month, year, day = part["month"], part.get("year"), part.get("day")
    if not 1 <= month <= 12:
        raise NoSuchDay
    if day is None:
        if year is None:
            year = today.year if month >= today.month else today.year + 1
        span = month_span(year, month)
        if "weekday" in part:
            return _within(Part(weekday=part["weekday"]), span, today)
        return span, None
    span = one_day(_date(year, month, day, today))
    found = _checked_weekday(part, span, today)
    if found[1] is not None and part.get("is_numeric") and day <= 12:
        swapped = _date(year, day, month, today)
        if swapped.isoweekday() == part["weekday"]:
            return one_day(swapped), None
    return found


def _date(year: int | None, month: int, day: int, today: date) -> date:
    """The date; without a year in the next year that contains it, today included. Raises NoSuchDay."""
    years = range(today.year, min(today.year + _YEARS_AHEAD, 10_000)) if year is None else (year,)
    for one in years:
        if 1 <= one <= 9999 and 1 <= day <= days_in_month(one, month):
            found = date(one, month, day)
            if year is not None or found >= today:
                return found
    raise NoSuchDay


def _within(part: Part, span: Span, today: date) -> Found:
    """Days that `part` names within a period, with AMBIGUOUS if they contradict it: Wednesday of next week, the 3rd of
    next month, March next year."""
    days = (span.end - span.start).days
    if "month" in part:
        if span.grain != Grain.YEAR:
            inner = _in_month(without(part, "span"), today)
            if inner[0].start <= span.start < inner[0].end or span.start <= inner[0].start < span.end:
                return inner
            return inner[0], TimeProblem.AMBIGUOUS
        whole = without(part, "span")
        whole["year"] = span.start.year
        return _in_month(whole, today)
    if "day" in part:
        return _day_within(part["day"], span, today)
    if "weekday" not in part:
        return span, None
    weekday = part["weekday"]
    if days == 1:
        if span.start.isoweekday() == weekday:
            return span, None
        return span, TimeProblem.AMBIGUOUS
    return one_day(span.start + (weekday - span.start.isoweekday()) % 7 * _DAY), None


def _day_within(day: int, span: Span, today: date) -> Found:
    if span.grain == Grain.DAY and (span.end - span.start).days == 1:
        return span, None if span.start.day == day else TimeProblem.AMBIGUOUS
    start = span.start
    for _ in range(2):
        if not 1 <= day <= days_in_month(start.year, start.month):
            raise NoSuchDay
        found = start.replace(day=day)
        if found >= today or not span.is_loose or start != span.start:
            break
        start = month_span(start.year, start.month).end
    return one_day(found), None


def _holiday(part: Part, today: date) -> Span:
    name, which, year = part["holiday"], part.get("which"), part.get("year")
    if "span" in part and part["span"].grain == Grain.YEAR:
        year = part["span"].start.year
    length = LENGTHS.get(name, 1)
    if year is not None:
        day = day_of(name, year)
        if day is None:
            raise NoSuchDay
        return Span(day, day + length * _DAY, Grain.DAY)
    order = range(-_YEARS_AHEAD, 2) if which == -1 else range(-1, _YEARS_AHEAD)
    days = [day for step in order if (day := day_of(name, today.year + step)) is not None]
    if which == -1:
        past = [day for day in days if day + length * _DAY <= today]
        if past:
            return Span(past[-1], past[-1] + length * _DAY, Grain.DAY)
    coming = [day for day in days if (day > today if which == 1 else day + length * _DAY > today)]
    if not coming or which == -1:
        raise NoSuchDay
    return Span(coming[0], coming[0] + length * _DAY, Grain.DAY)


def _nth(part: Part, today: date) -> Span:
    number, what = part["nth"]
    rest = without(part, "nth", "weekday", "edge")
    if number == 0:
        return _around(what, part, today)
    if what == Grain.QUARTER:
        return _quarter(number, rest, today)
    found = _without_nth(rest, today)
    container = found[0] if found is not None else _this_month(today)
    if "weekday" in part and what == Grain.WEEK:
        what = f"weekday {part['weekday']}"
    day = _nth_within(number, what, container)
    if container.is_loose and day.end <= today:
        following = month_span(container.start.year, container.start.month).end
        day = _nth_within(number, what, month_span(following.year, following.month))
    return day


def _this_month(today: date) -> Span:
    span = month_span(today.year, today.month)
    return Span(span.start, span.end, span.grain, is_loose=True)


def _around(what: str, part: Part, today: date) -> Span:
    """Week or weekend that contains or is next to the rest of the phrase: `week of Feb 4`, `weekend of Halloween`.
    Raises NoSuchDay."""
    rest = without(part, "nth")
    found = _without_nth(rest, today)
    if found is None:
        raise NoSuchDay
    if what == "weekend":
        near = found[0].start + (7 if found[0].start.isoweekday() >= 4 else 0) * _DAY
        return weekend_span(-1, near)
    return unit_span(Grain.WEEK, 0, 1, found[0].start)


def _quarter(number: int, rest: Part, today: date) -> Span:
    found = _without_nth(rest, today)
    if not -4 <= number <= 4:
        raise NoSuchDay
    quarter = number - 1 if number > 0 else 4 + number
    year = today.year if found is None else found[0].start.year
    span = unit_span(Grain.QUARTER, 0, 1, date(year, 3 * quarter + 1, 1))
    return (
        span
        if (found is not None and not found[0].is_loose) or span.end > today
        else unit_span(Grain.QUARTER, 4, 1, span.start)
    )


def _nth_within(number: int, what: str, container: Span) -> Span:
    """The nth day, weekday, week or weekend within a period; negative counts from the end. Raises NoSuchDay if it is
    outside the period."""
    start, end = container.start, container.end
    if what.startswith("weekday "):
        weekday = int(what.split()[1])
        if container.grain == Grain.MONTH and (end - start).days <= 31:
            try:
                return one_day(nth_weekday(start.year, start.month, weekday, number))
            except ValueError as error:
                raise NoSuchDay from error
        first = start + (weekday - start.isoweekday()) % 7 * _DAY
        last = end - _DAY - ((end - _DAY).isoweekday() - weekday) % 7 * _DAY
        return _checked(
            one_day(first + 7 * (number - 1) * _DAY if number > 0 else last + 7 * (number + 1) * _DAY), container
        )
    count, _, unit = what.rpartition(" ")
    many = int(count) if count else 1
    if unit == Grain.DAY:
        day = start + many * (number - 1) * _DAY if number > 0 else end + many * number * _DAY
        return _checked(Span(day, day + many * _DAY, Grain.DAY), container)
    if unit == Grain.MONTH:
        return _checked(unit_span(Grain.MONTH, number - 1 if number > 0 else 12 + number, many, start), container)
    if unit == "weekday":
        return _checked(one_day(_nth_workday(number, container)), container)
    monday = start + (8 - start.isoweekday()) % 7 * _DAY
    if number < 0:
        last = end - (end.isoweekday() + 6) * _DAY
        monday = last + 7 * _DAY * (number + 1) - 7 * (many - 1) * _DAY
    else:
        monday += 7 * many * (number - 1) * _DAY
    if unit == "weekend":
        saturday = nth_weekday(start.year, start.month, 6, number)
        return Span(saturday, saturday + 2 * _DAY, Grain.DAY)
    return _checked(Span(monday, monday + 7 * many * _DAY, Grain.WEEK), container)


def _nth_workday(number: int, container: Span) -> date:
    days = [container.start + step * _DAY for step in range((container.end - container.start).days)]
    working = [day for day in days if day.isoweekday() <= 5]
    try:
        return working[number - 1 if number > 0 else number]
    except IndexError as error:
        raise NoSuchDay from error


def _checked(span: Span, container: Span) -> Span:
    if not container.start <= span.start < container.end:
        raise NoSuchDay
    return span
