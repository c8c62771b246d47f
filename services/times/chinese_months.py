"""Months in Chinese, and the days of a month: 下个月20号, 三月五日, 月底, 十月的第一个星期一, 5号."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial

from services.lazy_patterns import lazy_pattern
from services.times.chinese_days import Days, carried, monday_of, month_of, no_such_day, safe_day, weekday_number
from services.times.chinese_letters import DAY, LETTERS, MONTH, whole
from services.times.readings import Grain, days_in_month

_RELATIVE_MONTH = (
    r"(?P<this>这一?个|今个|本|当)月|(?P<this_short>这月)|(?P<last>上+(?:一个|个)?)月|(?P<next>下+(?:一个|个)?)月"
)
NAMED_MONTH = lazy_pattern(
    rf"(?:(?:{_RELATIVE_MONTH})(?![饼亮球光台嫂]|天(?!气))|(?<![\d{LETTERS}第])(?P<month>{MONTH})\s*月(?:份|(?![饼亮球光台嫂]|天(?!气))))"
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
    rf"(?<![\d{LETTERS}第编.:/])(?P<day>{DAY})\s*(?:(?=(?:到|至|-|~)\s*{DAY}\s*(?:号|日(?![之以]?[后内前])))|[号](?![线楼门位店馆厅桌房室机码令召称角院坑仓车选口桥公国台航教病床柜票座鞋]|出口|会议|电池|人物|员工|球员|嘉宾)|日(?![程历志记报常用语本期子内游均线]|三餐|不见|之计|[之以]?[后内前]))"
)
EDGES = {"初": 1, "月初": 1, "年初": 1, "中": 15, "年中": 15} | dict.fromkeys(
    ("底", "末", "尾", "月底", "年底", "年末"), -1
)
"""The day of the month that begins, halves or ends it."""
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
    """What is said of the month: a day of it, a part, or nothing. Without `year` the next one from `today` on."""
    tail = _TAIL_OF_MONTH.match(text, at)
    end = tail.end() if tail else at
    if today is None or year is not None:
        return _part_of_month(year or 1, month, tail), end
    for candidate in range(today.year, min(today.year + 9, 9998)):
        found = _part_of_month(candidate, month, tail)
        if found.after > today and found.exists:
            again = partial(_next_within, text, at, month, found.after)
            return Days(found.first, found.after, found.grain, again), end
    return safe_day(today.year, month, 32), end


def _next_within(text: str, at: int, month: int, today: date) -> Days:
    return within_month(text, at, None, month, today)[0]


def _part_of_month(year: int, month: int, tail: re.Match[str] | None) -> Days:
    if tail is None:
        return month_of(year, month)
    if tail["day"] or tail["bare"]:
        return safe_day(year, month, whole(tail["day"] or tail["bare"]))
    if tail["nth_day"]:
        return safe_day(year, month, whole(tail["nth_day"]))
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
    """The how-manieth weekday, weekend or week; its first week is the one that holds its first day."""
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
    """The next of what every month has, or most have."""
    for more in range(14):
        found = of(*carried(today.year, today.month + more))
        if found.exists and found.first >= today:
            return Days(found.first, found.after, again=partial(_coming_in_month, of, found.after))
    return no_such_day()
