"""Parser of Chinese times, ranges and exceptions of recurrences, with filters for false positives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta, tzinfo
from functools import cache

from services.patterns import lazy_pattern
from services.times.recurrence import Unit
from services.times.words.readings import Found, Grain, Kind, Length, Reading, Repeats, TimeProblem, one_of
from services.times.zh.clocks import Clock, clock_at
from services.times.zh.dates import feast_letters
from services.times.zh.days import WEEK, Days, weekday_number
from services.times.zh.letters import LETTERS, NUMBER, has_chinese, one_form, zone_letters
from services.times.zh.phrases import PhraseReader
from services.times.zh.readings import Moment, Phrase, reading_of

_TILL = lazy_pattern(r"\s*(?:开始|起)?,?\s*(?:一直到|直到|到|至|-+|~)\s*")
_AND = lazy_pattern(r"\s*(?:和|与|跟|及)\s*")
_BETWEEN = lazy_pattern(r"\s*(?:之间|期间|中间|这段时间|为止|结束|间(?!隔))")


def range_at(reader: PhraseReader, text: str, phrase: Phrase, moment: Moment) -> tuple[Reading, int] | None:
    """Reading of the period or recurrence that starts with `phrase`, with its end; None if it is not a range."""
    if phrase.ahead or phrase.lasts or phrase.window or phrase.is_now or phrase.problem:
        return None
    if not (phrase.days or phrase.clocks or phrase.part):
        return None
    till = _TILL.match(text, phrase.end)
    joint = till or _AND.match(text, phrase.end)
    if joint is None:
        return None
    anchor = phrase.days.first if phrase.days else None
    other = reader.phrase_at(joint.end(), anchor)
    if other is None or other.ahead or other.lasts or other.window or other.problem or other.is_now:
        return None
    if other.repeats is not None:
        repeating = (_measured(phrase, other, moment) or _daily_between(phrase, other, moment)) if till else None
        return (repeating, other.end) if repeating else None
    between = _BETWEEN.match(text, other.end)
    if till is None and between is None:
        return None
    end = between.end() if between else other.end
    reading = _between(phrase, other, moment, text[joint.end() :])
    return (reading, end) if reading else None


def _between(phrase: Phrase, other: Phrase, moment: Moment, rest: str) -> Reading | None:
    if phrase.clocks and other.clocks and (phrase.part is None or other.part is None):
        found = _clock_in(phrase, other, rest)
        other.clocks = [found] if found else other.clocks
    if phrase.repeats is not None:
        return _within_each_day(phrase, other, moment)
    weekly = _every_weekday(phrase, other)
    if weekly is not None:
        return reading_of(weekly, moment)
    start = reading_of(phrase, moment)
    if start is None:
        return None
    end = _end_of(start, other, moment)
    if end is None or end <= start.start:
        return None
    clock, default = start.has_clock, start.default
    return Reading(Kind.INTERVAL, start.start, end, start.grain, clock, default=default, problem=start.problem)


def _clock_in(phrase: Phrase, other: Phrase, rest: str) -> Clock | None:
    """The second time of a range in the part of the day of the first, if it is open and then later; else None."""
    if other.part is not None or phrase.part is None or not other.clocks[0].is_open:
        return None
    found = clock_at(rest.lstrip(), 0, phrase.part)
    return found[0] if found and found[0].seconds() > phrase.clocks[0].seconds() else None


def _within_each_day(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """Recurrence with a window within each day (每天9点到18点每小时), or None; without an interval only its start
    counts."""
    reading = reading_of(phrase, moment)
    if reading is None or reading.repeats is None or not (phrase.clocks and other.clocks):
        return None
    following = other.clocks[0]
    first = phrase.clocks[0].as_time()
    last = following.as_time()
    if following.is_open and last <= first and following.hour < 12:
        last = last.replace(hour=following.hour + 12)
    if reading.repeats.unit is None:
        return replace(reading, repeats=replace(reading.repeats, times=(), window=(first, last)))
    return reading


def _every_weekday(phrase: Phrase, other: Phrase) -> Phrase | None:
    """Phrase for each weekday of a range with a time, as 周一到周五8点; None for other ranges."""
    if (
        not (phrase.days and other.days and phrase.days.weekday and other.days.weekday and other.clocks)
        or phrase.clocks
    ):
        return None
    weekdays = _weekdays_between(phrase.days.weekday, other.days.weekday)
    return Phrase(repeats=Repeats(Unit.WEEK, weekdays=weekdays), part=other.part, clocks=other.clocks)


def _measured(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """Recurrence by an interval within a window, as 每天9点到18点每小时; None for other ranges."""
    every, days = other.repeats, phrase.repeats
    if every is None or every.unit is not None or not (phrase.clocks and other.clocks):
        return None
    if days is not None and (days.unit not in (Unit.DAY, Unit.WEEK) or days.step != 1):
        return None
    measured = replace(phrase, repeats=replace(every, weekdays=days.weekdays if days else ()))
    return _within_each_day(measured, replace(other, repeats=None), moment)


def _daily_between(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """Recurrence between two days, as 周一到周五每天8点 or 12月1号到5号每天8点; None for other ranges."""
    if not (phrase.days and other.first and other.repeats) or phrase.clocks or phrase.part:
        return None
    if phrase.days.weekday and other.first.weekday:
        weekdays = _weekdays_between(phrase.days.weekday, other.first.weekday)
        repeats = replace(other.repeats, unit=other.repeats.unit and Unit.WEEK, weekdays=weekdays)
        return reading_of(replace(other, repeats=repeats, first=None), moment)
    reading = reading_of(replace(other, first=phrase.days), moment)
    if reading is None or reading.repeats is None:
        return None
    until = datetime.combine(other.first.after, time()) - timedelta(minutes=1)
    return replace(reading, repeats=replace(reading.repeats, until=until))


def _weekdays_between(first: int, last: int) -> tuple[int, ...]:
    span = range(first, (last if last >= first else last + 7) + 1)
    return tuple(sorted((day - 1) % 7 + 1 for day in span))


def _end_of(start: Reading, other: Phrase, moment: Moment) -> datetime | None:
    if other.clocks:
        return _clock_after(start, other, moment)
    if other.part and other.days is None:
        return datetime.combine(start.start, time()) + timedelta(hours=other.part.end)
    days: Days | None = other.days
    if days is None or not days.exists:
        return None
    for _ in range(60):
        following = days.next_days() if days.next_days and days.first < start.start.date() else None
        if following is None:
            break
        days = following
    if other.part:
        return datetime.combine(days.first, time()) + timedelta(hours=other.part.end)
    return datetime.combine(days.after, time())


def _clock_after(start: Reading, other: Phrase, moment: Moment) -> datetime | None:
    """First occurrence of the second time after `start`; None if it is invalid."""
    clock = other.clocks[0]
    if not clock.exists:
        return None
    if other.days is not None:
        found = reading_of(other, moment)
        return found.start if found else None
    midnight = datetime.combine(start.start, time())
    hours = (clock.hour % 12, clock.hour % 12 + 12) if clock.is_open else (clock.hour,)
    after = [midnight + timedelta(days=day, seconds=clock.seconds(hour)) for day in (0, 1) for hour in hours]
    coming = [each for each in after if each > start.start]
    return min(coming) if coming else None


_NUMBER_BEFORE = frozenset(LETTERS) | frozenset("第.点")
_REMINDING = r"(?:提醒|叫|喊|通知|告诉|告知|呼叫|唤|催|发|联系)"
_REMINDS_NEXT = lazy_pattern(rf"\s*[,，]?\s*(?:再|就|请|记得|麻烦|你)?\s*{_REMINDING}")
_REMINDED_BEFORE = lazy_pattern(rf"{_REMINDING}\s*(?:一下)?(?:[我他她你]们?|大家|所有人)?\s*$")
_GOES_ON = lazy_pattern(r"[的是在有还没不就要会能可已都也]")
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
    """Whether a time can start at `at`, outside numbers and Latin words."""
    before, letter = text[at - 1 : at], text[at]
    if not before:
        return True
    if letter.isdecimal():
        return not (before.isdecimal() or before in ".:/第-" or (before.isascii() and before.isalpha()))
    if letter.isascii():
        return not (before.isascii() and before.isalnum())
    return (letter not in LETTERS and letter not in "年月") or before not in _NUMBER_BEFORE


def is_a_time(text: str, start: int, end: int, reading: Reading) -> bool:
    """Whether the text from `start` to `end` is meant as a time, judged by the words around it."""
    phrase, before = text[start:end], text[max(0, start - 8) : start]
    if reading.length == Length():  # 现在
        is_first = start == 0 and _GOES_ON.match(text, end) is None
        return is_first or _is_reminded_next(text, end) or _REMINDED_BEFORE.search(before) is not None
    if reading.kind is Kind.DURATION:
        return _is_reminded_next(text, end)
    if reading.problem is TimeProblem.VAGUE and reading.kind is Kind.INSTANT:
        return _is_reminded_next(text, end) or _REMINDED_BEFORE.search(before) is not None
    if reading.kind is Kind.INSTANT and reading.length is None and not reading.has_clock:
        return False
    if _HOUR_ALONE.fullmatch(phrase):
        return _is_oclock(text, phrase, before, end)
    if phrase.startswith("每") and not reading.has_clock and _UNIT_BEFORE.search(before):
        return False
    if _REPEATED_WORD.fullmatch(phrase):
        return _is_reminded_next(text, end)
    return not (_WEAK_WORD.match(phrase) and _ORDINAL_BEFORE.search(before))


def _is_reminded_next(text: str, end: int) -> bool:
    return _REMINDS_NEXT.match(text, end) is not None


def _is_oclock(text: str, phrase: str, before: str, end: int) -> bool:
    """Whether 三点 is a time instead of three points, and 一点 instead of "a little"."""
    if _POINTS_BEFORE.search(before) or _POINTS_NEXT.match(text, end):
        return False
    if phrase != "一点":
        return True
    return _ONE_OCLOCK_BEFORE.search(before) is not None and _A_LITTLE_NEXT.match(text, end) is None


def telling(found: Sequence[Found]) -> list[Found]:
    """`found` without bare months and years if there are more specific times: 明天写三月的报告."""
    if any(_says_when(one.reading) for one in found):
        return [one for one in found if _says_when(one.reading)]
    return list(found)


def _says_when(reading: Reading) -> bool:
    return reading.kind is not Kind.INTERVAL or reading.grain in (Grain.DAY, Grain.HOUR, Grain.MINUTE)


_LETTERS = "[一二三四五六日天]"
_LISTED = rf"{WEEK}{_LETTERS}(?:(?:[、,和及跟与]|或者?)?(?:{WEEK})?{_LETTERS})*"
_DAYS = rf"(?:{WEEK}末|双休日|{_LISTED}|(?:法定)?节?假日|放假|工作日)"
_EXCEPTION = lazy_pattern(
    rf"除(?:了|去|开)?\s*(?P<before>{_DAYS})\s*(?:以外|之外|外)?(?:的|都)?|(?P<behind>{_DAYS})除外"
)
_GAP = r"[\s,，、的都(（)）]*"
_WEEKEND, _WORKDAYS = {6, 7}, {1, 2, 3, 4, 5}


def without_exception(text: str, read: Callable[[str], Reading | None]) -> Reading | None:
    """Reading of the whole `text` with its excluded days; None if it excludes none or the rest is no time."""
    exception = _EXCEPTION.search(text)
    if exception is None:
        return None
    rest = f"{text[: exception.start()]} {text[exception.end() :]}".strip(" ,，、()（）")
    reading = read(rest) if rest else None
    return None if reading is None else _less(reading, exception)


def with_exceptions(text: str, find_all: Callable[[str], list[Found]]) -> list[Found]:
    """Times within `text`, recurrences with adjacent excluded days. A recurrence whose exclusion is elsewhere in the
    sentence is dropped, because its own words would not include it."""
    exception = _EXCEPTION.search(text)
    if exception is None:
        return find_all(text)
    start, end = exception.span()
    found = find_all(f"{text[:start]}{' ' * (end - start)}{text[end:]}")
    together = [one if one.reading.repeats is None else _together(text, one, exception) for one in found]
    return [one for one in together if one is not None]


def _together(text: str, found: Found, exception: re.Match[str]) -> Found | None:
    start, end = exception.span()
    gap = text[end : found.start] if end <= found.start else text[found.end : start]
    if not re.fullmatch(_GAP, gap):
        return None
    closes = re.match(r"\s*[)）]", text[end:]) if re.search("[(（]", gap) else None
    end += closes.end() if closes else 0
    return Found(_less(found.reading, exception), min(start, found.start), max(end, found.end))


def _less(reading: Reading, exception: re.Match[str]) -> Reading:
    """`reading` without the excluded days; with a problem if a rule cannot express it."""
    repeats = reading.repeats
    days = _weekdays_of(exception["before"] or exception["behind"])
    is_by_weekday = repeats is not None and (repeats.unit is Unit.DAY or repeats.weekdays) and repeats.step == 1
    if repeats is None or not days or not is_by_weekday or repeats.days or repeats.nth:
        return replace(reading, problem=reading.problem or TimeProblem.SEVERAL)
    left = tuple(day for day in repeats.weekdays or range(1, 8) if day not in days)
    if not left:
        return replace(reading, problem=TimeProblem.NO_SUCH)
    return replace(reading, repeats=replace(repeats, unit=Unit.WEEK, weekdays=left))


def _weekdays_of(text: str) -> set[int]:
    """Weekdays (1 is Monday) named by an exclusion; empty for holidays, which rules do not support."""
    if text.endswith("末") or text == "双休日":
        return _WEEKEND
    if "假" in text:
        return set()
    if text == "工作日":
        return _WORKDAYS
    return {weekday_number(letter) for letter in re.findall(_LETTERS, re.sub(WEEK, "", text))}


@cache
def _starts() -> re.Pattern[str]:
    """First characters of all times, for skipping the others quickly."""
    return re.compile(
        rf"[\d{LETTERS}几数半大约差将近接今明后昨前翌次第当即本听寻琴这那上下周星礼每逐隔间逢天日工平休月年民农阴旧夏闰正冬腊早晚傍黄凌清拂黎晨中午晌子深夜白"
        rf"再过等还未往以从自由打在于到赶定连接一共总重提现最此目马立宜而依如稍待迟回改哪某有不随尽去来{feast_letters()}{zone_letters()}]"
    )


class Chinese:
    """TimeLanguage for Chinese, simplified or traditional."""

    def speaks(self, text: str) -> bool:
        return has_chinese(text)

    def read(self, text: str, now: datetime) -> Reading | None:
        formed = one_form(text).strip(" \t\n,.。!?！？、").rstrip("吧呢啊哦呀哈嘛啦喔~")
        read = without_exception(formed, lambda rest: _whole(rest, now)) or _whole(formed, now)
        if read is not None:
            return read
        found = self._found_in(formed, now)
        is_all = len(found) == 1 and (found[0].start, found[0].end) == (0, len(formed))
        return found[0].reading if is_all else None  # understood in part

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        return with_exceptions(one_form(text), lambda formed: self._found_in(formed, now))

    def _found_in(self, formed: str, now: datetime) -> list[Found]:
        found: list[Found] = []
        position = 0
        while match := _starts().search(formed, position):
            at = position = match.start()
            one = _reading_at(formed, at, now) if begins_a_time(formed, at) else None
            if one is None or not is_a_time(formed, at, one[1], one[0]):
                position = at + 1
                continue
            start, end = _with_unread(formed, at, one[1])
            reading = one[0]
            if (start, end) != (at, one[1]):
                choices = () if start < at else reading.choices if reading.problem else (reading,)
                reading = replace(reading, problem=TimeProblem.AMBIGUOUS, choices=choices)
            found.append(Found(reading, start, end))
            position = end
        return telling(found)


_UNREAD_BEFORE = lazy_pattern(r"每$")
_UNREAD_NEXT = lazy_pattern(
    rf"\s*(?:又|再加|或者?)\s*[\d{LETTERS}]+[个点分秒刻天小周号]*|[点分秒刻](?![\u3400-\u9fff])"
)


def _with_unread(formed: str, start: int, end: int) -> tuple[int, int]:
    """The range of a time, extended over adjacent text that looks like a part of it but was not understood."""
    before, after = _UNREAD_BEFORE.search(formed[:start]), _UNREAD_NEXT.match(formed, end)
    return (before.start() if before else start), (after.end() if after else end)


def _whole(formed: str, now: datetime) -> Reading | None:
    found = _reading_at(formed, 0, now) if formed else None
    return None if found is None or found[1] != len(formed) else found[0]


_OR = lazy_pattern(r"\s*(?:或者?|还是)\s*")
_TO_MORE = lazy_pattern(rf"(?P<least>{NUMBER})\s*(?:到|至|-|~)\s*(?P<most>{NUMBER})(?=\s*个?[分秒小钟刻天周星礼月年])")


def _either_at(text: str, at: int, now: datetime) -> tuple[Reading, int] | None:
    """AMBIGUOUS reading of two times at `at`, with its end: 三点或四点, 10到15分钟后. None otherwise."""
    more = _TO_MORE.match(text, at)
    if more:
        found = _single_at(text, more.start("most"), now)
        if found is None or found[0].length is None:
            return None
        least = _single_at(more["least"] + text[more.end() : found[1]], 0, now)
        both = one_of((least and least[0], found[0]))
        return (both, found[1]) if both and both.problem else None
    one = _single_at(text, at, now)
    link = _OR.match(text, one[1]) if one else None
    two = _single_at(text, link.end(), now) if link else None
    if one is None or two is None:
        return None
    first, second = one[0], two[0]
    if first.has_clock and second.kind is Kind.TIME_OF_DAY and first.kind is Kind.INSTANT:  # 明天三点或四点
        second = replace(second, start=datetime.combine(first.start, second.start.time()))
    if second.has_clock and not first.has_clock:  # 周一或周二下午三点
        first = replace(first, default=second.start.time())
    both = one_of((first, second))
    return (both, two[1]) if both and both.problem else None


def _reading_at(text: str, at: int, now: datetime) -> tuple[Reading, int] | None:
    """Reading at `at` of a normalized text, with its end; None without a time, or outside the calendar."""
    return _either_at(text, at, now) or _single_at(text, at, now)


def _single_at(text: str, at: int, now: datetime) -> tuple[Reading, int] | None:
    """Like `_reading_at`, for a time that is not one of two."""
    try:
        reader = PhraseReader(text, now)
        phrase = reader.phrase_at(at)
        if phrase is None:
            return None
        # Resolve today and times of day in the zone that was named.
        moment = Moment(now if phrase.zone is None else now.astimezone(phrase.zone))
        between = range_at(reader, text, phrase, moment)
        if between is not None:
            reading, end = between
        else:
            end = phrase.end
            read = reading_of(phrase, moment)
            if read is None:
                return None
            reading = read
        return _here(reading, phrase.zone, now), end
    except (OverflowError, ValueError):
        return None


def _here(reading: Reading, zone: tzinfo | None, now: datetime) -> Reading:
    """`reading` with its wall times, which are in `zone`, converted to the zone of `now`."""
    if zone is None:
        return reading
    start, end = (wall.replace(tzinfo=zone).astimezone(now.tzinfo) for wall in (reading.start, reading.end))
    return replace(reading, zone=zone, start=start.replace(tzinfo=None), end=end.replace(tzinfo=None))
