"""The Chinese reader of times: simplified and traditional letters, numerals and digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from services.times.chinese_letters import has_chinese, one_form
from services.times.chinese_phrases import Phrase, PhraseReader
from services.times.chinese_ranges import range_at
from services.times.chinese_readings import Moment, reading_of
from services.times.chinese_traps import begins_a_time, is_a_time
from services.times.readings import Found, Reading

_STARTS = re.compile(
    r"[\d零一二两三四五六七八九十廿卅壹贰叁几数半今明后昨前大翌次第当即听寻琴本这上下周星礼每隔逢天日工平休春元端中清国劳五六七八圣感母父情万愚儿教妇植重除腊正农阴旧夏闰冬初年月早晚傍黄凌拂黎晨午子深夜白差"
    r"再过等未接今往从自直到连共一北东美西伦纽香台新澳悉莫巴柏utcgm现马立此目宜而依待稍改回哪某有不将随平跨双光植建龙七佛鬼寒下小复耶棕受圣母记护世大约整下随持护地读抗独退总哥冬黑沈沉忏濯升乞盂敬除人爱全国党香澳南辛女瓦白民去来逐间后晏朝正晌迟]"
)


class Chinese:
    """Reads the times of Chinese."""

    def speaks(self, text: str) -> bool:
        """Whether there are Chinese letters in `text`."""
        return has_chinese(text)

    def read(self, text: str, now: datetime) -> Reading | None:
        """What `text` means, when all of it is one time; None otherwise."""
        formed = one_form(text).strip(" \t\n,.。!?！？、")
        found = _reading_at(formed, 0, now) if formed else None
        if found is None or found[1] != len(formed):
            return None
        return found[0]

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        """The times within `text`, in order, each as long as it can be; they do not overlap."""
        formed = one_form(text)
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
        return found


def _reading_at(text: str, at: int, now: datetime) -> tuple[Reading, int] | None:
    """What begins at `at` of a text in one form, and where it ends."""
    try:
        phrase = PhraseReader(text, now).phrase_at(at)
        if phrase is None:
            return None
        there = now if phrase.zone is None else now.astimezone(phrase.zone)
        reader = PhraseReader(text, there)
        if phrase.zone is not None:
            phrase = reader.phrase_at(at) or phrase
        moment = Moment(there)
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


__all__ = ["Chinese", "Phrase", "timedelta"]
