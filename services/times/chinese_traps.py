"""What looks like a time within a Chinese sentence and is none: 一点都不, 天天向上, 三点建议, 三分钟热度."""

from __future__ import annotations

from collections.abc import Sequence

from services.lazy_patterns import lazy_pattern
from services.times.chinese_letters import LETTERS
from services.times.readings import Found, Grain, Kind, Reading
from services.times.repeats import Trouble

_NUMBER_BEFORE = frozenset(LETTERS) | frozenset("第.点")
_REMINDING = r"(?:提醒|叫|喊|通知|告诉|告知|呼叫|唤|催|发|联系)"
_REMINDS_NEXT = lazy_pattern(rf"\s*[,，]?\s*(?:再|就|请|记得|麻烦|你)?\s*{_REMINDING}")
_REMINDED_BEFORE = lazy_pattern(rf"{_REMINDING}\s*(?:一下)?(?:[我他她你]们?|大家|所有人)?\s*$")
_HOUR_ALONE = lazy_pattern(rf"[\d{LETTERS}]+\s*点")
_POINTS_BEFORE = lazy_pattern(r"(?:有|这|那|以下|如下|下列|[差多少加减扣满得拿每])$")
_POINTS_NEXT = lazy_pattern(
    r"\s*(?:建议|意见|要求|原因|理由|问题|说明|想法|经验|好处|坏处|内容|共识|心得|提示|希望|积分|注意|感受|看法|思考|声明|补充|优势|优点|缺点|区别|变化|一线|之间)"
)
_ONE_OCLOCK_BEFORE = lazy_pattern(
    rf"(?:^|[\s,，。.!！?？;；、:：(（在于到是从])$|{_REMINDING}(?:[我他她你]们?|大家|所有人)$"
)
_A_LITTLE_NEXT = lazy_pattern(
    r"\s*(?:[都也儿点不没别吧吗呢啊意感小用力心钱水盐糖油]|时间|东西|问题|关系|事情?|办法|印象|变化|进步|信心|声音|距离|压力|消息|帮助)"
)
_UNIT_BEFORE = lazy_pattern(r"[升里米克斤吨瓦元卡页字帧度]$")
_REPEATED_WORD = lazy_pattern(r"天天|日日|月月|年年")
_WEAK_WORD = lazy_pattern(r"工作日|休息日|平日|上班日")
_ORDINAL_BEFORE = lazy_pattern(r"(?:[两二三四五六七八九十\d]个?|第[一二三四五\d]个|最后一?个?|上个|下个|非|个)$")


def begins_a_time(text: str, at: int) -> bool:
    """Whether a time can begin at `at`: not within a number or a Latin word."""
    before, letter = text[at - 1 : at], text[at]
    if not before:
        return True
    if letter.isdecimal():
        return not (before.isdecimal() or before in ".:/第-" or (before.isascii() and before.isalpha()))
    if letter.isascii():
        return not (before.isascii() and before.isalnum())
    return (letter not in LETTERS and letter not in "年月") or before not in _NUMBER_BEFORE


def is_a_time(text: str, start: int, end: int, reading: Reading) -> bool:
    """Whether what was read from `start` to `end` is meant as a time."""
    said, before = text[start:end], text[max(0, start - 8) : start]
    if reading.kind is Kind.DURATION:
        return _is_reminded_next(text, end)
    if reading.trouble is Trouble.VAGUE and reading.kind is Kind.INSTANT:
        return _is_reminded_next(text, end) or _REMINDED_BEFORE.search(before) is not None
    if reading.kind is Kind.INSTANT and reading.length is None and not reading.has_clock:
        return False
    if _HOUR_ALONE.fullmatch(said):
        return _is_oclock(text, said, before, end)
    if said.startswith("每") and not reading.has_clock and _UNIT_BEFORE.search(before):
        return False
    if _REPEATED_WORD.fullmatch(said):
        return _is_reminded_next(text, end)
    return not (_WEAK_WORD.match(said) and _ORDINAL_BEFORE.search(before))


def _is_reminded_next(text: str, end: int) -> bool:
    return _REMINDS_NEXT.match(text, end) is not None


def _is_oclock(text: str, said: str, before: str, end: int) -> bool:
    """Whether 三点 is a time of day and not three points, and 一点 not a little."""
    if _POINTS_BEFORE.search(before) or _POINTS_NEXT.match(text, end):
        return False
    if said != "一点":
        return True
    return _ONE_OCLOCK_BEFORE.search(before) is not None and _A_LITTLE_NEXT.match(text, end) is None


def telling(found: Sequence[Found]) -> list[Found]:
    """`found` without the months and years that stand beside times of more weight: 明天写三月的报告."""
    if any(_says_when(one.reading) for one in found):
        return [one for one in found if _says_when(one.reading)]
    return list(found)


def _says_when(reading: Reading) -> bool:
    return reading.kind is not Kind.INTERVAL or reading.grain in (Grain.DAY, Grain.HOUR, Grain.MINUTE)
