"""Parts of a time phrase before they are combined, am/pm inference, and positions for rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from typing import TypeAlias, TypedDict

from services.times.words.lexicon import SEASONS
from services.times.words.readings import Grain, Kind, Length, Reading, Repeats, TimeProblem, shifted
from services.times.words.tokens import Line


@dataclass(frozen=True, slots=True)
class Span:
    """Range of whole days with its grain; `end` is exclusive."""

    start: date
    end: date
    grain: Grain
    is_loose: bool = False
    """Named without a specific period, as "the month": if it is over, use the next one."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time of day as written in English; `half` may be unspecified."""

    hour: int
    minute: int = 0
    second: int = 0
    half: str = ""
    """`am`, `pm`, `24` for a 24-hour time, or empty if unspecified."""
    grain: Grain = Grain.HOUR

    @property
    def exists(self) -> bool:
        """Whether the time is valid: at most 24:00, and no hour 0 with am or pm."""
        whole = self.hour < 24 or (self.hour == 24 and self.minute == 0)
        return whole and self.minute < 60 and self.second < 60 and not (self.half in ("am", "pm") and self.hour == 0)

    def at(self, half: str) -> time:
        """Time of day as a `time`; `half` (`am`, `pm` or empty) applies if the text specifies none."""
        half = self.half or half
        hour = self.hour
        if half in ("am", "pm") and hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0)
        return time(hour % 24, self.minute, self.second)


class Part(TypedDict, total=False):
    """Partial meaning of a phrase; unspecified keys are absent. Compatible parts can be joined."""

    year: int
    month: int
    day: int
    is_numeric: bool
    """Month and day were written as numbers and could be swapped."""
    weekday: int
    which: int
    """Week of the weekday: -1 the last, 0 this one, 1 next week's, 2 the one after the coming one."""
    span: Span
    nth: tuple[int, str]
    """Position of a weekday (`weekday`) or a unit within the rest; negative counts from the end."""
    edge: str
    """`begin`, `middle` or `end` of the rest."""
    holiday: str
    number: int
    """A bare number: an hour or a day, decided by the other end of a range."""
    clocks: tuple[Clock, ...]
    portion: str
    zone: tzinfo
    length: Length
    """Offset from now."""
    grain: Grain
    """Grain of `length`."""
    lasts: Length
    """Duration."""
    is_bare: bool
    """`lasts` was written without "for", so it must be the whole phrase."""
    at: datetime
    """A complete wall time."""
    repeats: Repeats
    weekdays: tuple[int, ...]
    """Several weekdays, or one in the plural."""
    but: tuple[int, ...]
    """Weekdays excluded from the recurrence."""
    days: tuple[int, ...]
    """Several days of the month."""
    is_between: bool
    """Whether the phrase starts with "between"."""
    to: Part
    """The other end of a range."""
    until: Part
    first: Part
    count: int
    problem: TimeProblem
    either: tuple[Part, ...]
    """Meanings of ambiguous words, each to be combined with the rest of the phrase."""
    or_clock: Clock
    """Other meaning of `day`, a bare number after a weekday: `Monday 21`."""
    deadline: bool
    """Written as a deadline (`by Friday`)."""


def without(part: Part, *names: str) -> Part:
    """Copy of `part` without the keys `names`; missing ones are ignored."""
    left = part.copy()
    for name in names:
        left.pop(name, None)  # type: ignore[misc]  # no key is required
    return left


def joined(left: Part, right: Part) -> Part | None:
    """Merge both parts into a new one; None if they contradict each other."""
    if not left:
        return right
    for name in left.keys() & right.keys():
        if left[name] != right[name]:  # type: ignore[literal-required]  # it is a key of both
            return None
    return {**left, **right}


WAKING_HOURS = range(7, 23)
_SOON = timedelta(hours=3)
_DAY = timedelta(days=1)
STEPS = {
    Grain.SECOND: timedelta(seconds=1),
    Grain.MINUTE: timedelta(minutes=1),
    Grain.HOUR: timedelta(hours=1),
}
_NIGHT = frozenset(("night", "late night", "tonight", "bedtime"))
_EVENING = _NIGHT.union(
    ("evening", "early evening", "late evening", "dusk", "dinner", "after work", "after school", "early night")
)
_FROM_NOON = frozenset(("afternoon", "early afternoon", "late afternoon", "lunch", "tea")) | _EVENING
_WITH_NOON = frozenset(("morning", "late morning", "brunch", "daytime"))
_NIGHT_ENDS = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """Context of a phrase: the current time and conventions."""

    now: datetime
    """Aware."""
    wall: datetime
    today: date
    day_first: bool = False

    @classmethod
    def at(cls, now: datetime, *, day_first: bool = False) -> Moment:
        """Moment for the aware time `now`."""
        wall = now.replace(tzinfo=None)
        return cls(now, wall, wall.date(), day_first)


def midnight(day: date) -> datetime:
    """Naive datetime of the start of `day`."""
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall times have no zone


def instant(wall: datetime, grain: Grain, *, has_clock: bool) -> Reading:
    """Reading of a single wall time, which lasts one `grain`."""
    step = STEPS.get(grain, _DAY)
    end = wall + step if wall < datetime.max - step else wall  # noqa: DTZ901 - a wall time
    return Reading(Kind.INSTANT, wall, end, grain, has_clock)


def time_of_day(clock: Clock, moment: Moment) -> Reading:
    """Reading of the next occurrence of a time of day. Without am or pm: the next in waking hours or within three
    hours."""
    is_plain = clock.half == "" and clock.hour <= 12
    halves = ("pm",) if is_plain and clock.hour == 12 else ("am", "pm")
    candidates = sorted(
        datetime.combine(moment.today + days * _DAY, clock.at(half)) for days in (0, 1, 2) for half in halves
    )
    for wall in candidates:
        if wall > moment.wall and (not is_plain or is_likely(wall, moment.wall)):
            return Reading(Kind.TIME_OF_DAY, wall, wall + STEPS[clock.grain], clock.grain, has_clock=True)
    raise ValueError("a day has every time of day")


def time_within(clock: Clock, portion: str, moment: Moment) -> Reading:
    """Reading of the next occurrence of a time within a part of the day: `3 in the morning`."""
    wall = on_day(moment.today, clock, portion, moment)
    if wall <= moment.wall:
        wall = on_day(moment.today + _DAY, clock, portion, moment)
    kind = Kind.INSTANT if portion == "tonight" else Kind.TIME_OF_DAY
    return Reading(kind, wall, wall + STEPS[clock.grain], clock.grain, has_clock=True)


def on_day(day: date, clock: Clock, portion: str | None, moment: Moment) -> datetime:
    """Wall time on `day`. Without am or pm, choose the half that fits `portion`, else one in waking hours, and today
    one in the future. Midnight belongs to the end of a day."""
    if clock.half or clock.hour > 12:
        wall = datetime.combine(day, clock.at(""))
        is_behind_midnight = clock.hour == 24 or (wall.hour < _NIGHT_ENDS and portion in _NIGHT)
        return wall + _DAY if is_behind_midnight else wall
    early, late = datetime.combine(day, clock.at("am")), datetime.combine(day, clock.at("pm"))
    if portion is not None:
        return _in_portion(clock, portion, early, late)
    if clock.hour == 12:
        return late
    if day == moment.today:
        for wall in (early, late):
            if wall > moment.wall and is_likely(wall, moment.wall):
                return wall
    return early if early.hour in WAKING_HOURS else late


def is_likely(wall: datetime, now: datetime) -> bool:
    """Whether an unspecified half of the day may mean `wall`: from 7:00 to 22:59, or at most three hours after
    `now`."""
    return wall.hour in WAKING_HOURS or wall - now <= _SOON


def _in_portion(clock: Clock, portion: str, early: datetime, late: datetime) -> datetime:
    if portion not in _FROM_NOON:
        return late if clock.hour == 12 and portion in _WITH_NOON else early
    if portion in _EVENING and clock.hour == 12:
        return early + _DAY
    if portion in _NIGHT and clock.hour < _NIGHT_ENDS:
        return early + _DAY
    return early if portion == "lunch" and clock.hour in (10, 11) else late


Parts: TypeAlias = Iterator[tuple[Part, int]]
"""Results of a rule: parts with the index of their end, most likely first."""
Inner: TypeAlias = tuple[Part, Reading, int]
"""Phrase within a phrase: its part, its reading and its end."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """Position at which a rule tries to parse the next part of a phrase, with its context."""

    line: Line
    at: int
    parsed: Part
    """Part of the phrase before this position."""
    link: str
    """The preceding linking word: `at`, `on`, `in` …"""
    has_the: bool
    in_range: bool
    """Whether the phrase is the other end of a range."""
    moment: Moment
    inner: Callable[[int], Inner | None]
    """Longest phrase that starts at an item."""
    other_end: Callable[[int], tuple[Part, int] | None]
    """Longest end of a range that starts at an item; may be incomplete on its own."""

    @property
    def word(self) -> str:
        """The lower-case word at this position."""
        return self.line.words[self.at]

    def ahead(self, count: int = 1) -> str:
        """The lower-case word `count` items ahead; empty at the end of the line."""
        return self.line.words[self.at + count]


_MONTHS = {Grain.MONTH: 1, Grain.QUARTER: 3, Grain.YEAR: 12, "decade": 120, "century": 1200}


def unit_span(unit: Grain | str | None, which: int, count: int, today: date) -> Span:
    """`count` units, starting `which` units after the current one. Weeks begin on Monday. Raises OverflowError outside
    the calendar."""
    if unit in _MONTHS:
        months = _MONTHS[unit]
        first = (today.year * 12 + today.month - 1) // months * months
        start = _first_of(first + which * months)
        return Span(start, _first_of(first + (which + count) * months), Grain.YEAR if months >= 12 else Grain(unit))
    days = 1 if unit == Grain.DAY else 14 if unit == "fortnight" else 7
    start = today if unit == Grain.DAY else today - (today.isoweekday() - 1) * _DAY
    begin = start + which * days * _DAY
    return Span(begin, begin + count * days * _DAY, Grain.DAY if unit == Grain.DAY else Grain.WEEK)


def weekend_span(which: int, today: date) -> Span:
    """Span of Saturday and Sunday of the week `which` weeks from this one."""
    monday = today - (today.isoweekday() - 1) * _DAY + which * 7 * _DAY
    return Span(monday + 5 * _DAY, monday + 7 * _DAY, Grain.DAY)


def one_day(day: date) -> Span:
    """Span of the single day `day`."""
    return Span(day, day + _DAY, Grain.DAY)


def season_span(name: str, which: int, today: date) -> Span:
    """The named season: current or coming (0), the one after (1), or the last (-1). Spring, summer, autumn and winter
    of the northern hemisphere. Without a name: the current season or its neighbours."""
    starts = sorted({(date(year, *day), season) for year in _years(today) for season, day in SEASONS.items()})
    spans: list[tuple[Span, set[str]]] = []
    days = sorted({day for day, _ in starts})
    for begin, end in pairwise(days):
        names = {season for day, season in starts if day == begin}
        spans.append((Span(begin, end, Grain.DAY), names))
    named = [span for span, names in spans if not name or name in names]
    at = next(place for place, span in enumerate(named) if span.end > today)
    return named[at + which]


def _years(today: date) -> range:
    return range(max(1, today.year - 2), min(9999, today.year + 3))


def month_span(year: int, month: int) -> Span:
    """Span of a month of 1 to 12. Raises OverflowError at the end of the calendar."""
    start = date(year, month, 1)
    return Span(start, _first_of(year * 12 + month), Grain.MONTH)


def year_span(year: int) -> Span:
    """Span of a year. Raises OverflowError outside the calendar."""
    return Span(_first_of(year * 12), _first_of(year * 12 + 12), Grain.YEAR)


def near_weekday(day: date, weekday: int, today: date) -> date:
    """The day on `weekday` that is nearest to `day` and not before `today`."""
    near = day + ((weekday - day.isoweekday() + 3) % 7 - 3) * _DAY
    return near if near >= today else near + 7 * _DAY


def passed_date(day: date, weekday: int, today: date, *, has_month: bool) -> date | None:
    """The same day of the month as `day`, and of the year if `has_month`, on `weekday` in the 31 days before `today`;
    None otherwise."""
    for step in range(1, 32):
        past = today - step * _DAY
        if past.day == day.day and past.isoweekday() == weekday and (past.month == day.month or not has_month):
            return past
    return None


def working_days_later(day: date, count: int) -> date:
    """`day` plus `count` working days, Monday to Friday; `count` may be negative."""
    weeks, rest = divmod(min(abs(count), 100_000), 5)
    step = _DAY if count > 0 else -_DAY
    while day.isoweekday() > 5 and (weeks or rest):  # counting starts on a working day
        day -= step
    day += 7 * weeks * step
    for _ in range(rest):
        day += step
        while day.isoweekday() > 5:
            day += step
    return day


def moved(day: date, length: Length) -> date:
    """`day` plus the months and days of `length`; seconds are ignored. Raises OverflowError outside the calendar."""
    return shifted(datetime(day.year, day.month, day.day), length).date()  # noqa: DTZ001 - a day has no zone


def _first_of(month: int) -> date:
    year, month = divmod(month, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside of the calendar")
    return date(year, month + 1, 1)
