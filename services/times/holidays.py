"""Days with a name: fixed ones, the nth weekday of a month, those that hang on Easter, and on other calendars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import lru_cache

from services.times.holidays_table import FIXED, HEBREW, ISLAMIC, MOVED, NTH
from services.times.lunar import lunar_date
from services.times.other_calendars import hebrew_day, islamic_day
from services.times.tokens import NUMBER, WORD, Line

LENGTHS: Mapping[str, int] = {"hanukkah": 8, "ramadan": 30, "passover": 9, "sukkot": 8, "lent": 46}
"""Days of those that are longer than one."""
_Rule = Callable[[int], date | None]
_LONGEST_NAME = 6
_LEFT_OUT = frozenset(("the", "'", "-", "’", "."))


def day_of(name: str, year: int) -> date | None:
    """The (first) day of the holiday in `year`; None where that year has none or it is not known."""
    rule = _rules().get(name)
    return rule(year) if rule is not None and 1 < year < 9999 else None


def holiday_at(line: Line, index: int) -> tuple[str, int] | None:
    """The longest name of a holiday that begins at `index`, and where it ends."""
    word = line.words[index]
    if (line.kinds[index] != WORD and line.kinds[index] != NUMBER) or word not in _first_words():
        return None
    said: list[str] = []
    found, end = None, index
    while len(said) < _LONGEST_NAME and end < line.size:
        word = line.words[end]
        end += 1
        if word not in _LEFT_OUT:
            said.append(word)
            name = _spellings().get(" ".join(said))
            if name is not None:
                found = (name, end)
    return found


def easter(year: int) -> date:
    """Easter Sunday of the western churches (the Gregorian computus)."""
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
    """Easter Sunday of the eastern churches, as a Gregorian date."""
    moon = (19 * (year % 19) + 15) % 30
    weekday = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
    month, day = divmod(moon + weekday + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The nth (from the end where negative) weekday of a month. Raises ValueError where there is none."""
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
    """15 April, moved on by weekends and by Emancipation Day as it is kept."""
    day = date(year, 4, 15)
    while day.isoweekday() > 5 or day == _emancipation_day(year):
        day += timedelta(days=1)
    return day


def _emancipation_day(year: int) -> date:
    day = date(year, 4, 16)
    return day + timedelta(days={6: -1, 7: 1}.get(day.isoweekday(), 0))


def _professionals_day(year: int) -> date:
    """The Wednesday of the last full week of April."""
    return nth_weekday(year, 4, 6, -1) - timedelta(days=3)


def _clock_change(month: int, nth: int) -> _Rule:
    return lambda year: nth_weekday(year, month, 7, nth)


def _lunar(month: int, day: int) -> _Rule:
    return lambda year: lunar_date(year, month, day)


_OTHERS: Mapping[str, _Rule] = {
    "easter|easter sunday|easter day": easter,
    "orthodox easter|orthodox easter sunday|orthodox easter day": orthodox_easter,
    "tax day": _tax_day,
    "emancipation day": _emancipation_day,
    "administrative professionals day|administrative professional day|secretaries day|admin day": _professionals_day,
    "daylight saving start|daylight savings start|daylight saving start day": _clock_change(3, 2),
    "daylight saving end|daylight savings end|daylight saving end day": _clock_change(11, 1),
    "lent": lambda year: easter(year) - timedelta(days=46),
    "advent|first advent|advent sunday": lambda year: (
        date(year, 12, 24) - timedelta(days=date(year, 12, 24).isoweekday() % 7 + 21)
    ),
    "chinese new year|lunar new year|chinese lunar new year|chinese new year day|chinese lunar new year day": _lunar(
        1, 1
    ),
    "lantern festival": _lunar(1, 15),
    "dragon boat festival|dragon boat day": _lunar(5, 5),
    "mid autumn festival|moon festival|mid autumn": _lunar(8, 15),
    "purim": lambda year: _before_passover(year, 30),
    "yom hashoah|holocaust day|holocaust remembrance day": lambda year: _remembrance(year),
}


def _before_passover(year: int, days: int) -> date | None:
    passover = day_of("passover", year)
    return None if passover is None else passover - timedelta(days=days)


def _remembrance(year: int) -> date | None:
    """The evening before 27 Nisan, which is moved away from Sabbaths."""
    passover = day_of("passover", year)
    if passover is None:
        return None
    day = passover + timedelta(days=13)
    return day + timedelta(days={5: -2, 6: 0, 7: 0}.get(day.isoweekday(), -1) + (0 if day.isoweekday() != 5 else 1))


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, str], dict[str, _Rule]]:
    """Spelling → name, and name → rule."""
    spellings: dict[str, str] = {}
    rules: dict[str, _Rule] = {}

    def add(names: str, rule: _Rule) -> None:
        spelled = names.strip().split("|")
        rules[spelled[0]] = rule
        for spelling in spelled:
            spellings[" ".join(spelling.replace("'", " ").split())] = spelled[0]

    for row in FIXED.strip().splitlines():
        day, names = row.split(" ", 1)
        add(names, _fixed(*map(int, day.split("-"))))
    for row in NTH.strip().splitlines():
        month, weekday, nth, names = row.split(" ", 3)
        add(names, _nth(int(month), int(weekday), int(nth)))
    for names, rule in _OTHERS.items():
        add(names, rule)
    for row in MOVED.strip().splitlines():
        anchor, days, names = _split_moved(row)
        add(names, _moved(anchor, days))
    for row in HEBREW.strip().splitlines():
        month, day, shift, names = row.split(" ", 3)
        add(names, _hebrew(int(month), int(day), int(shift)))
    for row in ISLAMIC.strip().splitlines():
        month, day, names = row.split(" ", 2)
        add(names, _islamic(int(month), int(day)))
    return spellings, rules


def _split_moved(row: str) -> tuple[str, int, str]:
    words = row.split(" ")
    at = next(place for place, word in enumerate(words) if word.lstrip("-").isdigit())
    return " ".join(words[:at]), int(words[at]), " ".join(words[at + 1 :])


def _fixed(month: int, day: int) -> _Rule:
    def rule(year: int) -> date | None:
        try:
            return date(year, month, day)
        except ValueError:  # 29 February
            return None

    return rule


def _nth(month: int, weekday: int, nth: int) -> _Rule:
    return lambda year: nth_weekday(year, month, weekday, nth)


def _moved(anchor: str, days: int) -> _Rule:
    def rule(year: int) -> date | None:
        day = day_of(anchor, year)
        return None if day is None else day + timedelta(days=days)

    return rule


def _hebrew(month: int, day: int, shift: int) -> _Rule:
    return lambda year: hebrew_day(year, month, day) + timedelta(days=shift)


def _islamic(month: int, day: int) -> _Rule:
    return lambda year: islamic_day(year, month, day)


def _spellings() -> Mapping[str, str]:
    return _tables()[0]


def _rules() -> Mapping[str, _Rule]:
    return _tables()[1]


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    return frozenset(spelling.split(" ", 1)[0] for spelling in _spellings())
