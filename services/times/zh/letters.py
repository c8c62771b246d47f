"""Normalization of Chinese text, numerals, and Chinese names of time zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from config.word_tables import word_tables
from services.patterns import lazy_pattern

_TRADITIONAL = (
    "點時鐘鍾號週禮後個兩這從間內過農曆臘節國慶勞動兒聖誕親婦師復雙東陽陰萬億晝現馬剛當連續幾數為爲開終結閏歷臺"
    "紐約倫頓華韓獨軍黨樹總還來學聽尋齊無盡截號員歐區準標點單雙調復覆灣舊參陸貳恆於兩壹夾鬧隨漸臨燈頭遲贖獻誦齋靈牲猶"
)
_SIMPLIFIED = (
    "点时钟钟号周礼后个两这从间内过农历腊节国庆劳动儿圣诞亲妇师复双东阳阴万亿昼现马刚当连续几数为为开终结闰历台"
    "纽约伦顿华韩独军党树总还来学听寻齐无尽截号员欧区准标点单双调复复湾旧参陆贰恒于两壹夹闹随渐临灯头迟赎献诵斋灵牲犹"
)
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FORMS = str.maketrans(
    {chr(wide): chr(narrow) for wide, narrow in _WIDE.items()}
    | dict(zip(_TRADITIONAL, _SIMPLIFIED, strict=True))
    | {"\u3000": " ", "\xa0": " ", "○": "〇", "〜": "~", "–": "-", "—": "-", "―": "-", "−": "-", "﹕": ":", "∶": ":"}
)

_DIGITS = {
    letter: value
    for value, letters in enumerate(("零〇", "一壹", "二两贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖"))
    for letter in letters
}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_TENS = {"廿": 20, "卅": 30}
LETTERS = "".join((*_DIGITS, *_UNITS, *_TENS))
"""Characters of numerals."""
NUMBER = rf"(?:\d+(?:\.\d+)?|[{LETTERS}]+)"
"""Pattern of integers and decimals, without groups."""
SEVERAL = 3
"""Value of 几."""

_DIGIT = "[一二三四五六七八九壹贰叁肆伍陆柒捌玖]"
HOUR = rf"(?:[01]?\d(?!\d)|2[0-5]|二十[一二三四五]?|[一]?十{_DIGIT}?|[零〇两]|{_DIGIT})"
MINUTE = rf"(?:[0-5]?\d(?!\d)|[一二三四五]?十{_DIGIT}?|[零〇](?:{_DIGIT}|\d(?!\d))|[零〇两]|{_DIGIT})"
DAY = rf"(?:[012]?\d(?!\d)|3[012](?!\d)|[一二贰三叁]?[十拾]{_DIGIT}?|廿{_DIGIT}?|卅一?|{_DIGIT})"
MONTH = rf"(?:0?\d(?!\d)|1[0-2](?!\d)|[一]?十[一二]?|{_DIGIT})"
"""Patterns of clock and calendar numbers, longest first, without groups."""

_CHINESE = lazy_pattern(r"[\u3400-\u9fff\uff01-\uff5e]")


def has_chinese(text: str) -> bool:
    """Whether `text` contains Chinese or full-width characters."""
    return _CHINESE.search(text) is not None


def one_form(text: str) -> str:
    """Normalize `text` to half-width, simplified, lower-case characters, one to one, so that positions stay valid."""
    formed = text.translate(_FORMS)
    lower = formed.lower()
    return lower if len(lower) == len(formed) else formed


def number(word: str) -> float | None:
    """Value of a `NUMBER` match, an int if possible; None if the characters form no number."""
    if word[-1].isdecimal():
        digits = word.lstrip("零〇")
        return float(digits) if "." in digits else int(digits)
    if all(letter in _DIGITS for letter in word):
        return int("".join(str(_DIGITS[letter]) for letter in word)) if len(word) <= 4 else None
    total, digit, last_unit = 0, None, 10_000
    for letter in word:
        if letter in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[letter]
        elif letter in _TENS:
            if total or digit is not None:
                return None
            total, last_unit = _TENS[letter], 10
        else:
            unit = _UNITS[letter]
            if unit >= last_unit:
                return None
            total += unit * (1 if digit is None else digit)
            digit, last_unit = None, unit
    return total + (digit or 0)


def whole(word: str) -> int:
    """Integer value of an `HOUR`, `MINUTE`, `DAY` or `MONTH` match; 0 if the characters form no number."""
    return int(number(word) or 0)


@cache
def _zones(table: str) -> Mapping[str, str]:
    """IANA zones by the names in a table."""
    return {name: zone for zone, *names in map(str.split, word_tables("places")[table]) for name in names}


@cache
def _named() -> re.Pattern[str]:
    names = "|".join(sorted(_zones("chinese_zones"), key=len, reverse=True))
    return re.compile(
        rf"(?P<place>{names})"
        r"(?:当地)?(?:标准|夏令)?(?:时间|时(?![装尚刻代候]))的?"
        rf"|(?:utc|gmt)\s*(?P<sign>[+-])\s*(?P<hours>\d{{1,2}})(?::?(?P<minutes>[0-5]\d))?(?!\d)"
        rf"|(?P<side>[东西])(?P<count>{NUMBER})区(?:时间)?"
        rf"|(?P<short>{'|'.join(_zones('chinese_abbreviations'))})(?![a-z+-])(?:\s*时间)?"
    )


def zone_at(text: str, at: int) -> tuple[tzinfo, int] | None:
    """Time zone at `at` of a normalized text, with its end; None without a zone known to this machine."""
    match = _named().match(text, at)
    if match is None:
        return None
    if match["sign"]:
        minutes = int(match["hours"]) * 60 + int(match["minutes"] or 0)
        return _fixed(-minutes if match["sign"] == "-" else minutes, match.end())
    if match["side"]:
        hours = number(match["count"]) or 0
        return _fixed(int(hours) * (60 if match["side"] == "东" else -60), match.end())
    place = match["place"]
    zone = _zones("chinese_zones")[place] if place else _zones("chinese_abbreviations")[match["short"]]
    try:
        return ZoneInfo(zone), match.end()
    except (ZoneInfoNotFoundError, OSError):
        return None


def _fixed(minutes: int, end: int) -> tuple[tzinfo, int] | None:
    return (timezone(timedelta(minutes=minutes)), end) if abs(minutes) <= 14 * 60 else None


def zone_letters() -> str:
    """First characters of all zone names, as one text for a character class."""
    return "".join(sorted({name[0] for name in (*_zones("chinese_zones"), *_zones("chinese_abbreviations"))})) + "东西"
