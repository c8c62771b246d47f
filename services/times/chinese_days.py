"""Days and weeks by their Chinese names: 明天, 大后天, 下周三, 礼拜天, 本周末, 下个星期."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from services.lazy_patterns import lazy_pattern
from services.times.readings import Grain, days_in_month

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days, `after` not included."""

    first: date
    after: date
    grain: Grain = Grain.DAY
    again: Callable[[], Days | None] | None = None
    """The same name's next ones, where it names more than one: 周五, 3号, 五月一日."""
    is_not_today: bool = False
    """A weekday without more: today it would be called today."""
    exists: bool = True
    weekday: int = 0
    """1 to 7, where it is nothing but a weekday."""

    @property
    def is_day(self) -> bool:
        """Whether it is one day."""
        return self.grain is Grain.DAY and self.after - self.first == _DAY


def one_day(day: date) -> Days:
    """`day` as a whole."""
    return Days(day, day + _DAY)


_RELATIVE = {
    "大大前天": -4,
    "大前天": -3,
    "大前日": -3,
    "前天": -2,
    "前日": -2,
    "昨天": -1,
    "昨日": -1,
    "寻日": -1,
    "琴日": -1,
    "今天": 0,
    "今日": 0,
    "今儿个": 0,
    "今儿": 0,
    "当天": 0,
    "当日": 0,
    "即日": 0,
    "本日": 0,
    "明天": 1,
    "明日": 1,
    "明儿个": 1,
    "明儿": 1,
    "听日": 1,
    "翌日": 1,
    "次日": 1,
    "第二天": 1,
    "后天": 2,
    "后日": 2,
    "后儿": 2,
    "大大后天": 4,
    "大后天": 3,
    "大后日": 3,
}
_LETTERS = {"今": 0, "当": 0, "明": 1, "听": 1, "昨": -1, "寻": -1, "琴": -1, "前": -2, "后": 2, "大前": -3, "大后": 3}
_RELATIVE_DAY = lazy_pattern(
    rf"(?P<name>{'|'.join(sorted(_RELATIVE, key=len, reverse=True))})(?!头条|之后》|之星|[性资涯])"
    r"|(?P<letter>大前|大后|今|明|听|昨|寻|琴|前|后|当)(?=(?!早晚)[早晚晨夜](?![饭餐熟期辈])|(?:凌晨|午夜)|(?<=[今听后])朝(?![代廷])|(?<=[今明])午(?![餐饭睡休]))"
)
WEEK = r"(?:周|星期|礼拜)"
_REL = r"(?P<this>这一个|这一|这个|这|今个|今|本)|(?P<last>上+(?:一个|一|个)?)|(?P<next>下+(?:一个|一|个)?)"
_SUNDAY = r"天(?!气)|日(?![程报历志记期常用语本子])"
# These belong to the word behind them: 下周一起吃饭, 周二维码, 周三分之一.
_OTHER_WORDS = (
    r"一起(?!床|飞|点|至|到|[,开每的])|一[直定样共般边些切次趟]|一个(?!月)|一下(?!午)|二手(?!术)|二维|三分之|四处|四周"
)
_WEEKDAY_LETTER = rf"(?!{_OTHER_WORDS})(?P<weekday>[一二三四五六]|{_SUNDAY})"
_WEEKDAY = lazy_pattern(
    rf"(?:(?:{_REL})的?\s*(?:(?:周|星期|礼拜)的\s*)?)?(?P<week>{WEEK})(?:(?P<both>六日|末)|{_WEEKDAY_LETTER})"
)
_WEEK = lazy_pattern(
    rf"(?:{_REL})(?:周(?![岁年边围期到转折刊报])|星期|礼拜)(?P<inside>之内|以内|内)?(?![一二三四五六日天末](?<!天)(?<!一)|天(?!气))"
)
_NUMBERS = {letter: number for number, letter in enumerate("一二三四五六日", 1)} | {"天": 7}


def weekday_number(letter: str) -> int:
    """1 for 一 to 7 for 日 or 天."""
    return _NUMBERS[letter]


def monday_of(day: date) -> date:
    """The day its week begins with."""
    return day - timedelta(days=day.isoweekday() - 1)


def relative_day_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """A day by its distance from today; of 明早 only the first letter."""
    match = _RELATIVE_DAY.match(text, at)
    if match is None:
        return None
    distance = _RELATIVE[match["name"]] if match["name"] else _LETTERS[match["letter"]]
    return one_day(today + timedelta(days=distance)), match.end("name") if match["name"] else match.end("letter")


def weekday_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """A weekday or a weekend. Weeks begin on Monday; without 上 or 下 it is one that is still to come."""
    match = _WEEKDAY.match(text, at)
    if match is None:
        return None
    begin = monday_of(today)
    number = _NUMBERS[match["weekday"]] if match["weekday"] else 6
    length = 1 if match["weekday"] else 2
    shift = _weeks(match)
    if shift is not None:
        begin += timedelta(weeks=shift)
    weekly = _weekly(begin + timedelta(days=number - 1), length)
    if shift:
        return Days(weekly.first, weekly.after), match.end()
    is_bare = shift is None and length == 1
    while weekly.after <= today:
        weekly = _weekly(weekly.first + timedelta(days=7), length)
    return Days(
        weekly.first, weekly.after, again=weekly.again, is_not_today=is_bare, weekday=number if is_bare else 0
    ), match.end()


def week_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """A whole week: 下周, 这个星期."""
    match = _WEEK.match(text, at)
    if match is None:
        return None
    begin = monday_of(today) + timedelta(weeks=_weeks(match) or 0)
    return Days(begin, begin + timedelta(days=7), Grain.WEEK), match.end()


def _weeks(match: re.Match[str]) -> int | None:
    """Which week: 0 this one, 1 the next; None when it was not said."""
    if match["this"]:
        return 0
    if match["last"]:
        return -match["last"].count("上")
    return match["next"].count("下") if match["next"] else None


def _weekly(first: date, length: int) -> Days:
    return Days(first, first + timedelta(days=length), again=lambda: _weekly(first + timedelta(days=7), length))


def safe_day(year: int, month: int, day: int) -> Days:
    """That day, `day` counted from the end where it is below zero; one that does not exist is marked so."""
    if not 1 <= year < 9999 or not 1 <= month <= 12:
        return Days(date(2000, 1, 1), date(2000, 1, 2), exists=False)
    last = days_in_month(year, month)
    if day > last or day == 0:
        return Days(date(year, month, last), date(year, month, last) + timedelta(days=1), exists=False)
    return one_day(date(year, month, day if day > 0 else last))


def month_of(year: int, month: int, count: int = 1) -> Days:
    """`count` whole months; `month` may lie outside of 1 to 12."""
    first, after = (date(*carried(year, month + more), 1) for more in (0, count))
    return Days(first, max(first, after), Grain.MONTH)


def carried(year: int, month: int) -> tuple[int, int]:
    """Year and month where `month` may lie outside of 1 to 12."""
    more, index = divmod(month - 1, 12)
    return min(max(year + more, 1), 9998), index + 1


def no_such_day() -> Days:
    """A day that does not exist."""
    return safe_day(2000, 1, 32)
