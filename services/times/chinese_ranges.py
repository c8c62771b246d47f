"""From one time to another, in Chinese: 从3点到5点, 十月一日至七日, 周一到周五, 3-5点, 三月和九月之间."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time, timedelta

from services.lazy_patterns import lazy_pattern
from services.recurrence import Unit
from services.times.chinese_clocks import Clock, clock_at
from services.times.chinese_days import Days
from services.times.chinese_parts import Phrase
from services.times.chinese_phrases import PhraseReader
from services.times.chinese_readings import Moment, reading_of
from services.times.readings import Kind, Reading
from services.times.repeats import Repeats

_TILL = lazy_pattern(r"\s*(?:开始|起)?,?\s*(?:一直到|直到|到|至|-+|~)\s*")
_AND = lazy_pattern(r"\s*(?:和|与|跟|及)\s*")
_BETWEEN = lazy_pattern(r"\s*(?:之间|期间|中间|这段时间|为止|结束|间(?!隔))")


def range_at(reader: PhraseReader, text: str, phrase: Phrase, moment: Moment) -> tuple[Reading, int] | None:
    """The stretch that begins with `phrase`, and where it ends; None when there is no other end."""
    if phrase.ahead or phrase.lasts or phrase.window or phrase.is_now or phrase.trouble:
        return None
    if not (phrase.days or phrase.clocks or phrase.part):
        return None
    till = _TILL.match(text, phrase.end)
    joint = till or _AND.match(text, phrase.end)
    if joint is None:
        return None
    anchor = phrase.days.first if phrase.days else None
    other = reader.phrase_at(joint.end(), anchor)
    if other is None or other.ahead or other.lasts or other.window or other.trouble or other.is_now:
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
    end = _end_of(start, phrase, other, moment)
    if end is None or end <= start.start:
        return None
    trouble = start.trouble
    return Reading(
        Kind.INTERVAL,
        start.start,
        end,
        start.grain,
        has_clock=start.has_clock,
        default=start.default,
        trouble=trouble,
    )


def _clock_in(phrase: Phrase, other: Phrase, rest: str) -> Clock | None:
    """The second time of day in the part of the day that was said with the first."""
    if other.part is not None or phrase.part is None or not other.clocks[0].is_open:
        return None
    found = clock_at(rest.lstrip(), 0, phrase.part)
    return found[0] if found and found[0].seconds() > phrase.clocks[0].seconds() else None


def _within_each_day(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """每天9点到18点每小时: only so long of each day; without a measure it is its begin that counts."""
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
    """周一到周五8点: each of these days."""
    if (
        not (phrase.days and other.days and phrase.days.weekday and other.days.weekday and other.clocks)
        or phrase.clocks
    ):
        return None
    weekdays = _weekdays_between(phrase.days.weekday, other.days.weekday)
    return Phrase(repeats=Repeats(Unit.WEEK, weekdays=weekdays), part=other.part, clocks=other.clocks)


def _measured(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """每天9点到18点每小时, 9点到18点每隔半小时: so often, within these times of day."""
    every, days = other.repeats, phrase.repeats
    if every is None or every.unit is not None or not (phrase.clocks and other.clocks):
        return None
    if days is not None and (days.unit not in (Unit.DAY, Unit.WEEK) or days.step != 1):
        return None
    measured = replace(phrase, repeats=replace(every, weekdays=days.weekdays if days else ()))
    return _within_each_day(measured, replace(other, repeats=None), moment)


def _daily_between(phrase: Phrase, other: Phrase, moment: Moment) -> Reading | None:
    """周一到周五每天8点, 12月1号到5号每天8点: what repeats from one day to another."""
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


def _end_of(start: Reading, phrase: Phrase, other: Phrase, moment: Moment) -> datetime | None:
    if other.clocks:
        return _clock_after(start, other, moment)
    if other.part and other.days is None:
        return datetime.combine(start.start, time()) + timedelta(hours=other.part.end)
    days: Days | None = other.days
    if days is None or not days.exists:
        return None
    for _ in range(60):
        following = days.again() if days.again and days.first < start.start.date() else None
        if following is None:
            break
        days = following
    if other.part:
        return datetime.combine(days.first, time()) + timedelta(hours=other.part.end)
    return datetime.combine(days.after, time())


def _clock_after(start: Reading, other: Phrase, moment: Moment) -> datetime | None:
    """When the other time of day comes behind `start`."""
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
