"""Chinese days, weeks, months and years: 明天, 下周三, 下个月20号, 月底, 年底."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial

from services.patterns import lazy_pattern
from services.times.words.readings import Grain, days_in_month
from services.times.zh.letters import DAY, LETTERS, MONTH, NUMBER, number, whole

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days named in a phrase; `after` is exclusive."""

    first: date
    after: date
    grain: Grain = Grain.DAY
    next_days: Callable[[], Days | None] | None = None
    """The next occurrence of a repeating name: 周五, 3号, 五月一日."""
    is_not_today: bool = False
    """A bare weekday, which does not mean today."""
    exists: bool = True
    weekday: int = 0
    """1 to 7 for a bare weekday, else 0."""
    other_weekday: int = 0
    """1 to 7 for a weekday that is named with the day but disagrees with it, else 0."""

    @property
    def is_day(self) -> bool:
        """Whether it is a single day."""
        return self.grain is Grain.DAY and self.after - self.first == _DAY


def one_day(day: date) -> Days:
    """Days for the single day `day`."""
    return Days(day, day + _DAY)


_RELATIVE = {
    name: days
    for days, names in {
        -4: "大大前天",
        -3: "大前天 大前日",
        -2: "前天 前日",
        -1: "昨天 昨日 寻日 琴日",
        0: "今天 今日 今儿个 今儿 当天 当日 即日 本日",
        1: "明天 明日 明儿个 明儿 听日 翌日 次日 第二天",
        2: "后天 后日 后儿",
        3: "大后天 大后日",
        4: "大大后天",
    }.items()
    for name in names.split()
}
_LETTERS = {"今": 0, "当": 0, "明": 1, "听": 1, "昨": -1, "寻": -1, "琴": -1, "前": -2, "后": 2, "大前": -3, "大后": 3}
_RELATIVE_DAY = lazy_pattern(
    rf"(?P<name>{'|'.join(sorted(_RELATIVE, key=len, reverse=True))})(?!头条|之后》|之星|[性资涯])"
    r"|(?P<letter>大前|大后|今|明|听|昨|寻|琴|前|后|当)(?=(?!早晚)[早晚晨夜](?![饭餐熟期辈])|(?:凌晨|午夜)|(?<=[今听后])朝(?![代廷])|(?<=[今明])午(?![餐饭睡休]))"
)
WEEK = r"(?:周|星期|礼拜)"
_REL = r"(?P<this>这一个|这一|这个|这|今个|今|本)|(?P<last>上+(?:一个|一|个)?)|(?P<next>下+(?:一个|一|个)?)"
_SUNDAY = r"天(?!气)|日(?![程报历志记期常用语本子])"
# These characters belong to the following word: 下周一起吃饭, 周二维码, 周三分之一.
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
    """Weekday of a character: 1 for 一 to 7 for 日 or 天. Raises KeyError for others."""
    return _NUMBERS[letter]


def monday_of(day: date) -> date:
    """Monday of the week that contains `day`."""
    return day - timedelta(days=day.isoweekday() - 1)


def relative_day_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """Day relative to today at `at` (明天), with its end, or None; of 明早 only the first character."""
    match = _RELATIVE_DAY.match(text, at)
    if match is None:
        return None
    distance = _RELATIVE[match["name"]] if match["name"] else _LETTERS[match["letter"]]
    return one_day(today + timedelta(days=distance)), match.end("name") if match["name"] else match.end("letter")


def weekday_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """Weekday or weekend at `at`, with its end, or None. Weeks begin on Monday; without 上 or 下 it is in the
    future."""
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
        weekly.first, weekly.after, next_days=weekly.next_days, is_not_today=is_bare, weekday=number if is_bare else 0
    ), match.end()


def week_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """A whole week at `at`, with its end: 下周, 这个星期. None otherwise."""
    match = _WEEK.match(text, at)
    if match is None:
        return None
    begin = monday_of(today) + timedelta(weeks=_weeks(match) or 0)
    return Days(begin, begin + timedelta(days=7), Grain.WEEK), match.end()


def _weeks(match: re.Match[str]) -> int | None:
    """Week offset of a match: 0 this one, 1 the next; None if unspecified."""
    if match["this"]:
        return 0
    if match["last"]:
        return -match["last"].count("上")
    return match["next"].count("下") if match["next"] else None


def _weekly(first: date, length: int) -> Days:
    return Days(first, first + timedelta(days=length), next_days=lambda: _weekly(first + timedelta(days=7), length))


def safe_day(year: int, month: int, day: int) -> Days:
    """Days for a single day, marked (`exists` False) if it does not exist; a negative `day` means the last of the
    month."""
    if not 1 <= year < 9999 or not 1 <= month <= 12:
        return Days(date(2000, 1, 1), date(2000, 1, 2), exists=False)
    last = days_in_month(year, month)
    if day > last or day == 0:
        return Days(date(year, month, last), date(year, month, last) + timedelta(days=1), exists=False)
    return one_day(date(year, month, day if day > 0 else last))


def month_of(year: int, month: int, count: int = 1) -> Days:
    """Days of `count` whole months; `month` may be outside 1 to 12."""
    first, after = (date(*carried(year, month + more), 1) for more in (0, count))
    return Days(first, max(first, after), Grain.MONTH)


def carried(year: int, month: int) -> tuple[int, int]:
    """Year and month for a month outside 1 to 12; the year is limited to 1 to 9998."""
    more, index = divmod(month - 1, 12)
    return min(max(year + more, 1), 9998), index + 1


def no_such_day() -> Days:
    """Days marked as not existing."""
    return safe_day(2000, 1, 32)


_RELATIVE_MONTH = (
    r"(?P<this>这一?个|今个|本|当)月|(?P<this_short>这月)|(?P<last>上+(?:一个|个)?)月|(?P<next>下+(?:一个|个)?)月"
)
_APART = rf"(?:(?<![\d{LETTERS}])|(?<=周[一二三四五六])|(?<=期[一二三四五六])|(?<=拜[一二三四五六]))"
"""Not within a number; the number of a weekday may precede."""
NAMED_MONTH = lazy_pattern(
    rf"(?:(?:{_RELATIVE_MONTH})(?![饼亮球光台嫂]|天(?!气))|{_APART}(?<!第)(?P<month>{MONTH})\s*月(?:份|(?![饼亮球光台嫂]|天(?!气))))"
)
_TAIL_OF_MONTH = lazy_pattern(
    rf"\s*,?\s*(?:的\s*)?(?:(?P<day>{DAY})\s*[日号](?![程历志])"
    rf"|(?P<bare>{DAY})(?![\d.:/%{LETTERS}]|\s*(?:[个天月年周点时分刻小件人次位块元岁号日]|星期|礼拜))"
    rf"|(?P<edge>初(?![一二三四五六七八九十级中])|月初|中旬|中(?![国文午学心秋])|上旬|下旬|底|末|月底|尾)"
    rf"|(?P<last_day>最后一?[天日])|第(?P<nth_day>{DAY})[天日]"
    rf"|(?:第\s*(?P<nth>[一二三四五1-5])|(?P<last_one>最后一?))\s*个?\s*(?:周|星期|礼拜)(?:(?P<weekday>[一二三四五六日]|天(?!气))|(?P<weekend>末))"
    rf"|第(?P<nth_week>[一二三四五1-5])个?(?:周|星期|礼拜)|最后一?个?(?P<last_week>周|星期|礼拜))"
)
_EDGE_ALONE = lazy_pattern(r"月(?P<edge>底|末|初|中|尾)")
_DAY_ALONE = lazy_pattern(
    rf"{_APART}(?<![第编.:/])(?P<day>{DAY})\s*(?:(?=(?:到|至|-|~)\s*{DAY}\s*(?:号|日(?![之以]?[后内前])))|[号](?![线楼门位店馆厅桌房室机码令召称角院坑仓车选口桥公国台航教病床柜票座鞋]|出口|会议|电池|人物|员工|球员|嘉宾)|日(?![程历志记报常用语本期子内游均线]|三餐|不见|之计|[之以]?[后内前]))"
)
EDGES = {"初": 1, "月初": 1, "年初": 1, "中": 15, "年中": 15} | dict.fromkeys(
    ("底", "末", "尾", "月底", "年底", "年末"), -1
)
"""Day of the month for its beginning, middle and end."""
_TEN_DAYS = {"上旬": (1, 10), "中旬": (11, 20), "下旬": (21, 31)}


def month_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    edge = _EDGE_ALONE.match(text, at)
    if edge:
        return _coming_in_month(lambda year, month: safe_day(year, month, EDGES[edge["edge"]]), today), edge.end()
    match = NAMED_MONTH.match(text, at)
    if match is None:
        return None
    if match["month"]:
        month = whole(match["month"])
        if not 1 <= month <= 12:
            return None
        return within_month(text, match.end(), None, month, today)
    shift = -match["last"].count("上") if match["last"] else match["next"].count("下") if match["next"] else 0
    year, month = carried(today.year, today.month + shift)
    return within_month(text, match.end(), year, month, None)


def within_month(text: str, at: int, year: int | None, month: int, today: date | None) -> tuple[Days, int]:
    """The month, or a day or part of it that follows at `at`, with the end. Without `year` the next one from `today`
    on."""
    tail = _TAIL_OF_MONTH.match(text, at)
    end = tail.end() if tail else at
    if today is None or year is not None:
        return _part_of_month(year or 1, month, tail), end
    for candidate in range(today.year, min(today.year + 9, 9998)):
        found = _part_of_month(candidate, month, tail)
        if found.after > today and found.exists:
            next_days = partial(_next_within, text, at, month, found.after)
            return Days(found.first, found.after, found.grain, next_days), end
    return safe_day(today.year, month, 32), end


def _next_within(text: str, at: int, month: int, today: date) -> Days:
    return within_month(text, at, None, month, today)[0]


def _part_of_month(year: int, month: int, tail: re.Match[str] | None) -> Days:
    if tail is None:
        return month_of(year, month)
    day = tail["day"] or tail["bare"] or tail["nth_day"]
    if day:
        return safe_day(year, month, whole(day))
    if tail["last_day"]:
        return safe_day(year, month, -1)
    if tail["edge"] in _TEN_DAYS:
        begin, last = _TEN_DAYS[tail["edge"]]
        first = date(year, month, begin)
        return Days(first, date(year, month, min(last, days_in_month(year, month))) + timedelta(days=1))
    if tail["edge"]:
        return safe_day(year, month, EDGES[tail["edge"]])
    return _nth_week_of_month(year, month, tail)


def _nth_week_of_month(year: int, month: int, tail: re.Match[str]) -> Days:
    """The nth weekday, weekend or week of a month, marked if it does not exist; the first week contains the first day
    of the month."""
    last = days_in_month(year, month)
    if tail["nth_week"] or tail["last_week"]:
        which = whole(tail["nth_week"]) - 1 if tail["nth_week"] else 0
        begin = monday_of(date(year, month, 1 if tail["nth_week"] else last)) + timedelta(weeks=which)
        return Days(begin, begin + timedelta(days=7), Grain.WEEK)
    weekday, length = (weekday_number(tail["weekday"]), 1) if tail["weekday"] else (6, 2)
    if tail["last_one"]:
        day = last - (date(year, month, last).isoweekday() - weekday) % 7
    else:
        day = 1 + (weekday - date(year, month, 1).isoweekday()) % 7 + 7 * (whole(tail["nth"]) - 1)
    if day > last:
        return safe_day(year, month, 32)
    first = date(year, month, day)
    return Days(first, first + timedelta(days=length))


def day_of_month_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    match = _DAY_ALONE.match(text, at)
    if match is None:
        return None
    day = whole(match["day"])
    if not 1 <= day <= 31:
        return no_such_day(), match.end()
    return _coming_in_month(lambda year, month: safe_day(year, month, day), today), match.end()


def _coming_in_month(of: Callable[[int, int], Days], today: date) -> Days:
    """Next occurrence, from `today` on, of a day that all or most months have; `of` returns it for a year and month."""
    for more in range(14):
        found = of(*carried(today.year, today.month + more))
        if found.exists and found.first >= today:
            return Days(found.first, found.after, next_days=partial(_coming_in_month, of, found.after))
    return no_such_day()


_YEAR_WORDS = {
    word: years
    for years, words in {
        -3: "大前年",
        -2: "前年",
        -1: "去年 上年 旧年",
        0: "今年 本年 这一年 这年 当年",
        1: "明年 出年 下年 来年 下一年",
        2: "后年",
        3: "大后年",
    }.items()
    for word in words.split()
}
_YEAR = lazy_pattern(
    rf"(?P<word>{'|'.join(sorted(_YEAR_WORDS, key=len, reverse=True))})(?!级|轻|会|货)(?:度(?![假过]))?"
    rf"|(?P<republic>民国)\s*(?P<bias>元|{NUMBER})\s*年"
    rf"|(?<![\d{LETTERS}])(?P<digits>[12]\d{{3}}|[{LETTERS}]{{4}}|(?:\d\d|[{LETTERS}]{{2}})(?=年\s*{MONTH}月))\s*年(?![级代龄多几来]|(?:之|以)?[前后内](?![半{LETTERS}\d]))"
)
_TAIL_OF_YEAR = lazy_pattern(
    rf"\s*,?\s*(?:的\s*)?(?:(?P<edge>年?底|末|年末|年?初(?![一二三四五六七八九十])|年中|中(?![国文午学心秋元])|尾)"
    rf"|(?P<half>[上前下后])半年|第?(?P<quarter>[一二三四1-4])季度?|(?P<last_day>最后一?[天日])"
    rf"|第\s*(?P<nth>{NUMBER})\s*个?\s*(?P<nth_unit>周|星期|礼拜|月|天)"
    rf"|(?P<side>前|头|开头|最后|后)\s*(?P<count>{NUMBER})\s*个?\s*(?P<unit>周|星期|礼拜|月|天))"
)
_OF_YEAR_ALONE = lazy_pattern(r"年(?P<edge>底|末|初|中|尾)|(?P<half>[上下])半年|第?(?P<quarter>[一二三四1-4])季度")


def year_at(text: str, at: int, today: date) -> tuple[int | None, int]:
    """Year at `at` or None, with its end (`at` for None)."""
    match = _YEAR.match(text, at)
    if match is None:
        return None, at
    if match["word"]:
        return today.year + _YEAR_WORDS[match["word"]], match.end()
    if match["republic"]:
        return 1911 + (1 if match["bias"] == "元" else int(number(match["bias"]) or 1)), match.end()
    year = int(number(match["digits"]) or 0)
    return year + (2000 if year < 50 else 1900 if year < 100 else 0), match.end()


def of_year_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    year, start = year_at(text, at, today)
    if year is None:
        match = _OF_YEAR_ALONE.match(text, at)
        return (_coming_part_of_year(match, today), match.end()) if match else None
    if not 1 <= year < 9990:
        return no_such_day(), start
    tail = _TAIL_OF_YEAR.match(text, start)
    if tail:
        return _part_of_year(year, tail), tail.end()
    link = start
    while link < len(text) and text[link] in " ,的":
        link += 1
    month = NAMED_MONTH.match(text, link)
    if month and month["month"] and 1 <= whole(month["month"]) <= 12:
        return within_month(text, month.end(), year, whole(month["month"]), None)
    return Days(date(year, 1, 1), date(year + 1, 1, 1), Grain.YEAR), start


def _coming_part_of_year(match: re.Match[str], today: date) -> Days:
    for year in (today.year, today.year + 1):
        found = _part_of_year(year, match)
        if found.after > today:
            return found
    return found


def _part_of_year(year: int, match: re.Match[str]) -> Days:
    groups = match.groupdict()
    if groups["edge"]:
        which = EDGES[groups["edge"].removeprefix("年")]
        return safe_day(year, *((1, 1) if which == 1 else (12, 31) if which < 0 else (7, 1)))
    if groups["half"]:
        return month_of(year, 1 if groups["half"] in "上前" else 7, 6)
    if groups["quarter"]:
        return replace(month_of(year, whole(groups["quarter"]) * 3 - 2, 3), grain=Grain.QUARTER)
    if groups["last_day"]:
        return safe_day(year, 12, 31)
    if groups["nth"]:
        return _units_of_year(year, groups["nth_unit"], int(number(groups["nth"]) or 0), 1)
    count = int(number(groups["count"]) or 1)
    if groups["side"] in ("最后", "后"):
        return _last_units_of_year(year, groups["unit"], count)
    return _units_of_year(year, groups["unit"], 1, count)


def _units_of_year(year: int, unit: str, which: int, count: int) -> Days:
    """`count` units of a year, starting with number `which`; the first week contains the first Thursday. Marked if they
    do not exist."""
    if unit == "月":
        return month_of(year, which, count) if 1 <= which <= 12 and count <= 12 else no_such_day()
    if not (1 <= which <= 366 and count <= 366):
        return no_such_day()
    if unit == "天":
        first = date(year, 1, 1) + timedelta(days=which - 1)
        return Days(first, first + timedelta(days=count))
    first = monday_of(date(year, 1, 4)) + timedelta(weeks=which - 1)
    return Days(first, first + timedelta(weeks=count), Grain.WEEK)


def _last_units_of_year(year: int, unit: str, count: int) -> Days:
    if count > 366:
        return no_such_day()
    after = date(year + 1, 1, 1)
    if unit == "月":
        return month_of(year, 13 - min(count, 12), min(count, 12))
    if unit == "天":
        return Days(after - timedelta(days=count), after)
    end = monday_of(after)
    return Days(end - timedelta(weeks=count), end, Grain.WEEK)
