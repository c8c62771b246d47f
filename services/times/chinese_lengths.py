"""How long, in Chinese: 半小时, 一个半小时, 三个月零两天, 一刻钟, 8天20小时."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.lazy_patterns import lazy_pattern
from services.times.chinese_letters import NUMBER, SEVERAL, number
from services.times.readings import Grain, Length

_UNIT = (
    r"(?P<second>秒钟?)|(?P<minute>分钟|分(?!之)|min(?:ute)?s?(?![a-z]))|(?P<quarter_hour>刻钟?)"
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

_HALVES: Mapping[str, tuple[Length, Grain]] = {
    "分钟": (Length(seconds=30), Grain.SECOND),
    "小时": (Length(seconds=1800), Grain.MINUTE),
    "钟头": (Length(seconds=1800), Grain.MINUTE),
    "钟": (Length(seconds=1800), Grain.MINUTE),
    "天": (Length(seconds=12 * 3600), Grain.HOUR),
    "日": (Length(seconds=12 * 3600), Grain.HOUR),
    "周": (Length(days=3, seconds=12 * 3600), Grain.HOUR),
    "星期": (Length(days=3, seconds=12 * 3600), Grain.HOUR),
    "礼拜": (Length(days=3, seconds=12 * 3600), Grain.HOUR),
    "月": (Length(days=15), Grain.DAY),
    "年": (Length(months=6), Grain.MONTH),
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
    "hour": _HALVES["小时"],
    "day": _HALVES["天"],
    "week": _HALVES["周"],
    "month": _HALVES["月"],
    "quarter": (Length(months=1, days=15), Grain.DAY),
    "year": _HALVES["年"],
}
_FINENESS = list(Grain)
_MOST = 100_000
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Amount:
    """A length as it was said."""

    length: Length
    grain: Grain
    """Of its finest unit."""
    count: float
    unit: str
    """The last unit named: `day`, `quarter_hour`."""
    is_vague: bool = False
    """It was said as 两三天 or 十几分钟."""


def amount_at(text: str, at: int) -> tuple[Amount, int] | None:
    """The length that begins at `at` of a text in one form, as long as it goes, and where it ends."""
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
        length, grain = _HALVES[match["half_unit"].removeprefix("个")]
        return Amount(length, grain, 0.5, "half"), match.end()
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
        half = match["half_of"]
        unit = {"月": "month", "星期": "week", "礼拜": "week"}.get(half, "hour")
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
    """`count` of a unit; what is left of a calendar unit becomes smaller ones."""
    length, grain = _UNITS[unit]
    months, part = divmod(length.months * count, 1)
    days, rest = divmod(length.days * count + part * 30, 1)
    seconds = length.seconds * count + rest * 86_400
    return Amount(Length(int(months), int(days), seconds), grain, count, unit, is_vague)


def _sum(left: Amount, right: Amount) -> Amount:
    grain = min(left.grain, right.grain, key=_FINENESS.index)
    return Amount(left.length + right.length, grain, right.count, right.unit, left.is_vague or right.is_vague)
