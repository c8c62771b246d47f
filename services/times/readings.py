"""What a time in words means: plain values, and the rule of time that each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum

from services.recurrence import Every, Once, Rule
from services.times.repeats import Repeats, Trouble, UnclearTime, repeating_rule


class Kind(StrEnum):
    """What was named."""

    INSTANT = "instant"
    """A moment: a day with a time of day, or so long from now."""
    DAY = "day"
    """A whole day, without a time of day."""
    TIME_OF_DAY = "time_of_day"
    """A time of day, without a day: `start` is when the clock shows it next."""
    INTERVAL = "interval"
    """A stretch of time: this afternoon, next week, from 3 to 5."""
    RECURRENCE = "recurrence"
    DURATION = "duration"
    """How long something lasts, not when: `start` is now, `end` is when it is over if it begins now."""


class Grain(StrEnum):
    """How finely a time was named."""

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
    """How long: months and days of the calendar, and elapsed seconds."""

    months: int = 0
    days: int = 0
    seconds: float = 0

    def __add__(self, other: Length) -> Length:
        return Length(self.months + other.months, self.days + other.days, self.seconds + other.seconds)

    def __neg__(self) -> Length:
        return Length(-self.months, -self.days, -self.seconds)

    def after(self, moment: datetime) -> datetime:
        """The aware moment that comes so long after `moment`, in the same zone: months and days by the wall, seconds
        as they elapse. Raises OverflowError outside of the years 1 to 9999."""
        wall = shifted(moment.replace(tzinfo=None), self)
        if not self.months and not self.days:
            wall, fold = moment.replace(tzinfo=None), moment.fold
        else:
            fold = 0
        instant = wall.replace(tzinfo=moment.tzinfo, fold=fold).astimezone(UTC) + timedelta(seconds=self.seconds)
        return instant.astimezone(moment.tzinfo)

    def total_seconds(self) -> float:
        """Seconds, a month counted as 30 days and 12 of them as 365."""
        years, months = divmod(abs(self.months), 12)
        days = (years * 365 + months * 30) * (1 if self.months >= 0 else -1) + self.days
        return days * 86_400 + self.seconds


def shifted(wall: datetime, length: Length) -> datetime:
    """`wall` moved by the months and days of `length`; the 31st becomes the last day of a shorter month. Raises
    OverflowError outside of the years 1 to 9999."""
    year, month = divmod(wall.year * 12 + wall.month - 1 + length.months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside of the calendar")
    day = min(wall.day, days_in_month(year, month + 1))
    return wall.replace(year=year, month=month + 1, day=day) + timedelta(days=length.days)


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@dataclass(frozen=True, slots=True)
class Reading:
    """What a phrase means. All wall times are naive and in the zone of `now`, also where another zone was said."""

    kind: Kind
    start: datetime
    end: datetime
    """When it is over, the moment not included. For an INSTANT or TIME_OF_DAY it is `start` and its grain."""
    grain: Grain
    has_clock: bool = False
    """Whether a time of day was said."""
    zone: tzinfo | None = None
    """The zone that was said ("3pm EST"), where one was."""
    length: Length | None = None
    """Of a DURATION, and of what was said as so long from now."""
    repeats: Repeats | None = None
    """Of a RECURRENCE."""
    at: datetime | None = None
    """The wall time within a stretch at which what is to happen then happens, where that is not when it begins: the
    last day of "end of the month", the moment after "by"."""
    default: time | None = None
    """The usual time of day for what was said without one: 09:00 in "tomorrow morning"."""
    trouble: Trouble | None = None
    """Why no rule can be made of it, where that is known already."""

    def moment(self, default_time: time) -> datetime:
        """The naive wall time, in the zone of `now`, at which something that is to happen then happens: the end of a
        DURATION, `default_time` where no time of day was said."""
        if self.kind is Kind.DURATION:
            return self.end
        moment = self.at or self.start
        if self.has_clock or self.kind is Kind.INSTANT:
            return moment
        return datetime.combine(moment, self.default or default_time)

    def rule(self, now: datetime, default_time: time = time(9)) -> Rule:
        """The rule of time, its wall times in `rule_zone(now)`. `now` is aware; `default_time` is taken where no time
        of day was said. Raises UnclearTime."""
        if self.trouble is not None:
            raise UnclearTime(self.trouble)
        if self.repeats is not None:
            here = now if self.zone is None else now.astimezone(self.zone)
            return repeating_rule(self.repeats, here, self.default or default_time)
        wall = self._coming_moment(now, default_time)
        instant = wall.replace(tzinfo=now.tzinfo).astimezone(UTC)
        if wall.fold:
            # A wall time that comes twice means its first: only what has elapsed names the second one.
            return Rule(Every(round((instant - now).total_seconds()), now.astimezone(UTC)), count=1)
        # Clocks on walls show no more than seconds, and nobody means more.
        return Rule(Once(wall.replace(microsecond=0)))

    def rule_zone(self, now: datetime) -> tzinfo | None:
        """The zone for `rule(now)`: the one that was said for what comes again and again, otherwise that of `now`."""
        return self.zone if self.repeats is not None and self.zone is not None else now.tzinfo

    def _coming_moment(self, now: datetime, default_time: time) -> datetime:
        """`moment`, or a later one within a stretch that has begun: the usual time today, or the next full hour."""
        wall, here = self.moment(default_time), now.replace(tzinfo=None)
        if wall.replace(tzinfo=now.tzinfo).astimezone(UTC) > now:
            return wall
        if not self.has_clock and self.kind in (Kind.DAY, Kind.INTERVAL):
            today = datetime.combine(here, self.default or default_time)
            full_hour = here.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            for later in (today, full_hour):
                if here < later < self.end:
                    return later
        raise UnclearTime(Trouble.PAST)


@dataclass(frozen=True, slots=True)
class Found:
    """A time within a sentence: `text[start:end]` reads to the same."""

    reading: Reading
    start: int
    end: int


def nothing(wall: datetime, trouble: Trouble) -> Reading:
    """What was understood, but stands for no time."""
    return Reading(Kind.INSTANT, wall, wall, Grain.SECOND, trouble=trouble)
