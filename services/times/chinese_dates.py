"""Dates in Chinese: 3月5日, 二零二六年十月一日, 2026-3-5, 农历八月十五, 春节前三天, and months and years."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from services.lazy_patterns import lazy_pattern
from services.times.chinese_days import Days, month_of, no_such_day, one_day, safe_day
from services.times.chinese_feasts import Feast, feast_at
from services.times.chinese_letters import LETTERS, NUMBER, number, whole
from services.times.chinese_months import day_of_month_at, month_at
from services.times.chinese_years import of_year_at, year_at
from services.times.lunar import lunar_date, lunar_day_from
from services.times.readings import days_in_month

_NUMERIC = lazy_pattern(
    r"(?<![\d./:-])(?:(?P<y>[12]\d{3})\s*(?P<sep>[-/.])\s*(?P<m>0?[1-9]|1[0-2])\s*(?P=sep)\s*(?P<d>3[01]|[12]\d|0?[1-9])(?![\d])"
    r"|(?P<a>\d{1,2})\s*(?P<sep2>[-/.])\s*(?P<b>\d{1,2})\s*(?P=sep2)\s*(?P<y2>[12]\d{3})(?!\d)"
    r"|(?P<y3>20\d\d)(?P<m3>0[1-9]|1[0-2])(?P<d3>0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?P<y4>[12]\d{3})\s*[-/]\s*(?P<m4>0?[1-9]|1[0-2])(?![\d:./-])"
    r"|(?P<m6>0?[1-9]|1[0-2])\.(?P<d6>3[01]|[12]\d|0?[1-9])(?=\s*(?:[日号]|[上下]午|[早晚]|凌晨|中午|傍晚))"
    r"|(?P<m5>0?[1-9]|1[0-2])/(?P<d5>3[01]|[12]\d|0?[1-9])(?![\d:/.])(?!\s*(?:的|之)?概率))(?:[日号])?"
)
_LUNAR = lazy_pattern(
    rf"(?P<said>(?:农历|阴历|旧历|夏历)的?\s*)?(?P<leap>闰)?(?P<month>正|冬|腊|[一]?十[一二]?|[二三四五六七八九]|1[0-2]|[1-9])月(?P<day>初[一二三四五六七八九十]|[一二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|\d{{1,2}}|[一二三四五六七八九])[日号]?(?![\d{LETTERS}点时分])"
)
_LUNAR_WORDS = lazy_pattern(r"(?:农历|阴历|旧历|夏历)的?\s*")
_GREAT_YEAR = lazy_pattern(r"(?:大年|年)初(?P<day>[一二三四五六七八九十])")
_OFFSET = lazy_pattern(
    rf"\s*的?(?:(?P<eve>前夕|前夜|前一晚(?=上|$))|(?P<way>[前后])\s*第?(?P<count>{NUMBER})\s*个?(?P<unit>天|日|周|星期|礼拜)(?!上|晚))"
)
_IN_BRACKETS = lazy_pattern(
    r"\s*的?[那这当]一?天|\s*[(,]?\s*(?:周|星期|礼拜)(?:[一二三四五六日]|天(?!气))(?![一二三四五六日、至到])\s*\)?"
)
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}


def date_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """The date, month or year that begins at `at`, and where it ends; without a year the next one, today included."""
    for rule in (_numeric_at, _lunar_at, _feast_at, of_year_at, month_at, day_of_month_at):
        found = rule(text, at, today)
        if found is not None:
            days, end = found
            if days.is_day:
                days, end = _offset(text, end, days)
                named = _IN_BRACKETS.match(text, end)
                end = named.end() if named else end
            return days, end
    return None


def _numeric_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    match = _NUMERIC.match(text, at)
    if match is None:
        return None
    if match["y4"]:
        return month_of(int(match["y4"]), int(match["m4"])), match.end()
    month, day = match["m5"] or match["m6"], match["d5"] or match["d6"]
    if month:
        return _coming_date(int(month), int(day), today), match.end()
    if match["y2"]:
        # Day and month, as numbers with the year behind them are written; the other way round only where it must be.
        first, second = int(match["a"]), int(match["b"])
        first, second = (second, first) if second > 12 else (first, second)
        return safe_day(int(match["y2"]), second, first), match.end()
    year, month, day = match["y"] or match["y3"], match["m"] or match["m3"], match["d"] or match["d3"]
    return safe_day(int(year), int(month), int(day)), match.end()


def _coming_date(month: int, day: int, today: date) -> Days:
    """The next such date, today included; the 29th of February within eight years."""
    for year in range(today.year, min(today.year + 9, 9998)):
        if day <= days_in_month(year, month) and date(year, month, day) >= today:
            return _dated(date(year, month, day))
    return safe_day(today.year, month, 32)


def _dated(day: date) -> Days:
    after = day + timedelta(days=1)
    return Days(day, after, again=lambda: _coming_date(day.month, day.day, after))


def _lunar_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    great = _GREAT_YEAR.match(text, at)
    if great:
        return _lunar(1, whole(great["day"]), False, None, today), great.end()
    said = _LUNAR_WORDS.match(text, at)
    year, start = year_at(text, said.end() if said else at, today)
    match = _LUNAR.match(text, start)
    if match is None or not (said or match["said"] or _is_lunar(match)):
        return None
    month = _LUNAR_MONTHS.get(match["month"]) or whole(match["month"])
    day = whole(match["day"].removeprefix("初"))
    return _lunar(month, day, bool(match["leap"]), year, today), match.end()


def _is_lunar(match: re.Match[str]) -> bool:
    """Whether it is written as only lunar dates are: 腊月, 初五, 廿五 without 日 or 号 behind it."""
    if match["leap"] or match["month"] in _LUNAR_MONTHS or match["day"].startswith("初"):
        return True
    return match["day"].startswith("廿") and not match.group().endswith(("日", "号"))


def _lunar(month: int, day: int, leap: bool, year: int | None, today: date) -> Days:
    if year is not None:
        found = lunar_date(year, month, day, leap)
        return one_day(found) if found else no_such_day()
    found = lunar_day_from(today, month, day, leap)
    if found is None:
        return no_such_day()
    return Days(
        found, found + timedelta(days=1), again=lambda: _lunar(month, day, leap, None, found + timedelta(days=1))
    )


def _feast_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    lunar = _LUNAR_WORDS.match(text, at)
    year, start = (None, lunar.end()) if lunar else year_at(text, at, today)
    if year is not None and text.startswith("的", start):
        start += 1
    named = feast_at(text, start)
    if named is None:
        return None
    feast, end = named
    if year is None:
        return _coming(feast, today), end
    found = feast.day(year) if 0 < year < 9999 else None
    if found is not None and found < today and year == today.year:
        following = feast.day(year + 1)
        # The lunar year ends within the next common one: this year's last evening can still be to come.
        found = following if following is not None and following.month <= 2 and found.month <= 2 else found
    return Days(found, found + timedelta(days=feast.length)) if found else no_such_day(), end


def _coming(feast: Feast, today: date) -> Days:
    found = feast.next_from(today)
    if found is None:
        return no_such_day()
    return Days(found, found + timedelta(days=feast.length), again=lambda: _coming(feast, found + timedelta(days=1)))


def _offset(text: str, at: int, days: Days) -> tuple[Days, int]:
    """So many days before or after a day: 春节前三天, 国庆节前夕."""
    match = _OFFSET.match(text, at)
    if match is None:
        return days, at
    if match["eve"]:
        distance = -1
    else:
        count = int(number(match["count"]) or 0)
        distance = count * (1 if match["unit"] in "天日" else 7) * (-1 if match["way"] == "前" else 1)
    if abs(distance) > 3660:
        return days, at
    again = days.again
    moved = timedelta(days=distance)
    return Days(days.first + moved, days.after + moved, again=_moved(again, moved), exists=days.exists), match.end()


def _moved(again: Callable[[], Days | None] | None, by: timedelta) -> Callable[[], Days | None] | None:
    def moved() -> Days | None:
        found = again() if again else None
        return Days(found.first + by, found.after + by, again=_moved(found.again, by)) if found else None

    return moved if again else None
