"""Holidays: fixed dates, nth weekdays, days relative to Easter, and lunar calendars."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cache

from config.word_tables import word_tables
from services.times.words.readings import days_in_month
from services.times.words.tokens import NUMBER, WORD, Line

_FIRST_YEAR = 1900
LAST_DAY = 0
"""The last day of a month, the 29th or 30th."""


def lunar_date(year: int, month: int, day: int, leap: bool = False) -> date | None:
    """Gregorian date of a day in the lunar year that begins in `year`; None if it does not exist or is outside the
    years 1900 to 2100."""
    begin = _new_year(year)
    if begin is None or not 1 <= month <= 12:
        return None
    offset = 0
    for number, days, is_leap in _lunar_years()[year - _FIRST_YEAR][1]:
        if number == month and is_leap == leap:
            return begin + timedelta(days=offset + (day or days) - 1) if day <= days else None
        offset += days
    return None


def lunar_day_from(today: date, month: int, day: int, leap: bool = False) -> date | None:
    """Next such day of the lunar calendar, today included; None without such a day within some years. The last lunar
    months are in the next Gregorian year."""
    for year in range(today.year - 1, today.year + (40 if leap else 6)):
        found = lunar_date(year, month, day, leap)
        if found is not None and found >= today:
            return found
    return None


def clear_and_bright(year: int) -> date:
    """清明: solar longitude 15 degrees, 4 to 6 April. Valid for 1900 to 2100."""
    return date(year, 4, _term(year, 5.59, 4.81))


def winter_solstice(year: int) -> date:
    """冬至: 21 to 23 December. Valid for 1900 to 2100, except 1984."""
    return date(year, 12, _term(year, 22.63, 21.94) - (year == 2021))


def _term(year: int, in_1900: float, in_2000: float) -> int:
    """Day of the month of a solar term: `in_1900` or `in_2000`, its value at the start of the century, advanced by the
    mean motion of the sun."""
    century, since_then = (2000, in_2000) if year >= 2000 else (1900, in_1900)
    passed = year - century
    leap_days = passed // 4 - (year >= 2100)
    return int(passed * 0.2422 + since_then) - leap_days


def _new_year(year: int) -> date | None:
    years = _lunar_years()
    return years[year - _FIRST_YEAR][0] if 0 <= year - _FIRST_YEAR < len(years) else None


def _months(code: int) -> list[tuple[int, int, bool]]:
    """Number, length in days and leap flag of each month of a year."""
    months: list[tuple[int, int, bool]] = []
    for number in range(1, 13):
        months.append((number, 30 if code >> (16 - number) & 1 else 29, False))
        if code & 0xF == number:
            months.append((number, 30 if code >> 16 else 29, True))
    return months


@cache
def _lunar_years() -> list[tuple[date, list[tuple[int, int, bool]]]]:
    """First day and months of all lunar years in the table."""
    day, years = date(1900, 1, 31), []
    for code in " ".join(word_tables("holidays")["lunar_years"]).split():
        months = _months(int(code, 16))
        years.append((day, months))
        day += timedelta(days=sum(length for _, length, _ in months))
    return years


_HEBREW_EPOCH = 1_373_427
"""Days from the epoch of the Hebrew calendar to the year 1 of `date.toordinal`."""
_ISLAMIC_EPOCH = 227_015
"""Ordinal of the first day of the Islamic calendar."""


def hebrew_day(year: int, month: int, day: int, shift: int) -> date:
    """Gregorian date in `year` of a day of the Hebrew calendar (month 1 is Nisan, 7 Tishri), moved by `shift` days; one
    of Tevet (10) may fall in `year + 1`. The day is not checked. Raises ValueError for a month that the year does not
    have."""
    hebrew_year = year + 3761 if 7 <= month <= 10 else year + 3760
    start = _hebrew_new_year(hebrew_year)
    length = _hebrew_new_year(hebrew_year + 1) - start
    return date.fromordinal(start + _days_before_month(hebrew_year, length, month) + day - 1 + shift)


def islamic_day(year: int, month: int, day: int) -> date | None:
    """First Gregorian date in `year` of a day of the tabular Islamic calendar; observation of the moon can move it by a
    day. None if the year has no such day."""
    about = int((year - 622) * 33 / 32)
    for islamic_year in range(max(1, about - 1), about + 3):
        before = (islamic_year - 1) * 354 + (3 + 11 * islamic_year) // 30 + (59 * (month - 1) + 1) // 2
        ordinal = _ISLAMIC_EPOCH + before + day - 1
        found = date.fromordinal(ordinal)
        if found.year == year:
            return found
    return None


def _hebrew_new_year(year: int) -> int:
    """Ordinal of 1 Tishri of the Hebrew `year`."""
    return _elapsed(year) + _correction(year) - _HEBREW_EPOCH


def _elapsed(year: int) -> int:
    """Days from the Hebrew epoch to the year's first new moon, postponed from forbidden weekdays."""
    months = (235 * year - 234) // 19
    parts = 12_084 + 13_753 * months
    days = 29 * months + parts // 25_920
    return days + 1 if (3 * (days + 1)) % 7 < 3 else days


def _correction(year: int) -> int:
    """Days by which the Hebrew new year is postponed to keep the lengths of years valid: 0 to 2."""
    before, this, after = _elapsed(year - 1), _elapsed(year), _elapsed(year + 1)
    if after - this == 356:
        return 2
    return 1 if this - before == 382 else 0


def _days_before_month(year: int, length: int, month: int) -> int:
    """Days from 1 Tishri to the first of `month` in a Hebrew year of that length."""
    leap = (7 * year + 1) % 19 < 7
    long_heshvan, short_kislev = length % 10 == 5, length % 10 == 3
    months = [30, 30 if long_heshvan else 29, 29 if short_kislev else 30, 29, 30, 30 if leap else 29]
    if leap:
        months.append(29)
    months += [30, 29, 30, 29, 30, 29]
    order = [7, 8, 9, 10, 11, 12] + ([13] if leap else []) + [1, 2, 3, 4, 5, 6]
    return sum(months[: order.index(month)])


LENGTHS: Mapping[str, int] = {"hanukkah": 8, "ramadan": 30, "passover": 9, "sukkot": 8, "lent": 46}
"""Lengths in days of holidays that last more than one."""
_Rule = Callable[[int], date | None]
_LONGEST_NAME = 6
_IGNORED = frozenset(("the", "'", "-", "’", "."))


def day_of(name: str, year: int) -> date | None:
    """First day of the holiday in `year`; None if it is unknown or absent in that year."""
    rule = _tables()[1].get(name)
    return rule(year) if rule is not None and 1 < year < 9999 else None


def holiday_at(line: Line, index: int) -> tuple[str, int] | None:
    """Longest holiday name that starts at `index`, with its end; None without a name. The name is the first spelling in
    the tables."""
    word = line.words[index]
    if (line.kinds[index] != WORD and line.kinds[index] != NUMBER) or word not in _first_words():
        return None
    words: list[str] = []
    found, end = None, index
    while len(words) < _LONGEST_NAME and end < line.size:
        word = line.words[end]
        end += 1
        if word not in _IGNORED:
            words.append(word)
            name = _tables()[0].get(" ".join(words))
            if name is not None:
                found = (name, end)
    return found


def easter(year: int) -> date:
    """Western Easter Sunday of `year` (Gregorian computus)."""
    golden, (century, of_century) = year % 19, divmod(year, 100)
    leap_centuries, rest = divmod(century, 4)
    correction = (8 * century + 13) // 25
    moon = (19 * golden + century - leap_centuries - correction + 15) % 30
    leap, of_leap = divmod(of_century, 4)
    to_sunday = (32 + 2 * rest + 2 * leap - moon - of_leap) % 7
    late = (golden + 11 * moon + 19 * to_sunday) // 433
    month = (moon + to_sunday - 7 * late + 90) // 25
    return date(year, month, (moon + to_sunday - 7 * late + 33 * month + 19) % 32)


def orthodox_easter(year: int) -> date:
    """Orthodox Easter Sunday of `year` as a Gregorian date."""
    moon = (19 * (year % 19) + 15) % 30
    weekday = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
    month, day = divmod(moon + weekday + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The nth weekday of a month; negative counts from the end. Raises ValueError if it does not exist."""
    if nth > 0:
        first = date(year, month, 1)
        day = first + timedelta(days=(weekday - first.isoweekday()) % 7 + 7 * (nth - 1))
    else:
        last = (date(year, month, 28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        day = last - timedelta(days=(last.isoweekday() - weekday) % 7 + 7 * (-nth - 1))
    if day.month != month:
        raise ValueError(f"no such weekday in {year}-{month}")
    return day


def _tax_day(year: int) -> date:
    """US Tax Day: 15 April, postponed by weekends and by the observed Emancipation Day."""
    day = date(year, 4, 15)
    while day.isoweekday() > 5 or day == _emancipation_day(year):
        day += timedelta(days=1)
    return day


def _emancipation_day(year: int) -> date:
    day = date(year, 4, 16)
    return day + timedelta(days={6: -1, 7: 1}.get(day.isoweekday(), 0))


def _professionals_day(year: int) -> date:
    """Administrative Professionals Day: Wednesday of the last full week of April."""
    return nth_weekday(year, 4, 6, -1) - timedelta(days=3)


def _advent(year: int) -> date:
    """First Sunday of Advent, the fourth before Christmas."""
    eve = date(year, 12, 24)
    return eve - timedelta(days=eve.isoweekday() % 7 + 21)


def _remembrance(year: int) -> date | None:
    """First day of Yom HaShoah: the evening before 27 Nisan, moved away from Sabbaths. None if Passover is unknown in
    that year."""
    day = _moved(year, "passover", 13)
    return None if day is None else day - timedelta(days=0 if day.isoweekday() > 5 else 1)


def _fixed(year: int, month: int, day: int) -> date | None:
    """The date; None for 29 February of other years."""
    return date(year, month, day) if day <= days_in_month(year, month) else None


def _moved(year: int, holiday: str, days: int) -> date | None:
    """The day `days` after another holiday; None if that is unknown."""
    day = day_of(holiday, year)
    return None if day is None else day + timedelta(days=days)


_OTHERS: Mapping[str, _Rule] = {
    "easter|easter sunday|easter day": easter,
    "orthodox easter|orthodox easter sunday|orthodox easter day": orthodox_easter,
    "tax day": _tax_day,
    "emancipation day": _emancipation_day,
    "administrative professionals day|administrative professional day|secretaries day|admin day": _professionals_day,
    "advent|first advent|advent sunday": _advent,
    "yom hashoah|holocaust day|holocaust remembrance day": _remembrance,
}
_OF_TABLES: Mapping[str, Callable[..., date | None]] = {
    "fixed": _fixed,
    "nth_weekday": nth_weekday,
    "lunar": lunar_date,
    "hebrew": hebrew_day,
    "islamic": islamic_day,
}
"""Function of the year and the numbers of a row, by table."""


@cache
def _tables() -> tuple[dict[str, str], dict[str, _Rule]]:
    """Maps of spelling to name, and of name to rule."""
    spellings: dict[str, str] = {}
    rules: dict[str, _Rule] = {}

    def add(names: str, rule: Callable[..., date | None], *values: int | str) -> None:
        spelled = names.split("|")
        rules[spelled[0]] = lambda year: rule(year, *values)
        for spelling in spelled:
            spellings[" ".join(spelling.replace("'", " ").split())] = spelled[0]

    tables = word_tables("holidays")
    for table, of_year in _OF_TABLES.items():
        for row in tables[table]:
            numbers = [int(word) for word in row.split() if word.lstrip("-").isdigit()]
            add(row.split(" ", len(numbers))[-1], of_year, *numbers)
    for names, rule in _OTHERS.items():
        add(names, rule)
    for row in tables["relative"]:
        anchor, days, names = re.split(r" (-?\d+) ", row, maxsplit=1)
        add(names, _moved, anchor, int(days))
    return spellings, rules


@cache
def _first_words() -> frozenset[str]:
    return frozenset(spelling.split(" ", 1)[0] for spelling in _tables()[0])
