"""Times of day in Chinese: 下午三点半, 差一刻八点, 20:15, 晚上十二点; and the parts of the day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from services.lazy_patterns import lazy_pattern
from services.times.chinese_letters import HOUR, MINUTE, whole
from services.times.readings import Grain


@dataclass(frozen=True, slots=True)
class DayPart:
    """A part of the day: from which hour to which of the day that it is named with, and the usual one for what is to
    happen then."""

    name: str
    begin: int
    end: int
    usual: int

    @property
    def default(self) -> time:
        """The usual hour as a time of day."""
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
"""A part of the day; one that is a single letter counts only behind a day, or before a time."""
_MIDNIGHT = lazy_pattern(r"午夜|子夜")
_TODAY_PARTS = ("small hours", "dawn", "morning")

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
    """A time of day as it was said."""

    hour: int
    """Up to 24; with a part of the day already as the day counts it, so up to 30 for the small hours of a night."""
    minute: int = 0
    second: int = 0
    grain: Grain = Grain.HOUR
    is_open: bool = False
    """It can be before noon and after."""
    exists: bool = True
    """Whether a clock can show it."""

    def seconds(self, hour: int | None = None) -> int:
        """Seconds since the midnight that the day begins with, at another `hour` where one is given."""
        return (self.hour if hour is None else hour) * 3600 + self.minute * 60 + self.second

    def as_time(self) -> time:
        """As a time of day, an open one within the hours in which people are about."""
        return time(waking_hour(self) % 24, self.minute, self.second)


def part_at(text: str, at: int, *, short: bool) -> tuple[DayPart, int] | None:
    """The part of the day named at `at`, and where the name ends. `short`: a single letter will do."""
    match = PART.match(text, at)
    if match is None or (match["short"] and (not short or match["short"] == "早晚")):
        return None
    return _PART_NAMED[match["name"] or match["short"]], match.end()


def clock_at(text: str, at: int, part: DayPart | None) -> tuple[Clock, int] | None:
    """The time of day that begins at `at`, as `part` has it, and where it ends; one that no clock shows as well."""
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
    """The hour that is meant by an open one: 6 to 11 before noon, 12 to 5 after it."""
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
    """With am or pm behind it."""
    if clock.hour > 12:
        return _at_hour(clock, clock.hour)
    return _at_hour(clock, clock.hour % 12 + (12 if mark.startswith("p") else 0))


def _in_part(clock: Clock, part: DayPart | None) -> Clock:
    """The hour as the part of the day has it: 15 for 下午三点, 25 for 晚上一点."""
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
