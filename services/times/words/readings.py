"""Meanings of times in words as values and recurrences, and the protocol of a language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol

from services.times.recurrence import BadCron, Calendar, CronWalls, Every, Once, Rule, Unit

_MOST_SECONDS = 100 * 366 * 86_400
_MOST_CHOICES = 4


class TimeProblem(StrEnum):
    """Reason why a time in words cannot become a rule."""

    PAST = "past"
    NO_SUCH = "no_such"
    """The date or time of day does not exist: 30 February, 25:00."""
    AMBIGUOUS = "ambiguous"
    """Ambiguous, and a guess would be wrong too often."""
    VAGUE = "vague"
    """No specific time: some day, soon."""
    SEVERAL = "several"
    """Needs more than one rule: every day at 8:00 and 20:30."""


class UnclearTime(ValueError):
    """A reading cannot become a rule; `problem` is the reason."""

    def __init__(self, problem: TimeProblem, choices: tuple[Reading, ...] = ()) -> None:
        super().__init__(problem.value)
        self.problem = problem
        self.choices = choices
        """For AMBIGUOUS: the readings to choose from; empty if they are unknown."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Recurrence as expressed in words, before it becomes a Rule. Empty tuples are unspecified."""

    unit: Unit | None = Unit.DAY
    """Unit of `step`; None: `seconds` of elapsed time."""
    step: int = 1
    """Interval in units."""
    seconds: int = 0
    weekdays: tuple[int, ...] = ()
    """1 is Monday, 7 is Sunday."""
    nth: int = 0
    """Position of the weekdays in the month: 1 to 5, -1 the last, 0 all."""
    days: tuple[int, ...] = ()
    """Days of the month; -1 is the last one."""
    months: tuple[int, ...] = ()
    times: tuple[time, ...] = ()
    """Times of day."""
    window: tuple[time, time] | None = None
    """For elapsed seconds: first and last time of day, both inclusive."""
    first: date | None = None
    """Earliest day."""
    until: datetime | None = None
    """Naive wall time of the end, inclusive."""
    count: int | None = None
    """Total number of occurrences."""


def repeating_rule(repeats: Repeats, now: datetime, default_time: time) -> Rule:
    """Recurrence rule of `repeats`, relative to the aware time `now`. Raises UnclearTime if one rule cannot express
    it."""
    return Rule(_when(repeats, now, default_time), repeats.until, repeats.count)


def _when(repeats: Repeats, now: datetime, default_time: time) -> Calendar | Every:
    if repeats.unit is None and not (repeats.window or repeats.weekdays or repeats.first):
        if not 0 < repeats.seconds <= _MOST_SECONDS:
            raise UnclearTime(TimeProblem.NO_SUCH)
        return Every(repeats.seconds, now.astimezone(UTC))
    if repeats.unit is None:
        clock = _clock_of_elapsed(repeats)
        return Calendar(f"{clock} * * {_weekdays(repeats.weekdays, repeats.nth)}", first=repeats.first)
    times = repeats.times or (default_time,)
    cron = f"{_clock(times)} {_days(repeats, now)}"
    if repeats.step == 1:
        return Calendar(cron, first=repeats.first)
    return Calendar(cron, repeats.step, repeats.unit, _first_day(cron, repeats.first, now, max(times)))


def _clock(times: tuple[time, ...]) -> str:
    """Minute and hour fields of a cron expression for exactly these times. Raises UnclearTime (SEVERAL) if one
    expression cannot cover them."""
    wanted = {(one.hour, one.minute) for one in times}
    hours, minutes = sorted({hour for hour, _ in wanted}), sorted({minute for _, minute in wanted})
    if len(wanted) != len(hours) * len(minutes):
        raise UnclearTime(TimeProblem.SEVERAL)
    return f"{_listed(minutes)} {_listed(hours)}"


def _clock_of_elapsed(repeats: Repeats) -> str:
    """Minute and hour fields for an interval within a window of the day. Raises UnclearTime (SEVERAL) if minutes of the
    hour cannot express it."""
    begin, end = repeats.window or (time(0), time(23, 59))
    step, rest = divmod(repeats.seconds, 60)
    if rest or not step:
        raise UnclearTime(TimeProblem.SEVERAL)
    first, last = begin.hour * 60 + begin.minute, end.hour * 60 + end.minute
    if repeats.window is None and 24 * 60 % step:
        raise UnclearTime(TimeProblem.SEVERAL)
    if step < 60 and 60 % step == 0 and last % 60 == first % 60:
        last -= 1  # one extra minute in the last hour has no cron expression
    at = range(first, last + 1, step)
    if not at:
        raise UnclearTime(TimeProblem.SEVERAL)
    return _clock(tuple(time(*divmod(minute, 60)) for minute in at))


def _weekdays(weekdays: tuple[int, ...], nth: int = 0) -> str:
    if not weekdays:
        return "*"
    if nth:
        suffix = "L" if nth < 0 else f"#{nth}"
        return ",".join(f"{day % 7}{suffix}" for day in weekdays)
    return "1-5" if weekdays == (1, 2, 3, 4, 5) else _listed(sorted(day % 7 for day in weekdays))


def _days(repeats: Repeats, now: datetime) -> str:
    """Day, month and weekday fields of a cron expression; unspecified ones are taken from the first day. Raises
    UnclearTime."""
    anchor = repeats.first or now.date()
    days, months, weekdays = repeats.days, repeats.months, repeats.weekdays
    if repeats.unit is Unit.WEEK and not weekdays:
        weekdays = (anchor.isoweekday(),)
    if repeats.unit in (Unit.MONTH, Unit.YEAR) and not (days or weekdays):
        days = (1,) if months else (_day_every_month_has(anchor),) if repeats.unit is Unit.MONTH else (anchor.day,)
    if repeats.unit is Unit.YEAR and not months:
        months = (anchor.month,)
    if days and weekdays:  # cron matches either of them, not both
        raise UnclearTime(TimeProblem.SEVERAL)
    if months and days and not any(_exists(month, day) for month in months for day in days):
        raise UnclearTime(TimeProblem.NO_SUCH)
    day = ",".join("L" if one < 0 else str(one) for one in days) or "*"
    return f"{day} {_listed(months) or '*'} {_weekdays(weekdays, repeats.nth)}"


def _first_day(cron: str, first: date | None, now: datetime, latest: time) -> date:
    """First day of `cron` from `first` on; without `first`, from today, or from tomorrow if the time `latest` has
    passed. Raises UnclearTime if no day matches."""
    day = first or (now.date() if latest > now.time() else now.date() + timedelta(days=1))
    try:
        wall = CronWalls(cron).after(datetime.combine(day, time()) - timedelta(seconds=1))
    except BadCron:
        wall = None
    if wall is None:
        raise UnclearTime(TimeProblem.NO_SUCH)
    return wall.date()


def _day_every_month_has(day: date) -> int:
    return day.day if day.day <= 28 else -1 if (day + timedelta(days=1)).day == 1 else day.day


def _exists(month: int, day: int) -> bool:
    return day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def _listed(numbers: list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


class Kind(StrEnum):
    """Kind of a time expression; decides how its reading becomes a rule."""

    INSTANT = "instant"
    """A single time: a day with a time of day, or an offset from now."""
    DAY = "day"
    """A whole day."""
    TIME_OF_DAY = "time_of_day"
    """A time of day without a day: `start` is its next occurrence."""
    INTERVAL = "interval"
    """A period: this afternoon, next week, from 3 to 5."""
    RECURRENCE = "recurrence"
    DURATION = "duration"
    """A duration: from `start`, which is now, to `end`."""


class Grain(StrEnum):
    """Precision of a time expression."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Length:
    """Length of time: calendar months and days, and elapsed seconds; may be negative."""

    months: int = 0
    days: int = 0
    seconds: float = 0

    def __add__(self, other: Length) -> Length:
        return Length(self.months + other.months, self.days + other.days, self.seconds + other.seconds)

    def __neg__(self) -> Length:
        return Length(-self.months, -self.days, -self.seconds)

    def after(self, moment: datetime) -> datetime:
        """The aware `moment` plus this length, in the same zone: months and days by wall time, seconds by elapsed time.
        Raises OverflowError outside the years 1 to 9999."""
        wall = shifted(moment.replace(tzinfo=None), self)
        if not self.months and not self.days:
            wall, fold = moment.replace(tzinfo=None), moment.fold
        else:
            fold = 0
        instant = wall.replace(tzinfo=moment.tzinfo, fold=fold).astimezone(UTC) + timedelta(seconds=self.seconds)
        return instant.astimezone(moment.tzinfo)

    def total_seconds(self) -> float:
        """Approximate seconds, with 30 days per month and 365 per year."""
        years, months = divmod(abs(self.months), 12)
        days = (years * 365 + months * 30) * (1 if self.months >= 0 else -1) + self.days
        return days * 86_400 + self.seconds


def shifted(wall: datetime, length: Length) -> datetime:
    """`wall` plus the months and days of `length`; the 31st becomes the last day of a shorter month. Raises
    OverflowError outside the years 1 to 9999."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + length.months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside of the calendar")
    day = min(wall.day, days_in_month(year, month + 1))
    return wall.replace(year=year, month=month + 1, day=day) + timedelta(days=length.days)


def days_in_month(year: int, month: int) -> int:
    """Number of days of a month in the Gregorian calendar, 28 to 31."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@dataclass(frozen=True, slots=True)
class Reading:
    """Meaning of a phrase. All wall times are naive and in the zone of `now`, even if the phrase names another zone."""

    kind: Kind
    start: datetime
    end: datetime
    """Exclusive end. For INSTANT and TIME_OF_DAY, `start` plus one grain."""
    grain: Grain
    has_clock: bool = False
    """Whether the phrase has a time of day."""
    zone: tzinfo | None = None
    """Zone named in the phrase ("3pm EST")."""
    length: Length | None = None
    """Length of a DURATION or of an offset from now."""
    repeats: Repeats | None = None
    """For a RECURRENCE."""
    at: datetime | None = None
    """Wall time of an event within the period, if it is not the start: the last day for "end of the month", the
    deadline for "by"."""
    default: time | None = None
    """Default time of day of the phrase: 09:00 for "tomorrow morning"."""
    problem: TimeProblem | None = None
    """Known reason why the reading cannot become a rule."""
    choices: tuple[Reading, ...] = ()
    """For AMBIGUOUS: the readings to choose from, most likely first; empty if they are unknown."""

    def moment(self, default_time: time) -> datetime:
        """Naive wall time of an event, in the zone of `now`: the end of a DURATION; `default_time` without a time of
        day."""
        if self.kind is Kind.DURATION:
            return self.end
        moment = self.at or self.start
        if self.has_clock or self.kind is Kind.INSTANT:
            return moment
        return datetime.combine(moment, self.default or default_time)

    def rule(self, now: datetime, default_time: time = time(9)) -> Rule:
        """Rule for the recurrence, or for a single occurrence, with wall times in `rule_zone(now)`. `now` is aware;
        `default_time` applies without a time of day. Raises UnclearTime for an unusable reading, and for a single time
        that has passed."""
        if self.problem is not None:
            raise UnclearTime(self.problem, self.choices)
        if self.repeats is not None:
            here = now if self.zone is None else now.astimezone(self.zone)
            return repeating_rule(self.repeats, here, self.default or default_time)
        wall = self._coming_moment(now, default_time)
        instant = wall.replace(tzinfo=now.tzinfo).astimezone(UTC)
        if wall.fold:
            # A repeated wall time means its first occurrence; the second needs elapsed time.
            return Rule(Every(round((instant - now).total_seconds()), now.astimezone(UTC)), count=1)
        # Wall times have a precision of seconds.
        return Rule(Once(wall.replace(microsecond=0)))

    def rule_zone(self, now: datetime) -> tzinfo | None:
        """Zone for `rule(now)`: for a recurrence the zone named in the phrase, else that of `now`. None only if `now`
        is naive."""
        return self.zone if self.repeats is not None and self.zone is not None else now.tzinfo

    def _coming_moment(self, now: datetime, default_time: time) -> datetime:
        """`moment`, or for a period that has begun a later time in it: the default time today, or the next full hour.
        For `now` a second later. Raises UnclearTime (PAST) if no time is left."""
        wall, here = self.moment(default_time), now.replace(tzinfo=None)
        if self.length == Length() and self.grain is Grain.SECOND:  # now
            return wall + timedelta(seconds=1)
        if wall.replace(tzinfo=now.tzinfo).astimezone(UTC) > now:
            return wall
        if not self.has_clock and self.kind in (Kind.DAY, Kind.INTERVAL):
            today = datetime.combine(here, self.default or default_time)
            full_hour = here.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            for later in (today, full_hour):
                if here < later < self.end:
                    return later
        raise UnclearTime(TimeProblem.PAST)


@dataclass(frozen=True, slots=True)
class Found:
    """Time within a sentence: `text[start:end]` parses to the same reading."""

    reading: Reading
    start: int
    end: int


def nothing(wall: datetime, problem: TimeProblem) -> Reading:
    """Reading with `problem`, for a time that was understood but is unusable."""
    return Reading(Kind.INSTANT, wall, wall, Grain.SECOND, problem=problem)


def one_of(readings: Iterable[Reading | None]) -> Reading | None:
    """The reading that all of `readings` share, or an AMBIGUOUS one with them as choices, at most four. Skips those
    without a meaning or with a problem, and takes the choices of ambiguous ones. None if none is left."""
    choices: list[Reading] = []
    for reading in readings:
        meanings = () if reading is None else reading.choices if reading.problem else (reading,)
        choices += [one for one in meanings if one not in choices]
    if len(choices) < 2:
        return choices[0] if choices else None
    return replace(choices[0], problem=TimeProblem.AMBIGUOUS, choices=tuple(choices[:_MOST_CHOICES]))


class TimeLanguage(Protocol):
    """Parser of times in one language. No method raises for any text; `now` is aware and in the member's zone."""

    def speaks(self, text: str) -> bool:
        """Whether `text` may be in this language; a cheap check of its letters."""

    def read(self, text: str, now: datetime) -> Reading | None:
        """Parse the whole `text` as one time; None otherwise."""

    def find_all(self, text: str, now: datetime) -> Sequence[Found]:
        """Times in `text`, in order and each as long as possible, without overlaps."""
