"""Chinese dates and holidays: 3月5日, 2026-3-5, 农历八月十五, 春节前三天."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from services.patterns import lazy_pattern
from services.times.words.holidays import (
    LAST_DAY,
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

_FIXED = {
    (1, 1): "元旦 新年 公历新年 阳历新年",
    (1, 6): "主显节 三王节",
    (2, 4): "世界癌症日",
    (2, 14): "情人节 西洋情人节 圣瓦伦丁节 瓦伦丁节",
    (3, 3): "爱耳日 全国爱耳日",
    (3, 7): "女生节",
    (3, 8): "妇女节 三八节 三八妇女 国际妇女节 国际劳动妇女 女神节",
    (3, 12): "植树节 中国植树节",
    (3, 14): "白色情人节",
    (3, 15): "消费者权益日 国际消费者权益日 世界消费者权益日 三一五",
    (3, 17): "圣帕特里克节",
    (3, 21): "世界诗歌日",
    (3, 22): "世界水日",
    (4, 1): "愚人节",
    (4, 7): "世界卫生日",
    (4, 22): "地球日 世界地球日",
    (4, 23): "读书日 世界读书日",
    (4, 30): "国际爵士日",
    (5, 1): "五一 劳动节 五一劳动 国际劳动节 五一国际劳动",
    (5, 4): "五四 青年节 五四青年 中国青年节",
    (5, 12): "护士节 国际护士节",
    (5, 31): "世界无烟日",
    (6, 1): "六一 儿童节 六一儿童 国际儿童节 六一国际儿童",
    (6, 5): "世界环境日",
    (6, 6): "爱眼日 全国爱眼日",
    (6, 8): "世界海洋日",
    (6, 14): "世界献血日",
    (6, 20): "世界难民日",
    (6, 21): "国际瑜伽日",
    (6, 23): "国际奥林匹克日",
    (7, 1): "七一 建党节 党的生日 中国共产党诞生日 建党日 香港回归日 香港回归纪念日",
    (7, 4): "独立日 美国独立日",
    (7, 11): "世界人口日",
    (8, 1): "八一 建军节 八一建军",
    (8, 12): "国际青年节",
    (9, 3): "抗战胜利日 抗战胜利纪念日",
    (9, 5): "国际慈善日",
    (9, 10): "教师节 中国教师节",
    (9, 20): "爱牙日 全国爱牙日",
    (9, 27): "世界旅游日",
    (9, 29): "世界心脏日",
    (10, 1): "国庆 十一国庆 十一长假 十一假期 十一黄金周",
    (10, 5): "世界教师日",
    (10, 10): "双十节 辛亥革命纪念日",
    (10, 16): "世界粮食日",
    (10, 31): "万圣节 万圣夜 万圣前夜 万圣节前夜",
    (11, 1): "诸圣节 万圣日",
    (11, 2): "万灵节",
    (11, 8): "记者节",
    (11, 11): "双十一 双11 光棍节 退伍军人节 老兵节",
    (11, 14): "世界糖尿病日",
    (12, 1): "世界艾滋病日",
    (12, 10): "人权日 世界人权日",
    (12, 12): "双十二 双12",
    (12, 13): "国家公祭日 南京大屠杀纪念日",
    (12, 20): "澳门回归日 澳门回归纪念日",
    (12, 24): "平安夜 圣诞夜 圣诞前夜 圣诞节前夜",
    (12, 25): "圣诞",
    (12, 26): "节礼日",
    (12, 31): "跨年 跨年夜 新年夜",
}
_NTH_WEEKDAYS = {
    (1, 3, 1): "马丁路德金节 马丁路德金日 马丁路德金纪念日",
    (2, 3, 1): "总统日",
    (5, 2, 7): "母亲节",
    (6, 3, 7): "父亲节",
    (10, 2, 1): "哥伦布日",
    (11, 4, 4): "感恩节",
}
"""Month, position and weekday."""
_LUNAR = {
    (1, 1): "春节 大年初一 年初一 农历新年 农历年 农历春节 正月正时",
    (1, 15): "元宵 上元 灯节",
    (2, 2): "龙抬头 二月二龙抬头",
    (4, 8): "佛诞 佛诞日 浴佛",
    (5, 5): "端午 端阳 龙舟节 粽子节",
    (7, 7): "七夕 乞巧 七夕情人",
    (7, 15): "中元 鬼节 盂兰盆",
    (8, 15): "中秋 八月十五中秋",
    (9, 9): "重阳 敬老节 九九重阳",
    (10, 15): "下元",
    (12, 8): "腊八",
    (12, 23): "小年 小年夜",
    (12, LAST_DAY): "除夕 除夕夜 大年三十 年三十 大年夜 大年三十夜 农历除夕",
}
_EASTER = {
    -47: "忏悔星期二",
    -46: "圣灰日 圣灰星期三 圣灰周三 大斋首日",
    -7: "棕枝主日 棕榈主日 圣枝主日 圣树主日",
    -3: "濯足日 圣周四 濯足星期四",
    -2: "耶稣受难日 受难日 主受难日 主受难 耶稣受难 圣周五 沈默周五 沉默周五",
    -1: "圣周六 黑色星期六",
    0: "复活节 复活日 复活节星期日 复活节周日 主复活日",
    1: "复活节星期一 复活节周一",
    39: "耶稣升天 升天节",
    49: "五旬节 圣灵降临 圣灵降临日 圣神降临 五旬节主日",
    50: "圣灵降临节星期一 圣灵降临节周一",
    60: "基督圣体节 圣体节",
    56: "圣三节 圣三一 圣三一主日 圣三主日 天主三一",
}
_ELSEWHERE = {
    "rosh hashanah": "犹太新年 岁首节",
    "yom kippur": "赎罪日",
    "sukkot": "住棚节",
    "shemini atzeret": "圣会节",
    "simchat torah": "诵经节 西赫托拉节 妥拉节 欢庆圣法节",
    "hanukkah": "光明节 献殿节 修殿节 哈努卡",
    "tu bishvat": "犹太植树节",
    "purim": "普珥节 普林节",
    "passover": "逾越节",
    "lag baomer": "篝火节",
    "shavuot": "七七节",
    "tisha b'av": "圣殿被毁日",
    "lent": "大斋期 四旬期",
    "islamic new year": "伊斯兰新年 回历新年",
    "ashura": "阿舒拉节",
    "mawlid": "圣纪节",
    "ramadan": "斋月",
    "eid al fitr": "开斋节 肉孜节",
    "eid al adha": "古尔邦节 宰牲节 忠孝节",
}
"""Holidays of other calendars, by their names in `holidays`."""
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


def _from_easter(days: int, of: Callable[[int], date]) -> Feast:
    return Feast(lambda year: of(year) + timedelta(days=days) if 1583 <= year <= 4099 else None)


def _feasts() -> dict[str, Feast]:
    named: dict[str, Feast] = {}

    def add(names: str, feast: Feast, before: str = "") -> None:
        for name in names.split():
            named[before + name] = feast

    for (month, day_of_month), names in _FIXED.items():
        at = (month, day_of_month)
        add(names, Feast(lambda year, at=at: date(year, *at), fixed=at))  # type: ignore[misc]
    for (month, which, weekday), names in _NTH_WEEKDAYS.items():
        add(names, _on_weekday(month, which, weekday))
    for (month, day_of_month), names in _LUNAR.items():
        add(names, _on_lunar_day(month, day_of_month))
    for days, names in _EASTER.items():
        add(names, _from_easter(days, easter))
        add(names, _from_easter(days, orthodox_easter), before="东正教")
    for name, names in _ELSEWHERE.items():
        add(names, Feast(lambda year, name=name: day_of(name, year), length=_LENGTHS.get(name, 1)))  # type: ignore[misc]
    thanksgiving = named["感恩节"].day
    add("黑色星期五 黑五", Feast(lambda year: (thanksgiving(year) or date.max) + timedelta(days=1)))
    add("清明", Feast(lambda year: clear_and_bright(year) if 1900 <= year <= 2100 else None))
    add("冬至", Feast(lambda year: winter_solstice(year) if 1900 <= year <= 2100 else None))
    return named


_NAMED = _feasts()
# Also numbers: 51 within a larger number is not a holiday.
_NUMBERS = ("五一", "五四", "六一", "七一", "八一", "三一五")


# Words that belong to a holiday but name no day: 中秋月饼, 圣诞树.
_THINGS = "月饼|礼[物品盒]|晚会|贺卡|树|老人|帽|快乐|联欢|红包|大餐|蛋糕|装饰|粽|汤圆|花灯|灯会|上河图|时节|作业"


def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(set(_NAMED) - set(_NUMBERS), key=len, reverse=True))
    numbers = "|".join(_NUMBERS)
    return lazy_pattern(
        rf"(?:(?P<name>{names})(?:节(?![目省约奏]))?(?!轻|纪|龄|{_THINGS})"
        rf"|(?<![周期拜零一二三四五六七八九十百第逢、\d])(?P<number>{numbers})"
        r"(?:节(?![目省约奏])|(?![十百千万点号日月年个天周分刻时路起会次直定样下、])))"
        r"(?:当天|当日|那天|那一天|这天|这一天|(?:小?长)?假期?|黄金周)?"
    )


_PATTERN = _pattern()


def feast_at(text: str, at: int) -> tuple[Feast, int] | None:
    """Holiday at `at` of a normalized text, with its end; None without a holiday."""
    match = _PATTERN.match(text, at)
    if match is None:
        return None
    number = match["number"]
    return _NAMED[number] if number else _NAMED[match["name"]], match.end()


def feast_letters() -> str:
    """First characters of all holiday names, as one text for a character class."""
    return "".join(sorted({name[0] for name in _NAMED}))


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
