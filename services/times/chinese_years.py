"""Years in Chinese, and what is said of them: 明年三月, 二零二七年, 年底, 上半年, 2027年的第一周."""

from __future__ import annotations

import re
from datetime import date, timedelta

from services.lazy_patterns import lazy_pattern
from services.times.chinese_days import Days, monday_of, month_of, no_such_day, safe_day
from services.times.chinese_letters import LETTERS, MONTH, NUMBER, number, whole
from services.times.chinese_months import EDGES, NAMED_MONTH, within_month
from services.times.readings import Grain

_YEAR_WORDS = {
    "大前年": -3,
    "前年": -2,
    "去年": -1,
    "上年": -1,
    "旧年": -1,
    "今年": 0,
    "本年": 0,
    "这一年": 0,
    "这年": 0,
    "当年": 0,
    "明年": 1,
    "出年": 1,
    "下年": 1,
    "来年": 1,
    "下一年": 1,
    "后年": 2,
    "大后年": 3,
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
    """The year named at `at`, if one is, and where the name ends."""
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
        found = month_of(year, 1 if groups["half"] in "上前" else 7, 6)
        return Days(found.first, found.after, Grain.MONTH)
    if groups["quarter"]:
        found = month_of(year, whole(groups["quarter"]) * 3 - 2, 3)
        return Days(found.first, found.after, Grain.QUARTER)
    if groups["last_day"]:
        return safe_day(year, 12, 31)
    if groups["nth"]:
        return _units_of_year(year, groups["nth_unit"], int(number(groups["nth"]) or 0), 1)
    count = int(number(groups["count"]) or 1)
    if groups["side"] in ("最后", "后"):
        return _last_units_of_year(year, groups["unit"], count)
    return _units_of_year(year, groups["unit"], 1, count)


def _units_of_year(year: int, unit: str, which: int, count: int) -> Days:
    """`count` units of a year from the `which`-th on; its first week is the one with its first Thursday."""
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
