"""The Chinese reader of times: simplified and traditional letters, numerals and digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from services.lazy_patterns import lazy_pattern
from services.times.chinese_exceptions import with_exceptions, without_exception
from services.times.chinese_feasts import feast_letters
from services.times.chinese_letters import LETTERS, has_chinese, one_form
from services.times.chinese_phrases import PhraseReader
from services.times.chinese_ranges import range_at
from services.times.chinese_readings import Moment, reading_of
from services.times.chinese_traps import begins_a_time, is_a_time, telling
from services.times.chinese_zones import zone_letters
from services.times.readings import Found, Reading

# Every letter that a time can begin with, so that the others need no look.
_STARTS = lazy_pattern(
    rf"[\d{LETTERS}几数半大约差将近接今明后昨前翌次第当即本听寻琴这那上下周星礼每逐隔间逢天日工平休月年民农阴旧夏闰正冬腊早晚傍黄凌清拂黎晨中午晌子深夜白"
    rf"再过等还未往以从自由打在于到赶定连接一共总重提现最此目马立宜而依如稍待迟回改哪某有不随尽去来{feast_letters()}{zone_letters()}]"
)


class Chinese:
    """Reads the times of Chinese."""

    def speaks(self, text: str) -> bool:
        """Whether there are Chinese letters, or wide ones, in `text`."""
        return has_chinese(text)

    def read(self, text: str, now: datetime) -> Reading | None:
        """What `text` means, when all of it is one time; None otherwise."""
        formed = one_form(text).strip(" \t\n,.。!?！？、").rstrip("吧呢啊哦呀哈嘛啦喔~")
        return without_exception(formed, lambda rest: _whole(rest, now)) or _whole(formed, now)

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        """The times within `text`, in order, each as long as it can be; they do not overlap."""
        return with_exceptions(one_form(text), lambda formed: self._found_in(formed, now))

    def _found_in(self, formed: str, now: datetime) -> list[Found]:
        found: list[Found] = []
        position = 0
        while match := _STARTS.search(formed, position):
            at = position = match.start()
            one = _reading_at(formed, at, now) if begins_a_time(formed, at) else None
            if one is None or not is_a_time(formed, at, one[1], one[0]):
                position = at + 1
                continue
            found.append(Found(one[0], at, one[1]))
            position = one[1]
        return telling(found)


def _whole(formed: str, now: datetime) -> Reading | None:
    found = _reading_at(formed, 0, now) if formed else None
    return None if found is None or found[1] != len(formed) else found[0]


def _reading_at(text: str, at: int, now: datetime) -> tuple[Reading, int] | None:
    """What begins at `at` of a text in one form, and where it ends."""
    try:
        reader = PhraseReader(text, now)
        phrase = reader.phrase_at(at)
        if phrase is None:
            return None
        # Today is today where it is said, and the time of day is that of the zone that was named.
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
    """With its wall times as they are where `now` is."""
    if zone is None:
        return reading
    start, end = (wall.replace(tzinfo=zone).astimezone(now.tzinfo) for wall in (reading.start, reading.end))
    return replace(reading, zone=zone, start=start.replace(tzinfo=None), end=end.replace(tzinfo=None))
