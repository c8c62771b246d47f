"""Dates, months and years in Chinese: 3月5日, 下个月20号, 二零二六年十月一日, 月底, 十月的第一个星期一, 2026-3-5, 农历八月十五."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from services.times.chinese_days import Days, monday_of, one_day, weekday_number
from services.times.chinese_feasts import Feast, feast_at
from services.times.chinese_letters import DAY, LETTERS, MONTH, NUMBER, number, whole
from services.times.lunar import lunar_date, lunar_day_from
from services.times.readings import Grain, days_in_month

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
    "下年": 1,
    "来年": 1,
    "下一年": 1,
    "后年": 2,
    "大后年": 3,
}
_YEAR = re.compile(
    rf"(?P<word>{'|'.join(sorted(_YEAR_WORDS, key=len, reverse=True))})(?!级|轻|会|货)(?:度(?![假过]))?"
    rf"|(?P<republic>民国)\s*(?P<bias>元|{NUMBER})\s*年"
    rf"|(?<![\d{LETTERS}])(?P<digits>[12]\d{{3}}|[{LETTERS}]{{4}}|[2-9]\d(?=年\s*{MONTH}月))\s*年(?![级代龄多几来]|(?:之|以)?[前后内](?![半{LETTERS}\d]))"
)
_RELATIVE_MONTH = (
    r"(?P<this>这一?个|今个|本|当)月|(?P<this_short>这月)|(?P<last>上+(?:一个|个)?)月|(?P<next>下+(?:一个|个)?)月"
)
_MONTH = re.compile(
    rf"(?:(?:{_RELATIVE_MONTH})(?![饼亮球光台嫂])|(?<![\d{LETTERS}第])(?P<month>{MONTH})\s*月(?:份|(?![饼亮球光台嫂])))"
)
_TAIL_OF_MONTH = re.compile(
    rf"\s*,?\s*(?:的\s*)?(?:(?P<day>{DAY})\s*[日号](?![线楼门位店馆厅桌房室机码令召称角院坑仓车选出口桥公国会台航教病床柜票座鞋程历志记常用])"
    rf"|(?P<bare>{DAY})(?![\d.:/%{LETTERS}]|\s*(?:[个天月年周点时分刻小件人次位块元岁号日]|星期|礼拜))"
    rf"|(?P<edge>初(?![一二三四五六七八九十级中])|月初|中旬|中(?![国文午学心秋])|上旬|下旬|底|末|月底|尾)"
    rf"|(?P<last_day>最后一?[天日])|第(?P<nth_day>{DAY})[天日]"
    rf"|(?:第\s*(?P<nth>[一二三四五1-5])|(?P<last_one>最后一?))\s*个?\s*(?:周|星期|礼拜)(?:(?P<weekday>[一二三四五六日]|天(?!气))|(?P<weekend>末))"
    rf"|第(?P<nth_week>[一二三四五1-5])个?(?:周|星期|礼拜)|最后一?个?(?P<last_week>周|星期|礼拜))"
)
_EDGE_ALONE = re.compile(r"月(?P<edge>底|末|初|中|尾)")
_DAY_ALONE = re.compile(
    rf"(?<![\d{LETTERS}第编.:/])(?P<day>{DAY})\s*(?:(?=(?:到|至|-|~)\s*{DAY}\s*(?:号|日(?![之以]?[后内前])))|[号](?![线楼门位店馆厅桌房室机码令召称角院坑仓车选口桥公国台航教病床柜票座鞋]|出口|会议)|日(?![程历志记报常用语本期子内游]|[之以]?[后内前]))"
)
_NUMERIC = re.compile(
    r"(?<![\d./:-])(?:(?P<y>[12]\d{3})\s*(?P<sep>[-/.])\s*(?P<m>0?[1-9]|1[0-2])\s*(?P=sep)\s*(?P<d>3[01]|[12]\d|0?[1-9])(?![\d])"
    r"|(?P<a>\d{1,2})\s*(?P<sep2>[-/.])\s*(?P<b>\d{1,2})\s*(?P=sep2)\s*(?P<y2>[12]\d{3})(?!\d)"
    r"|(?P<y3>20\d\d)(?P<m3>0[1-9]|1[0-2])(?P<d3>0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?P<y4>[12]\d{3})\s*[-/]\s*(?P<m4>0?[1-9]|1[0-2])(?![\d:./-])"
    r"|(?P<m5>0?[1-9]|1[0-2])/(?P<d5>3[01]|[12]\d|0?[1-9])(?![\d:/.])(?!\s*(?:的|之)?概率))(?:[日号])?"
)
_TAIL_OF_YEAR = re.compile(
    rf"\s*,?\s*(?:的\s*)?(?:(?P<edge>年?底|末|年末|年?初(?![一二三四五六七八九十])|年中|中(?![国文午学心秋元])|尾)"
    rf"|(?P<half>[上前下后])半年|第?(?P<quarter>[一二三四1-4])季度?|(?P<last_day>最后一?[天日])"
    rf"|第\s*(?P<nth>{NUMBER})\s*个?\s*(?P<nth_unit>周|星期|礼拜|月|天)"
    rf"|(?P<side>前|头|开头|最后|后)\s*(?P<count>{NUMBER})\s*个?\s*(?P<unit>周|星期|礼拜|月|天))"
)
_OF_YEAR_ALONE = re.compile(r"年(?P<edge>底|末|初|中|尾)|(?P<half>[上下])半年|第?(?P<quarter>[一二三四1-4])季度")
_LUNAR = re.compile(
    rf"(?P<said>(?:农历|阴历|旧历|夏历)的?\s*)?(?P<leap>闰)?(?P<month>正|冬|腊|[一]?十[一二]?|[二三四五六七八九]|1[0-2]|[1-9])月(?P<day>初[一二三四五六七八九十]|[一二三]?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|\d{{1,2}}|[一二三四五六七八九])[日号]?(?![\d{LETTERS}点时分])"
)
_LUNAR_WORDS = re.compile(r"(?:农历|阴历|旧历|夏历)的?\s*")
_GREAT_YEAR = re.compile(r"(?:大年|年)初(?P<day>[一二三四五六七八九十])")
_OFFSET = re.compile(
    rf"\s*的?(?:(?P<eve>前夕|前夜|前一晚(?=上|$))|(?P<way>[前后])\s*第?(?P<count>{NUMBER})\s*个?(?P<unit>天|日|周|星期|礼拜)(?!上|晚))"
)
_IN_BRACKETS = re.compile(r"\s*[(,]?\s*(?:周|星期|礼拜)(?:[一二三四五六日]|天(?!气))(?![一二三四五六日、至到])\s*\)?")
_LUNAR_MONTHS = {"正": 1, "冬": 11, "腊": 12}
_EDGES = {"初": 1, "月初": 1, "年初": 1, "中": 15, "年中": 15, "底": -1, "末": -1, "尾": -1, "月底": -1, "年底": -1, "年末": -1}
_TEN_DAYS = {"上旬": (1, 10), "中旬": (11, 20), "下旬": (21, 31)}


def date_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    """The date, month or year that begins at `at`, and where it ends; without a year the next one, today included."""
    for rule in (_numeric_at, _lunar_at, _feast_at, _of_year_at, _of_month_at, _day_at):
        found = rule(text, at, today)
        if found is not None:
            days, end = found
            if days.is_day:
                days, end = _offset(text, end, days)
                named = _IN_BRACKETS.match(text, end)
                end = named.end() if named else end
            return days, end
    return None


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
    first, after = (date(*_carried(year, month + more), 1) for more in (0, count))
    return Days(first, after, Grain.MONTH)


def _carried(year: int, month: int) -> tuple[int, int]:
    more, index = divmod(month - 1, 12)
    return min(max(year + more, 1), 9998), index + 1


def _numeric_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    match = _NUMERIC.match(text, at)
    if match is None:
        return None
    if match["y4"]:
        return month_of(int(match["y4"]), int(match["m4"])), match.end()
    if match["m5"]:
        return _coming_date(int(match["m5"]), int(match["d5"]), today), match.end()
    if match["y2"]:
        # Day and month, as numbers with the year behind them are written; the other way round only where it must be.
        day, month = int(match["a"]), int(match["b"])
        day, month = (month, day) if month > 12 else (day, month)
        return safe_day(int(match["y2"]), month, day), match.end()
    year, month_, day_ = match["y"] or match["y3"], match["m"] or match["m3"], match["d"] or match["d3"]
    return safe_day(int(year), int(month_), int(day_)), match.end()


def _coming_date(month: int, day: int, today: date) -> Days:
    """The next such date, today included; the 29th of February within eight years."""
    for year in range(today.year, min(today.year + 9, 9998)):
        if day <= days_in_month(year, month) and date(year, month, day) >= today:
            found = date(year, month, day)
            return Days(found, found + timedelta(days=1), again=lambda: _coming_date(month, day, found + timedelta(days=1)))
    return safe_day(today.year, month, 32)


def _lunar_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    great = _GREAT_YEAR.match(text, at)
    if great:
        return _lunar(1, whole(great["day"]), False, None, today), great.end()
    said = _LUNAR_WORDS.match(text, at)
    year, start = _year_at(text, said.end() if said else at, today)
    match = _LUNAR.match(text, start)
    if match is None or not (said or match["said"] or match["leap"] or match["month"] in _LUNAR_MONTHS or match["day"].startswith(("初", "廿"))):
        return None
    month = _LUNAR_MONTHS.get(match["month"]) or whole(match["month"])
    day = whole(match["day"].removeprefix("初"))
    return _lunar(month, day, bool(match["leap"]), year, today), match.end()


def _lunar(month: int, day: int, leap: bool, year: int | None, today: date) -> Days:
    if year is not None:
        found = lunar_date(year, month, day, leap)
        return one_day(found) if found else safe_day(2000, 1, 32)
    found = lunar_day_from(today, month, day, leap)
    if found is None:
        return safe_day(2000, 1, 32)
    return Days(found, found + timedelta(days=1), again=lambda: _lunar(month, day, leap, None, found + timedelta(days=1)))


def _feast_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    lunar = _LUNAR_WORDS.match(text, at)
    year, start = (None, lunar.end()) if lunar else _year_at(text, at, today)
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
    return Days(found, found + timedelta(days=feast.length)) if found else safe_day(2000, 1, 32), end


def _coming(feast: Feast, today: date) -> Days:
    found = feast.next_from(today)
    if found is None:
        return safe_day(2000, 1, 32)
    return Days(found, found + timedelta(days=feast.length), again=lambda: _coming(feast, found + timedelta(days=1)))


def _year_at(text: str, at: int, today: date) -> tuple[int | None, int]:
    """The year named at `at`, if one is, and where the name ends."""
    match = _YEAR.match(text, at)
    if match is None:
        return None, at
    if match["word"]:
        return today.year + _YEAR_WORDS[match["word"]], match.end()
    if match["republic"]:
        return 1911 + (1 if match["bias"] == "元" else int(number(match["bias"]) or 1)), match.end()
    year = int(number(match["digits"]) or 0)
    return year + 2000 if year < 100 else year, match.end()


def _of_year_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    year, start = _year_at(text, at, today)
    if year is None:
        match = _OF_YEAR_ALONE.match(text, at)
        return (_coming_part_of_year(match, today), match.end()) if match else None
    if not 1 <= year < 9990:
        return safe_day(2000, 1, 32), start
    tail = _TAIL_OF_YEAR.match(text, start)
    if tail:
        return _part_of_year(year, tail), tail.end()
    link = start
    while link < len(text) and text[link] in " ,的":
        link += 1
    month = _MONTH.match(text, link)
    if month and month["month"] and 1 <= whole(month["month"]) <= 12:
        return _within_month(text, month.end(), year, whole(month["month"]), None)
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
        which = _EDGES[groups["edge"].removeprefix("年")]
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
        return month_of(year, which, count) if 1 <= which <= 12 and count <= 12 else safe_day(2000, 1, 32)
    if not (1 <= which <= 366 and count <= 366):
        return safe_day(2000, 1, 32)
    if unit == "天":
        first = date(year, 1, 1) + timedelta(days=which - 1)
        return Days(first, first + timedelta(days=count))
    first = monday_of(date(year, 1, 4)) + timedelta(weeks=which - 1)
    return Days(first, first + timedelta(weeks=count), Grain.WEEK)


def _last_units_of_year(year: int, unit: str, count: int) -> Days:
    if count > 366:
        return safe_day(2000, 1, 32)
    after = date(year + 1, 1, 1)
    if unit == "月":
        return month_of(year, 13 - min(count, 12), min(count, 12))
    if unit == "天":
        return Days(after - timedelta(days=count), after)
    end = monday_of(after)
    return Days(end - timedelta(weeks=count), end, Grain.WEEK)


def _of_month_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    edge = _EDGE_ALONE.match(text, at)
    if edge:
        return _coming_in_month(lambda year, month: safe_day(year, month, _EDGES[edge["edge"]]), today), edge.end()
    match = _MONTH.match(text, at)
    if match is None:
        return None
    if match["month"]:
        month = whole(match["month"])
        if not 1 <= month <= 12:
            return None
        return _within_month(text, match.end(), None, month, today)
    shift = -match["last"].count("上") if match["last"] else match["next"].count("下") if match["next"] else 0
    year, month = _carried(today.year, today.month + shift)
    return _within_month(text, match.end(), year, month, None)


def _within_month(text: str, at: int, year: int | None, month: int, today: date | None) -> tuple[Days, int]:
    """What is said of the month: a day of it, a part, or nothing. Without `year` the next one from `today` on."""
    tail = _TAIL_OF_MONTH.match(text, at)
    end = tail.end() if tail else at
    if today is None or year is not None:
        return _part_of_month(year or 1, month, tail), end
    for candidate in range(today.year, min(today.year + 9, 9998)):
        found = _part_of_month(candidate, month, tail)
        if found.after > today and found.exists:
            coming = found
            return (
                Days(
                    coming.first,
                    coming.after,
                    coming.grain,
                    again=lambda: _within_month(text, at, None, month, coming.after)[0],
                ),
                end,
            )
    return safe_day(today.year, month, 32), end


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
        return safe_day(year, month, _EDGES[tail["edge"]])
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


def _day_at(text: str, at: int, today: date) -> tuple[Days, int] | None:
    match = _DAY_ALONE.match(text, at)
    if match is None:
        return None
    day = whole(match["day"])
    if not 1 <= day <= 31:
        return safe_day(2000, 1, 32), match.end()
    return _coming_in_month(lambda year, month: safe_day(year, month, day), today), match.end()


def _coming_in_month(of: Callable[[int, int], Days], today: date) -> Days:
    """The next of what every month has, or most have."""
    for more in range(14):
        found = of(*_carried(today.year, today.month + more))
        if found.exists and found.first >= today:
            return Days(found.first, found.after, again=lambda: _coming_in_month(of, found.after))
    return safe_day(2000, 1, 32)


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

