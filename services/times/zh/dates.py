"""Chinese dates and holidays: 3月5日, 2026-3-5, 农历八月十五, 春节前三天."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, partial

from config.word_tables import word_tables
from services.patterns import lazy_pattern
from services.times.words.holidays import (
    LENGTHS,
    clear_and_bright,
    day_of,
    easter,
    lunar_date,
    lunar_day_from,
    nth_weekday,
    orthodox_easter,
    winter_solstice,
)
from services.times.words.readings import TimeProblem, days_in_month
from services.times.zh.days import (
    Days,
    day_of_month_at,
    month_at,
    month_of,
    no_such_day,
    of_year_at,
    one_day,
    safe_day,
    weekday_number,
    year_at,
)
from services.times.zh.letters import LETTERS, NUMBER, number, whole

_LENGTHS = {**LENGTHS, "shavuot": 3, "ramadan": 30}


@dataclass(frozen=True, slots=True)
class Feast:
    """Annual holiday: its date in each year, and how it recurs."""

    day: Callable[[int], date | None]
    """Date in a Gregorian year; None if it is unknown."""
    fixed: tuple[int, int] | None = None
    """Month and day, if fixed."""
    weekday: tuple[int, int, int] | None = None
    """Month, position and weekday, if it depends on these."""
    length: int = 1
    """In days."""

    @property
    def problem(self) -> TimeProblem | None:
        """Why a single rule cannot express the recurrence (SEVERAL); None if it can."""
        return None if self.fixed or self.weekday else TimeProblem.SEVERAL

    def next_from(self, today: date) -> date | None:
        """Next occurrence, today included; None if it is unknown."""
        for year in (today.year, today.year + 1):
            found = self.day(year) if 0 < year < 9999 else None
            if found is not None and found >= today:
                return found
        return None


def _on_date(month: int, day_of_month: int) -> Feast:
    return Feast(lambda year: date(year, month, day_of_month), fixed=(month, day_of_month))


def _on_weekday(month: int, which: int, weekday: int) -> Feast:
    return Feast(lambda year: nth_weekday(year, month, weekday, which), weekday=(month, which, weekday))


def _on_lunar_day(month: int, day_of_month: int) -> Feast:
    def day(year: int) -> date | None:
        for lunar_year in (year - 1, year):
            found = lunar_date(lunar_year, month, day_of_month)
            if found is not None and found.year == year:
                return found
        return None

    return Feast(day)


def _from_easter(of: Callable[[int], date], days: int) -> Feast:
    return Feast(lambda year: of(year) + timedelta(days=days) if 1583 <= year <= 4099 else None)


@cache
def _feasts() -> dict[str, Feast]:
    """All holidays by their names."""
    tables = word_tables("holidays")
    named: dict[str, Feast] = {}

    def add(row: str, feast_of: Callable[..., Feast], before: str = "") -> None:
        words = row.split()
        numbers = [int(word) for word in words if word.lstrip("-").isascii()]
        feast = feast_of(*numbers)
        named.update((before + name, feast) for name in words[len(numbers) :])

    for row in tables["chinese_fixed"]:
        add(row, _on_date)
    for row in tables["chinese_nth_weekday"]:
        add(row, _on_weekday)
    for row in tables["chinese_lunar"]:
        add(row, _on_lunar_day)
    for row in tables["chinese_easter"]:
        add(row, partial(_from_easter, easter))
        add(row, partial(_from_easter, orthodox_easter), before="东正教")
    for row in tables["chinese_other"]:
        name, names = row.split(": ")
        named.update(dict.fromkeys(names.split(), Feast(partial(day_of, name), length=_LENGTHS.get(name, 1))))
    thanksgiving = named["感恩节"].day
    named["黑色星期五"] = named["黑五"] = Feast(lambda year: (thanksgiving(year) or date.max) + timedelta(days=1))
    named["清明"] = Feast(lambda year: clear_and_bright(year) if 1900 <= year <= 2100 else None)
    named["冬至"] = Feast(lambda year: winter_solstice(year) if 1900 <= year <= 2100 else None)
    return named


# Also numbers: 51 within a larger number is not a holiday.
_NUMBERS = ("五一", "五四", "六一", "七一", "八一", "三一五")
# Words that belong to a holiday but name no day: 中秋月饼, 圣诞树.
_THINGS = "月饼|礼[物品盒]|晚会|贺卡|树|老人|帽|快乐|联欢|红包|大餐|蛋糕|装饰|粽|汤圆|花灯|灯会|上河图|时节|作业"


@cache
def _feast_pattern() -> re.Pattern[str]:
    names = "|".join(sorted(_feasts().keys() - set(_NUMBERS), key=len, reverse=True))
    return re.compile(
        rf"(?:(?P<name>{names})(?:节(?![目省约奏]))?(?!轻|纪|龄|{_THINGS})"
        rf"|(?<![周期拜零一二三四五六七八九十百第逢、\d])(?P<number>{'|'.join(_NUMBERS)})"
        r"(?:节(?![目省约奏])|(?![十百千万点号日月年个天周分刻时路起会次直定样下、])))"
        r"(?:当天|当日|那天|那一天|这天|这一天|(?:小?长)?假期?|黄金周)?"
    )


def feast_at(text: str, at: int) -> tuple[Feast, int] | None:
    """Holiday at `at` of a normalized text, with its end; None without a holiday."""
    match = _feast_pattern().match(text, at)
    return (_feasts()[match["name"] or match["number"]], match.end()) if match else None


def feast_letters() -> str:
    """First characters of all holiday names, as one text for a character class."""
    return "".join(sorted({name[0] for name in _feasts()}))


_NUMERIC = lazy_pattern(
    r"(?<![\d./:-])(?:(?P<y>[12]\d{3})\s*(?P<sep>[-/.])\s*(?P<m>0?[1-9]|1[0-2])\s*(?P=sep)\s*(?P<d>3[01]|[12]\d|0?[1-9])(?![\d])"
    r"|(?P<a>\d{1,2})\s*(?P<sep2>[-/.])\s*(?P<b>\d{1,2})\s*(?P=sep2)\s*(?P<y2>[12]\d{3})(?!\d)"
    r"|(?P<y3>20\d\d)(?P<m3>0[1-9]|1[0-2])(?P<d3>0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?P<y4>[12]\d{3})\s*[-/]\s*(?P<m4>0?[1-9]|1[0-2])(?![\d:./-])"
    r"|(?P<m6>0?[1-9]|1[0-2])\.(?P<d6>3[01]|[12]\d|0?[1-9])(?=\s*(?:[日号]|[上下]午|[早晚]|凌晨|中午|傍晚))"
    r"|(?P<m5>0?[1-9]|1[0-2])/(?P<d5>3[01]|[12]\d|0?[1-9])(?![\d:/.])(?!\s*(?:的|之)?概率))(?:[日号])?"
)
_CHINESE_DATES_LUNAR = lazy_pattern(
    rf"(?P<said>(?:农历|阴历|旧历|夏历)的?\s*)?(?P<leap>闰)?(?P<month>正|冬|腊|[一]?十[一二]?|[二三四五六七八九]|1[0-2]|[1-9])月(?P<day>初[一二三四五六七八九十]|[一二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|\d{{1,2}}|[一二三四五六七八九])[日号]?(?![\d{LETTERS}点时分])"
)
_LUNAR_WORDS = lazy_pattern(r"(?:农历|阴历|旧历|夏历)的?\s*")
_GREAT_YEAR = lazy_pattern(r"(?:大年|年)初(?P<day>[一二三四五六七八九十])")
_OFFSET = lazy_pattern(
    rf"\s*的?(?:(?P<eve>前夕|前夜|前一晚(?=上|$))|(?P<way>[前后])\s*第?(?P<count>{NUMBER})\s*个?(?P<unit>天|日|周|星期|礼拜)(?!上|晚))"
)
_IN_BRACKETS = lazy_pattern(
    r"\s*的?[那这当]一?天|\s*[(,]?\s*(?:周|星期|礼拜)(?P<weekday>[一二三四五六日]|天(?!气))(?![一二三四五六日、至到])\s*\)?"
)
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}


def date_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """Date, holiday, month or year at `at` of a normalized text, with its end, or None; without a year the next one,
    today included."""
    for rule in (_numeric_at, _lunar_at, _feast_at, of_year_at, month_at, day_of_month_at):
        found = rule(text, at, today)
        if found is not None:
            days, end = found
            if days.is_day:
                days, end = _offset(text, end, days)
                named = _IN_BRACKETS.match(text, end)
                if named and named["weekday"] and weekday_number(named["weekday"]) != days.first.isoweekday():
                    days = replace(days, other_weekday=weekday_number(named["weekday"]))
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
        # Numeric dates with the year last have the day first, unless only the other order is valid.
        first, second = int(match["a"]), int(match["b"])
        first, second = (second, first) if second > 12 else (first, second)
        return safe_day(int(match["y2"]), second, first), match.end()
    year, month, day = match["y"] or match["y3"], match["m"] or match["m3"], match["d"] or match["d3"]
    return safe_day(int(year), int(month), int(day)), match.end()


def _coming_date(month: int, day: int, today: date) -> Days:
    """Next such date, today included; 29 February within eight years. Days that do not exist are marked."""
    for year in range(today.year, min(today.year + 9, 9998)):
        if day <= days_in_month(year, month) and date(year, month, day) >= today:
            return _dated(date(year, month, day))
    return safe_day(today.year, month, 32)


def _dated(day: date) -> Days:
    after = day + timedelta(days=1)
    return Days(day, after, next_days=lambda: _coming_date(day.month, day.day, after))


def _lunar_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    great = _GREAT_YEAR.match(text, at)
    if great:
        return _lunar(1, whole(great["day"]), False, None, today), great.end()
    date_match = _LUNAR_WORDS.match(text, at)
    year, start = year_at(text, date_match.end() if date_match else at, today)
    match = _CHINESE_DATES_LUNAR.match(text, start)
    if match is None or not (date_match or match["said"] or _is_lunar(match)):
        return None
    month = _LUNAR_MONTHS.get(match["month"]) or whole(match["month"])
    day = whole(match["day"].removeprefix("初"))
    return _lunar(month, day, bool(match["leap"]), year, today), match.end()


def _is_lunar(match: re.Match[str]) -> bool:
    """Whether the notation is only used for lunar dates: 腊月, 初五, 廿五 without 日 or 号."""
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
        found, found + timedelta(days=1), next_days=lambda: _lunar(month, day, leap, None, found + timedelta(days=1))
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
        # The lunar year ends in the next Gregorian year, so its last evening may be in the future.
        found = following if following is not None and following.month <= 2 and found.month <= 2 else found
    return Days(found, found + timedelta(days=feast.length)) if found else no_such_day(), end


def _coming(feast: Feast, today: date) -> Days:
    found = feast.next_from(today)
    if found is None:
        return no_such_day()
    return Days(
        found, found + timedelta(days=feast.length), next_days=lambda: _coming(feast, found + timedelta(days=1))
    )


def _offset(text: str, at: int, days: Days) -> tuple[Days, int]:
    """`days` moved by an offset at `at`, with its end; unchanged without one: 春节前三天, 国庆节前夕."""
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
    next_days = days.next_days
    moved = timedelta(days=distance)
    return Days(
        days.first + moved, days.after + moved, next_days=_moved(next_days, moved), exists=days.exists
    ), match.end()


def _moved(next_days: Callable[[], Days | None] | None, by: timedelta) -> Callable[[], Days | None] | None:
    def moved() -> Days | None:
        found = next_days() if next_days else None
        return Days(found.first + by, found.after + by, next_days=_moved(found.next_days, by)) if found else None

    return moved if next_days else None
