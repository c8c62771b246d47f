"""Stretches of the calendar: weeks, months, quarters, weekends, seasons, by how far they are from a day."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

from services.times.words.lexicon import SEASONS
from services.times.words.parts import Span
from services.times.words.readings import Grain, Length, shifted

_DAY = timedelta(days=1)
_MONTHS = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.YEAR: 12, "decade": 120, "century": 1200}


def unit_span(unit: Grain | str | None, which: int, count: int, today: date) -> Span:
    """`count` units, beginning with the one that is `which` units from the one that holds `today`. Weeks begin on
    Monday. Raises OverflowError outside of the calendar."""
    if unit in _MONTHS:
        months = _MONTHS[unit]
        first = (today.year * 12 + today.month - 1) // months * months
        start = _first_of(first + which * months)
        return Span(start, _first_of(first + (which + count) * months), Grain.YEAR if months >= 12 else Grain(unit))
    days = 1 if unit == Grain.DAY else 14 if unit == "fortnight" else 7
    start = today if unit == Grain.DAY else today - (today.isoweekday() - 1) * _DAY
    begin = start + which * days * _DAY
    return Span(begin, begin + count * days * _DAY, Grain.DAY if unit == Grain.DAY else Grain.WEEK)


def weekend_span(which: int, today: date) -> Span:
    """Saturday and Sunday of the week `which` weeks away."""
    monday = today - (today.isoweekday() - 1) * _DAY + which * 7 * _DAY
    return Span(monday + 5 * _DAY, monday + 7 * _DAY, Grain.DAY)


def one_day(day: date) -> Span:
    """That day alone."""
    return Span(day, day + _DAY, Grain.DAY)


def season_span(name: str, which: int, today: date) -> Span:
    """The season of that name that comes or is (0), the one after (1), or the one that is over (-1). Without a name:
    the season that is, or its neighbour."""
    starts = sorted({(date(year, *day), season) for year in _years(today) for season, day in SEASONS.items()})
    spans: list[tuple[Span, set[str]]] = []
    days = sorted({day for day, _ in starts})
    for begin, end in pairwise(days):
        names = {season for day, season in starts if day == begin}
        spans.append((Span(begin, end, Grain.DAY), names))
    named = [span for span, names in spans if not name or name in names]
    at = next(place for place, span in enumerate(named) if span.end > today)
    return named[at + which]


def _years(today: date) -> range:
    return range(max(1, today.year - 2), min(9999, today.year + 3))


def month_span(year: int, month: int) -> Span:
    """A whole month."""
    start = date(year, month, 1)
    return Span(start, _first_of(year * 12 + month), Grain.MONTH)


def year_span(year: int) -> Span:
    """A whole year. Raises OverflowError outside of the calendar."""
    return Span(_first_of(year * 12), _first_of(year * 12 + 12), Grain.YEAR)


def working_days_later(day: date, count: int) -> date:
    """The day from Monday to Friday that is so many of them later, or earlier where negative."""
    weeks, rest = divmod(min(abs(count), 100_000), 5)
    step = _DAY if count > 0 else -_DAY
    while day.isoweekday() > 5 and (weeks or rest):  # counting begins on a working day
        day -= step
    day += 7 * weeks * step
    for _ in range(rest):
        day += step
        while day.isoweekday() > 5:
            day += step
    return day


def moved(day: date, length: Length) -> date:
    """`day` by months and days later."""
    return shifted(datetime(day.year, day.month, day.day), length).date()  # noqa: DTZ001 - a day has no zone


def _first_of(month: int) -> date:
    year, month = divmod(month, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside of the calendar")
    return date(year, month + 1, 1)
