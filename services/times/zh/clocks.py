"""Chinese times of day and durations: 下午三点半, 差一刻八点, 半小时, 一个半小时."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time

from services.patterns import lazy_pattern
from services.times.words.readings import Grain, Length
from services.times.zh.letters import HOUR, MINUTE, NUMBER, SEVERAL, number, whole


@dataclass(frozen=True, slots=True)
class DayPart:
    """Part of the day, such as 早上: first and last hour, relative to its day, and the usual hour of an event."""

    name: str
    begin: int
    end: int
    usual: int

    @property
    def default(self) -> time:
        """The usual hour of an event in this part of the day."""
        return time(self.usual % 24)


_PARTS = (
    (DayPart("small hours", 0, 6, 0), "凌晨"),
    (DayPart("dawn", 5, 8, 6), "清晨 拂晓 黎明 大清早 清早 今晨 晨"),
    (DayPart("morning", 4, 12, 9), "一大早 一早 大早上 早上 早晨 早间 朝头早 朝早 早 朝"),
    (DayPart("morning", 4, 12, 9), "上午 午前 上昼"),
    (DayPart("noon", 11, 13, 12), "中午 正午 晌午"),
    (DayPart("afternoon", 12, 19, 15), "下午 午后 晏昼 下昼"),
    (DayPart("dusk", 17, 20, 18), "傍晚 黄昏"),
    (DayPart("evening", 18, 24, 20), "大晚上 晚上 晚间 夜晚 夜间 夜里 夜晚间 晚"),
    (DayPart("night", 21, 24, 22), "深夜 深更半夜 大半夜 后半夜 半夜 夜"),
    (DayPart("daytime", 8, 18, 12), "白天"),
)
_PART_NAMED = {name: part for part, names in _PARTS for name in names.split()}
_ALONE = "|".join(sorted((name for name in _PART_NAMED if len(name) > 1), key=len, reverse=True))
PART = lazy_pattern(
    rf"(?P<name>{_ALONE})(?!好(?!吗|不)|茶|[餐饭安])|(?P<short>早晚|(?<=[今听后每])朝(?![代廷])|[早晚晨夜](?![餐饭安会点辈期熟餐自]|霜|间(?!\d)|(?<=早晚)))"
)
"""Part of the day; single characters count only after a day or before a time."""
_MIDNIGHT = lazy_pattern(r"午夜|子夜")

_BARE_MINUTE = r"(?:[0-5]\d|[一二三四五]?十[一二三四五六七八九]?|[零〇](?:[一二三四五六七八九]|\d(?!\d)))"
_COUNTED = (
    r"[\d:./十百千]|\s*(?:[个人次号天年月日小时周块元只条张岁米度刻点分位名件份毛角斤杯瓶页遍题道组层楼班台辆秒-])"
)
_SPOKEN = lazy_pattern(
    rf"(?:差\s*(?:(?P<to_quarter>[一二两三123])刻钟?|(?P<to>{MINUTE})分钟?)\s*(?:到|就)?)?"
    rf"(?P<hour>{HOUR})\s*(?:(?P<ranged>(?=(?:到|至|-|~)\s*{HOUR}\s*(?:点|时(?![间候]))))|点钟|点(?![菜名子心击赞评缀燃歌播餐单滴儿]|点(?![名菜餐单赞])|数|建议|意见)|时(?![间候刻代段期差机常髦尚许速装]))"
    rf"(?:\s*(?:(?P<exact>整|正(?![常在好确式])|钟)|(?P<half>过?半(?![天年个小]))|过?(?P<quarter>[一二两三123])\s*刻钟?"
    rf"|差\s*(?:(?P<less_quarter>[一二两三123])刻钟?|(?P<less>{MINUTE})分?)"
    rf"|过?\s*(?P<minute>{MINUTE})\s*分(?!钟?(?:之|以)?[后内])钟?\s*整?(?:\s*(?P<second>{MINUTE})\s*秒(?!钟?(?:之|以)?[后内])钟?)?"
    rf"|过?\s*(?P<bare>{_BARE_MINUTE})(?!{_COUNTED})))?"
    r"(?:\s*(?P<mark>[ap]\.?m\.?)(?![a-z]))?"
)
_DIGITAL = lazy_pattern(
    r"(?<![\d:.])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?![\d:])(?:\s*(?P<mark>[ap]\.?m?\.?)(?![a-z]))?"
    r"|(?<![\d:.])(?P<bare>1[0-2]|0?\d)\s*(?P<bare_mark>[ap]\.?m\.?)(?![a-z])"
    r"|(?<![\d:.])(?P<h>[01]?\d|2[0-4])h(?P<h_minute>[0-5]\d)(?!\d)"
)
_AROUND = lazy_pattern(r"\s*(?:左右|上下|前后|多(?![久少人吃喝带买])|许(?![多久可愿]))")


@dataclass(frozen=True, slots=True)
class Clock:
    """Time of day as written in Chinese; may be invalid (`exists`)."""

    hour: int
    """Up to 24; with a part of the day relative to its day, up to 30 after midnight."""
    minute: int = 0
    second: int = 0
    grain: Grain = Grain.HOUR
    is_open: bool = False
    """Could be before or after noon."""
    exists: bool = True
    """Whether the time is valid."""

    def seconds(self, hour: int | None = None) -> int:
        """Seconds since midnight of its day, with `hour` instead of its own hour if given; may exceed a day."""
        return (self.hour if hour is None else hour) * 3600 + self.minute * 60 + self.second

    def as_time(self) -> time:
        """Convert to a time; an open one falls into waking hours."""
        return time(waking_hour(self) % 24, self.minute, self.second)


def part_at(text: str, at: int, *, short: bool) -> tuple[DayPart, int] | None:
    """Part of the day at `at` with its end; None without a part. `short` permits single characters."""
    match = PART.match(text, at)
    if match is None or (match["short"] and (not short or match["short"] == "早晚")):
        return None
    return _PART_NAMED[match["name"] or match["short"]], match.end()


def clock_at(text: str, at: int, part: DayPart | None) -> tuple[Clock, int] | None:
    """Time of day at `at`, interpreted within `part`, with its end; None without a time. The time may be invalid."""
    midnight = _MIDNIGHT.match(text, at)
    if midnight and (part is None or part.name in ("evening", "night")):
        return clock_at(text, midnight.end(), _PART_NAMED["半夜"]) or (Clock(24), midnight.end())
    match = _DIGITAL.match(text, at)
    clock = _digital(match) if match else None
    if clock is None:
        match = _SPOKEN.match(text, at)
        clock = _spoken(match) if match else None
    if match is None or clock is None:
        return None
    around = _AROUND.match(text, match.end())
    return _in_part(clock, part), around.end() if around else match.end()


def waking_hour(clock: Clock) -> int:
    """Likely hour of an open time: 6 to 11 before noon, 12 to 5 after it. The written hour if it is not open."""
    return clock.hour + 12 if clock.is_open and 0 < clock.hour < 6 else clock.hour


def _digital(match: re.Match[str]) -> Clock | None:
    if match["bare"]:
        return _marked(Clock(int(match["bare"])), match["bare_mark"])
    if match["h"]:
        return Clock(int(match["h"]), int(match["h_minute"]), grain=Grain.MINUTE)
    hour, minute, second = match["hour"], int(match["minute"]), match["second"]
    clock = Clock(int(hour), minute, int(second or 0), Grain.SECOND if second else Grain.MINUTE)
    if match["mark"]:
        return _marked(clock, match["mark"])
    return _opened(clock) if not hour.startswith("0") else clock


def _spoken(match: re.Match[str]) -> Clock | None:
    hour, minute, grain = whole(match["hour"]), 0, Grain.HOUR
    if match["half"]:
        minute = 30
    elif match["quarter"]:
        minute = whole(match["quarter"]) * 15
    elif match["minute"] or match["bare"]:
        minute, grain = whole(match["minute"] or match["bare"]), Grain.MINUTE
    if minute:
        grain = Grain.MINUTE
    less = _less(match)
    if less:
        hour, minute, grain = (hour - 1 if hour else 23, 60 - less, Grain.MINUTE) if not minute else (hour, 60, grain)
    second = whole(match["second"]) if match["second"] else 0
    clock = Clock(hour, minute, second, Grain.SECOND if match["second"] else grain)
    return _marked(clock, match["mark"]) if match["mark"] else _opened(clock)


def _less(match: re.Match[str]) -> int:
    quarters, minutes = match["to_quarter"] or match["less_quarter"], match["to"] or match["less"]
    return whole(quarters) * 15 if quarters else whole(minutes) if minutes else 0


def _opened(clock: Clock) -> Clock:
    exists = clock.minute < 60 and (clock.hour < 24 or (clock.hour == 24 and not clock.minute))
    return Clock(clock.hour, clock.minute, clock.second, clock.grain, 0 < clock.hour <= 12, exists)


def _at_hour(clock: Clock, hour: int) -> Clock:
    return Clock(hour, clock.minute, clock.second, clock.grain, exists=clock.exists)


def _marked(clock: Clock, mark: str) -> Clock | None:
    """`clock` with a following am or pm applied; ignored for hours above 12."""
    if clock.hour > 12:
        return _at_hour(clock, clock.hour)
    return _at_hour(clock, clock.hour % 12 + (12 if mark.startswith("p") else 0))


def _in_part(clock: Clock, part: DayPart | None) -> Clock:
    """`clock` with its hour interpreted within the part of the day: 15 for 下午三点, 25 for 晚上一点."""
    hour = clock.hour
    if part is None or hour > 12 or not (clock.is_open or hour == 0):
        return clock
    match part.name:
        case "afternoon" | "dusk":
            hour = hour + 12 if hour < 12 else 12
        case "noon":
            hour = hour + 12 if hour < 10 else hour
        case "evening":
            hour = hour + 24 if hour < 5 else hour + 12
        case "night":
            hour = hour + 24 if hour < 7 else hour + 12
        case "small hours":
            hour = hour % 12
        case "daytime":
            hour = hour + 12 if hour < 7 else hour
    return _at_hour(clock, hour)


_UNIT = (
    r"(?P<second>秒钟?|s(?:ec(?:ond)?s?)?(?![a-z]))|(?P<minute>分钟|分(?!之)|min(?:ute)?s?(?![a-z]))|(?P<quarter_hour>刻钟?)"
    r"|(?P<hour>个?(?:小时|钟头|钟点)|个钟|小时|时(?![间候刻代段期差机常髦尚])|hours?(?![a-z])|h(?![a-z]))"
    r"|(?P<day>天|日(?![期程子记历报常志用语本]))|(?P<week>个?(?:星期|礼拜)(?![一二三四五六日天])|周(?![岁年边围期到转折刊报一二三四五六日天末])|周(?=一[次起直])|星期(?=天气))"
    r"|(?P<month>个月|月(?=[,零又]\s*[\d一二两三四五六七八九十半]+\s*[天周个小分秒星礼]|(?<=多月)))|(?P<quarter>个?季度)|(?P<year>年(?![级纪代龄轻级底末初份货薪会终假糕]|后?半年))"
)
_ONE = lazy_pattern(
    rf"(?:(?P<half>大?半)(?P<half_unit>分钟|个?(?:小时|钟头|钟|星期|礼拜|月)|天|日|年|周)"
    rf"|(?P<few>[几数])(?P<few_ten>十)?\s*(?:{_UNIT.replace('?P<', '?P<few_')})"
    rf"|(?P<count>{NUMBER})(?P<tens>[几多来]|个多(?=[小钟星礼月]))?\s*(?:个(?P<and_half>半)(?P<half_of>小时|钟头|钟|星期|礼拜|月)|(?:{_UNIT})(?P<more>半(?![天夜个年小]))?))"
)
_JOIN = lazy_pattern(r"\s*(?:零|又|,|、|和|加|and)?\s*")
_LEADING = lazy_pattern(
    r"(?P<minutes>\d{1,2}|[二三四五]?十[一二三四五六七八九]?|[零〇][一二三四五六七八九])分?(?![\d:个天月日年周点号元块])"
)
_UNCERTAIN = lazy_pattern(r"[一二两三四五六七八九](?=[二三四五六七八九])")

_UNIT_OF_HALF = {
    "分钟": "minute",
    "小时": "hour",
    "钟头": "hour",
    "钟": "hour",
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
}
_UNITS: Mapping[str, tuple[Length, Grain]] = {
    "second": (Length(seconds=1), Grain.SECOND),
    "minute": (Length(seconds=60), Grain.MINUTE),
    "quarter_hour": (Length(seconds=900), Grain.MINUTE),
    "hour": (Length(seconds=3600), Grain.HOUR),
    "day": (Length(days=1), Grain.DAY),
    "week": (Length(days=7), Grain.WEEK),
    "month": (Length(months=1), Grain.MONTH),
    "quarter": (Length(months=3), Grain.QUARTER),
    "year": (Length(months=12), Grain.YEAR),
}
_HALF_OF: Mapping[str, tuple[Length, Grain]] = {
    "second": (Length(seconds=0.5), Grain.SECOND),
    "minute": (Length(seconds=30), Grain.SECOND),
    "quarter_hour": (Length(seconds=450), Grain.SECOND),
    "hour": (Length(seconds=1800), Grain.MINUTE),
    "day": (Length(seconds=12 * 3600), Grain.HOUR),
    "week": (Length(days=3, seconds=12 * 3600), Grain.HOUR),
    "month": (Length(days=15), Grain.DAY),
    "quarter": (Length(months=1, days=15), Grain.DAY),
    "year": (Length(months=6), Grain.MONTH),
}
_FINENESS = list(Grain)
_MOST = 100_000
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Amount:
    """Duration as written in Chinese, with its last unit and count."""

    length: Length
    grain: Grain
    """Grain of its finest unit."""
    count: float
    unit: str
    """The last unit: `day`, `quarter_hour`."""
    is_vague: bool = False
    """Approximate, as 两三天 or 十几分钟."""


def amount_at(text: str, at: int) -> tuple[Amount, int] | None:
    """Longest duration at `at` of a normalized text, with its end; None without a duration."""
    first = _one_at(text, at)
    if first is None:
        return None
    amount, end = first
    for _ in range(_MOST_PARTS):
        joint = _JOIN.match(text, end)
        more = _one_at(text, joint.end()) if joint else None
        if more is None or _FINENESS.index(more[0].grain) >= _FINENESS.index(amount.grain):
            break
        amount, end = _sum(amount, more[0]), more[1]
    if amount.unit == "hour" and (match := _LEADING.match(text, end)):
        minutes = number(match["minutes"]) or 0
        if minutes < 60:
            amount = _sum(amount, Amount(Length(seconds=minutes * 60), Grain.MINUTE, minutes, "minute"))
            end = match.end()
    return amount, end


def _one_at(text: str, at: int) -> tuple[Amount, int] | None:
    match = _ONE.match(text, at)
    if match is None:
        return None
    if match["half"]:
        unit = _UNIT_OF_HALF[match["half_unit"].removeprefix("个")]
        return Amount(*_HALF_OF[unit], 0.5, "half"), match.end()
    unit = _unit_of(match)
    if match["few"]:
        return _counted(SEVERAL * (10 if match["few_ten"] else 1), unit, is_vague=bool(match["few_ten"])), match.end()
    count = number(match["count"])
    if count is None or count > _MOST or (unit == "year" and count >= 1000):
        return None
    is_vague = bool(match["tens"] or _UNCERTAIN.match(match["count"]))
    if is_vague and not match["tens"]:
        count = number(match["count"][0]) or 0
    if match["and_half"]:
        unit = _UNIT_OF_HALF[match["half_of"]]
        return _sum(_counted(count, unit), Amount(*_HALF_OF[unit], 0.5, unit)), match.end()
    amount = _counted(count, unit, is_vague=is_vague)
    if match["more"]:
        amount = _sum(amount, Amount(*_HALF_OF[unit], 0.5, unit))
    return amount, match.end()


def _unit_of(match: re.Match[str]) -> str:
    for unit in _UNITS:
        if match[unit] or match[f"few_{unit}"]:
            return unit
    return "hour"


def _counted(count: float, unit: str, *, is_vague: bool = False) -> Amount:
    """`count` units; fractions of calendar units are converted to smaller units."""
    length, grain = _UNITS[unit]
    months, part = divmod(length.months * count, 1)
    days, rest = divmod(length.days * count + part * 30, 1)
    seconds = length.seconds * count + rest * 86_400
    return Amount(Length(int(months), int(days), seconds), grain, count, unit, is_vague)


def _sum(left: Amount, right: Amount) -> Amount:
    grain = min(left.grain, right.grain, key=_FINENESS.index)
    return Amount(left.length + right.length, grain, right.count, right.unit, left.is_vague or right.is_vague)
