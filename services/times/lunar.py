"""The Chinese lunar calendar of the years 1900 to 2100, and the feasts that go by the sun."""

from __future__ import annotations

from datetime import date, timedelta

_FIRST_YEAR = 1900
# One number for each year, in hexadecimal. The first digit is 1 where the leap month has 30 days, the next three have a
# bit for each month from the first to the twelfth, set where it has 30 days and not 29, and the last digit names the
# month that comes twice.
_TABLE = (
    "04bd8 04ae0 0a570 054d5 0d260 0d950 16554 056a0 09ad0 055d2 04ae0 0a5b6 0a4d0 0d250 1d255 0b540 0d6a0 0ada2 "
    "095b0 14977 04970 0a4b0 0b4b5 06a50 06d40 1ab54 02b60 09570 052f2 04970 06566 0d4a0 0ea50 16a95 05ad0 02b60 "
    "186e3 092e0 1c8d7 0c950 0d4a0 1d8a6 0b550 056a0 1a5b4 025d0 092d0 0d2b2 0a950 0b557 06ca0 0b550 15355 04da0 "
    "0a5b0 14573 052b0 0a9a8 0e950 06aa0 0aea6 0ab50 04b60 0aae4 0a570 05260 0f263 0d950 05b57 056a0 096d0 04dd5 "
    "04ad0 0a4d0 0d4d4 0d250 0d558 0b540 0b6a0 195a6 095b0 049b0 0a974 0a4b0 0b27a 06a50 06d40 0af46 0ab60 09570 "
    "04af5 04970 064b0 074a3 0ea50 06b58 05ac0 0ab60 096d5 092e0 0c960 0d954 0d4a0 0da50 07552 056a0 0abb7 025d0 "
    "092d0 0cab5 0a950 0b4a0 0baa4 0ad50 055d9 04ba0 0a5b0 15176 052b0 0a930 07954 06aa0 0ad50 05b52 04b60 0a6e6 "
    "0a4e0 0d260 0ea65 0d530 05aa0 076a3 096d0 04afb 04ad0 0a4d0 1d0b6 0d250 0d520 0dd45 0b5a0 056d0 055b2 049b0 "
    "0a577 0a4b0 0aa50 1b255 06d20 0ada0 14b63 09370 049f8 04970 064b0 168a6 0ea50 06aa0 1a6c4 0aae0 092e0 0d2e3 "
    "0c960 0d557 0d4a0 0da50 05d55 056a0 0a6d0 055d4 052d0 0a9b8 0a950 0b4a0 0b6a6 0ad50 055a0 0aba4 0a5b0 052b0 "
    "0b273 06930 07337 06aa0 0ad50 14b55 04b60 0a570 054e4 0d160 0e968 0d520 0daa0 16aa6 056d0 04ae0 0a9d4 0a2d0 "
    "0d150 0f252 0d520"
)
_YEARS = tuple(int(year, 16) for year in _TABLE.split())
LAST_DAY = 0
"""Stands for the last day of a month, the 29th or 30th."""


def lunar_date(year: int, month: int, day: int, leap: bool = False) -> date | None:
    """The day in the common calendar of a day of the lunar year that begins within `year`; None when there is no such
    day, or it is not within the years 1900 to 2100."""
    begin = _new_year(year)
    if begin is None or not 1 <= month <= 12:
        return None
    offset = 0
    for number, days, is_leap in _months(_YEARS[year - _FIRST_YEAR]):
        if number == month and is_leap == leap:
            return begin + timedelta(days=offset + (day or days) - 1) if day <= days else None
        offset += days
    return None


def lunar_day_from(today: date, month: int, day: int, leap: bool = False) -> date | None:
    """The next such day of the lunar calendar, today included. The last lunar months lie in the next common year."""
    for year in range(today.year - 1, today.year + (40 if leap else 6)):
        found = lunar_date(year, month, day, leap)
        if found is not None and found >= today:
            return found
    return None


def clear_and_bright(year: int) -> date:
    """清明: when the sun's longitude is 15 degrees, 4 to 6 April. Good for the years 1900 to 2100."""
    return date(year, 4, _term(year, 5.59, 4.81))


def winter_solstice(year: int) -> date:
    """冬至: 21 to 23 December. Good for the years 1900 to 2100, 1984 aside."""
    return date(year, 12, _term(year, 22.63, 21.94) - (year == 2021))


def _term(year: int, in_1900: float, in_2000: float) -> int:
    """The day of the month on which the sun comes to the same place, by its mean motion since the century began."""
    century, since_then = (2000, in_2000) if year >= 2000 else (1900, in_1900)
    passed = year - century
    leap_days = passed // 4 - (year >= 2100)
    return int(passed * 0.2422 + since_then) - leap_days


def _new_year(year: int) -> date | None:
    return _NEW_YEARS[year - _FIRST_YEAR] if 0 <= year - _FIRST_YEAR < len(_YEARS) else None


def _months(code: int) -> list[tuple[int, int, bool]]:
    """Number, days, and whether it is the leap month, of each month of a year."""
    months: list[tuple[int, int, bool]] = []
    for number in range(1, 13):
        months.append((number, 30 if code >> (16 - number) & 1 else 29, False))
        if code & 0xF == number:
            months.append((number, 30 if code >> 16 else 29, True))
    return months


def _new_years() -> tuple[date, ...]:
    """The first day of each lunar year of the table."""
    days, begins = date(1900, 1, 31), []
    for code in _YEARS:
        begins.append(days)
        days += timedelta(days=sum(length for _, length, _ in _months(code)))
    return tuple(begins)


_NEW_YEARS = _new_years()
