"""Chinese letters brought to one form, and Chinese numerals."""

from __future__ import annotations

from services.lazy_patterns import lazy_pattern

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
"""What numerals are written with."""
NUMBER = rf"(?:\d+(?:\.\d+)?|[{LETTERS}]+)"
"""A pattern for whole numbers and decimal fractions. No groups."""
SEVERAL = 3
"""What is counted on for 几."""

_DIGIT = "[一二三四五六七八九壹贰叁肆伍陆柒捌玖]"
HOUR = rf"(?:[01]?\d(?!\d)|2[0-5]|二十[一二三四五]?|[一]?十{_DIGIT}?|[零〇两]|{_DIGIT})"
MINUTE = rf"(?:[0-5]?\d(?!\d)|[一二三四五]?十{_DIGIT}?|[零〇](?:{_DIGIT}|\d(?!\d))|[零〇两]|{_DIGIT})"
DAY = rf"(?:[012]?\d(?!\d)|3[012](?!\d)|[一二贰三叁]?[十拾]{_DIGIT}?|廿{_DIGIT}?|卅一?|{_DIGIT})"
MONTH = rf"(?:0?\d(?!\d)|1[0-2](?!\d)|[一]?十[一二]?|{_DIGIT})"
"""Patterns for the numbers of clocks and calendars, long ones first. No groups."""

_CHINESE = lazy_pattern(r"[\u3400-\u9fff\uff01-\uff5e]")


def has_chinese(text: str) -> bool:
    """Whether there is a Chinese letter, or a wide one, in `text`."""
    return _CHINESE.search(text) is not None


def one_form(text: str) -> str:
    """`text` in narrow digits, simplified letters and small Latin ones: letter for letter, so that places stay."""
    formed = text.translate(_FORMS)
    lower = formed.lower()
    return lower if len(lower) == len(formed) else formed


def number(word: str) -> float | None:
    """What a match of `NUMBER` means, a whole one as an int; None when the letters make no number."""
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
    """The same for a match of `HOUR`, `MINUTE`, `DAY` or `MONTH`."""
    return int(number(word) or 0)
