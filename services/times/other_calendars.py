"""Days of calendars that follow the moon, by their arithmetic rules."""

from __future__ import annotations

from datetime import date

_HEBREW_EPOCH = 1_373_427
"""Days before the year 1 of `date.toordinal` from which the Hebrew years are counted."""
_ISLAMIC_EPOCH = 227_015
"""The ordinal of the first day of the Islamic calendar."""


def hebrew_day(year: int, month: int, day: int) -> date:
    """The Gregorian day in `year` of a Hebrew month (1 is Nisan, 7 Tishri) and day."""
    hebrew_year = year + 3761 if month >= 7 else year + 3760
    start = _hebrew_new_year(hebrew_year)
    length = _hebrew_new_year(hebrew_year + 1) - start
    return date.fromordinal(start + _days_before_month(hebrew_year, length, month) + day - 1)


def islamic_day(year: int, month: int, day: int) -> date | None:
    """The first Gregorian day in `year` of an Islamic month and day, by the tabular calendar: where the moon is seen,
    it can be a day earlier or later. None where the year has none."""
    about = int((year - 622) * 33 / 32)
    for islamic_year in range(max(1, about - 1), about + 3):
        before = (islamic_year - 1) * 354 + (3 + 11 * islamic_year) // 30 + (59 * (month - 1) + 1) // 2
        ordinal = _ISLAMIC_EPOCH + before + day - 1
        found = date.fromordinal(ordinal)
        if found.year == year:
            return found
    return None


def _hebrew_new_year(year: int) -> int:
    """The ordinal of 1 Tishri."""
    return _elapsed(year) + _correction(year) - _HEBREW_EPOCH


def _elapsed(year: int) -> int:
    """Days before the year's first new moon, moved off the weekdays that must not begin a year."""
    months = (235 * year - 234) // 19
    parts = 12_084 + 13_753 * months
    days = 29 * months + parts // 25_920
    return days + 1 if (3 * (days + 1)) % 7 < 3 else days


def _correction(year: int) -> int:
    """Keeps the year from being too long or too short."""
    before, this, after = _elapsed(year - 1), _elapsed(year), _elapsed(year + 1)
    if after - this == 356:
        return 2
    return 1 if this - before == 382 else 0


def _days_before_month(year: int, length: int, month: int) -> int:
    """Days from 1 Tishri to the first of the month."""
    leap = (7 * year + 1) % 19 < 7
    long_heshvan, short_kislev = length % 10 == 5, length % 10 == 3
    months = [30, 30 if long_heshvan else 29, 29 if short_kislev else 30, 29, 30, 30 if leap else 29]
    if leap:
        months.append(29)
    months += [30, 29, 30, 29, 30, 29]
    order = [7, 8, 9, 10, 11, 12] + ([13] if leap else []) + [1, 2, 3, 4, 5, 6]
    return sum(months[: order.index(month)])
