"""Normalization of Chinese text, numerals, and Chinese names of time zones."""

from __future__ import annotations

from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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


_PLACES = {
    "Asia/Shanghai": "北京 中国 上海 国内 深圳 广州 大陆",
    "Asia/Hong_Kong": "香港",
    "Asia/Macau": "澳门",
    "Asia/Taipei": "台北 台湾",
    "Asia/Tokyo": "东京 日本 大阪",
    "Asia/Seoul": "首尔 汉城 韩国",
    "Asia/Singapore": "新加坡 狮城",
    "Asia/Kuala_Lumpur": "吉隆坡 马来西亚",
    "Asia/Bangkok": "曼谷 泰国",
    "Asia/Ho_Chi_Minh": "胡志明市 河内 越南",
    "Asia/Jakarta": "雅加达",
    "Asia/Manila": "马尼拉 菲律宾",
    "Asia/Kolkata": "印度 孟买 新德里 德里 班加罗尔",
    "Asia/Dubai": "迪拜 阿联酋",
    "Europe/Moscow": "莫斯科",
    "Europe/Istanbul": "伊斯坦布尔 土耳其",
    "Europe/London": "伦敦 英国",
    "Europe/Dublin": "都柏林 爱尔兰",
    "Europe/Paris": "巴黎 法国",
    "Europe/Berlin": "柏林 德国 慕尼黑 法兰克福 欧洲中部 中欧",
    "Europe/Madrid": "马德里 西班牙",
    "Europe/Rome": "罗马 意大利",
    "Europe/Amsterdam": "阿姆斯特丹 荷兰",
    "Europe/Zurich": "苏黎世 瑞士",
    "Europe/Athens": "雅典 东欧",
    "America/New_York": "美东 美国东部 东部 纽约 华盛顿 波士顿 多伦多",
    "America/Chicago": "美中 美国中部 芝加哥",
    "America/Denver": "美国山地 山地 丹佛",
    "America/Los_Angeles": "美西 美国西部 太平洋 洛杉矶 旧金山 西雅图 加州 硅谷 温哥华",
    "America/Sao_Paulo": "圣保罗 巴西",
    "Australia/Sydney": "悉尼 雪梨 墨尔本 澳洲东部 澳大利亚东部",
    "Australia/Perth": "珀斯",
    "Pacific/Auckland": "奥克兰 新西兰 纽西兰",
    "UTC": "格林尼治 格林威治 格林尼治标准 格林威治标准 世界 世界标准 协调世界 国际标准",
}
_ZONE_OF = {name: zone for zone, names in _PLACES.items() for name in names.split()}
_ABBREVIATIONS = {
    "utc": "UTC",
    "gmt": "UTC",
    "est": "America/New_York",
    "edt": "America/New_York",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul",
    "hkt": "Asia/Hong_Kong",
    "sgt": "Asia/Singapore",
    "cet": "Europe/Berlin",
    "bst": "Europe/London",
}
_NAMED = lazy_pattern(
    rf"(?P<place>{'|'.join(sorted(_ZONE_OF, key=len, reverse=True))})"
    r"(?:当地)?(?:标准|夏令)?(?:时间|时(?![装尚刻代候]))的?"
    rf"|(?:utc|gmt)\s*(?P<sign>[+-])\s*(?P<hours>\d{{1,2}})(?::?(?P<minutes>[0-5]\d))?(?!\d)"
    rf"|(?P<side>[东西])(?P<count>{NUMBER})区(?:时间)?"
    rf"|(?P<short>{'|'.join(_ABBREVIATIONS)})(?![a-z+-])(?:\s*时间)?"
)


def zone_at(text: str, at: int) -> tuple[tzinfo, int] | None:
    """Time zone at `at` of a normalized text, with its end; None without a zone known to this machine."""
    match = _NAMED.match(text, at)
    if match is None:
        return None
    if match["sign"]:
        minutes = int(match["hours"]) * 60 + int(match["minutes"] or 0)
        return _fixed(-minutes if match["sign"] == "-" else minutes, match.end())
    if match["side"]:
        hours = number(match["count"]) or 0
        return _fixed(int(hours) * (60 if match["side"] == "东" else -60), match.end())
    name = _ZONE_OF[match["place"]] if match["place"] else _ABBREVIATIONS[match["short"]]
    try:
        return ZoneInfo(name), match.end()
    except (ZoneInfoNotFoundError, OSError):
        return None


def _fixed(minutes: int, end: int) -> tuple[tzinfo, int] | None:
    return (timezone(timedelta(minutes=minutes)), end) if abs(minutes) <= 14 * 60 else None


def zone_letters() -> str:
    """First characters of all zone names, as one text for a character class."""
    return "".join(sorted({name[0] for name in (*_ZONE_OF, *_ABBREVIATIONS)})) + "东西"
