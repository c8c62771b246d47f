"""What comes again and again, and the rule of time for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from services.recurrence import Calendar, Every, Rule, Unit

_MOST_SECONDS = 100 * 366 * 86_400
_DAYS_AHEAD = 366 * 9
"""Among so many days even the 29th of February comes."""


class Trouble(StrEnum):
    """Why a time that was understood cannot be a rule."""

    PAST = "past"
    NO_SUCH = "no_such"
    """There is no such date or time of day: 30 February, 25:00."""
    AMBIGUOUS = "ambiguous"
    """It can mean several things, and guessing would be wrong too often."""
    VAGUE = "vague"
    """It names no moment: some day, soon."""
    SEVERAL = "several"
    """It is more than one rule can hold: every day at 8:00 and 20:30."""


class UnclearTime(ValueError):
    """A reading stands for no rule; `trouble` says why."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.value)
        self.trouble = trouble


@dataclass(frozen=True, slots=True)
class Repeats:
    """What comes again and again. Empty tuples: not said."""

    unit: Unit | None = Unit.DAY
    """What is counted; None: elapsed `seconds`."""
    step: int = 1
    """Every so many units."""
    seconds: int = 0
    weekdays: tuple[int, ...] = ()
    """1 is Monday, 7 is Sunday."""
    nth: int = 0
    """Which of these weekdays within the month: 1 to 5, -1 the last, 0 every one."""
    days: tuple[int, ...] = ()
    """Days of the month; -1 is the last one."""
    months: tuple[int, ...] = ()
    times: tuple[time, ...] = ()
    """Times of day."""
    window: tuple[time, time] | None = None
    """Of elapsed seconds: only from the first to the second of these times of day, both included."""
    first: date | None = None
    """Not before this day."""
    until: datetime | None = None
    """Naive wall time: not after it."""
    count: int | None = None
    """So many times in all."""


def repeating_rule(repeats: Repeats, now: datetime, default_time: time) -> Rule:
    """The rule of time for `repeats`, as it is said at `now` (aware). Raises UnclearTime."""
    return Rule(_when(repeats, now, default_time), repeats.until, repeats.count)


def _when(repeats: Repeats, now: datetime, default_time: time) -> Calendar | Every:
    if repeats.unit is None and not (repeats.window or repeats.weekdays or repeats.first):
        if not 0 < repeats.seconds <= _MOST_SECONDS:
            raise UnclearTime(Trouble.NO_SUCH)
        return Every(repeats.seconds, now.astimezone(UTC))
    if repeats.unit is None:
        clock = _clock_of_elapsed(repeats)
        return Calendar(f"{clock} * * {_weekdays(repeats)}", first=repeats.first)
    times = repeats.times or (default_time,)
    days = _Days.of(repeats, now)
    cron = f"{_clock(times)} {days.day} {days.month} {days.weekday}"
    if repeats.step == 1:
        return Calendar(cron, first=repeats.first)
    first = days.first_after(now.replace(tzinfo=None), repeats.first, max(times))
    return Calendar(cron, repeats.step, repeats.unit, first)


def _clock(times: tuple[time, ...]) -> str:
    """Minutes and hours of a cron expression that mean exactly `times`."""
    wanted = {(one.hour, one.minute) for one in times}
    hours, minutes = sorted({hour for hour, _ in wanted}), sorted({minute for _, minute in wanted})
    if len(wanted) != len(hours) * len(minutes):
        raise UnclearTime(Trouble.SEVERAL)
    return f"{_listed(minutes)} {_listed(hours)}"


def _clock_of_elapsed(repeats: Repeats) -> str:
    """The same for every so many seconds within a window of the day."""
    begin, end = repeats.window or (time(0), time(23, 59))
    step, rest = divmod(repeats.seconds, 60)
    if rest or not step:
        raise UnclearTime(Trouble.SEVERAL)
    first, last = begin.hour * 60 + begin.minute, end.hour * 60 + end.minute
    if repeats.window is None and 24 * 60 % step:
        raise UnclearTime(Trouble.SEVERAL)
    if step < 60 and 60 % step == 0 and last % 60 == first % 60:
        last -= 1  # the hour of the end would have but one of its minutes, which no expression can say
    at = range(first, last + 1, step)
    if not at:
        raise UnclearTime(Trouble.SEVERAL)
    return _clock(tuple(time(*divmod(minute, 60)) for minute in at))


def _weekdays(repeats: Repeats) -> str:
    if not repeats.weekdays:
        return "*"
    if repeats.nth:
        suffix = "L" if repeats.nth < 0 else f"#{repeats.nth}"
        return ",".join(f"{day % 7}{suffix}" for day in repeats.weekdays)
    return "1-5" if repeats.weekdays == (1, 2, 3, 4, 5) else _listed(sorted(day % 7 for day in repeats.weekdays))


@dataclass(frozen=True, slots=True)
class _Days:
    """The three fields of a cron expression that name days."""

    day: str
    month: str
    weekday: str
    repeats: Repeats

    @classmethod
    def of(cls, repeats: Repeats, now: datetime) -> _Days:
        """What was not said is as it is on the first day."""
        anchor = repeats.first or now.date()
        days, months, weekdays = repeats.days, repeats.months, repeats.weekdays
        if repeats.unit is Unit.WEEK and not weekdays:
            weekdays = (anchor.isoweekday(),)
        if repeats.unit in (Unit.MONTH, Unit.YEAR) and not (days or weekdays):
            days = (1,) if months else (_day_every_month_has(anchor),) if repeats.unit is Unit.MONTH else (anchor.day,)
        if repeats.unit is Unit.YEAR and not months:
            months = (anchor.month,)
        if days and weekdays:  # cron takes either of them, not both
            raise UnclearTime(Trouble.SEVERAL)
        if months and days and not any(_exists(month, day) for month in months for day in days):
            raise UnclearTime(Trouble.NO_SUCH)
        whole = Repeats(repeats.unit, weekdays=weekdays, nth=repeats.nth, days=days, months=months)
        day = ",".join("L" if one < 0 else str(one) for one in days) or "*"
        return cls(day, _listed(months) or "*", _weekdays(whole), whole)

    def first_after(self, now: datetime, first: date | None, latest: time) -> date:
        """The first day from `first` on, or whose time is still to come."""
        day = first or (now.date() if latest > now.time() else now.date() + timedelta(days=1))
        for _ in range(_DAYS_AHEAD):
            if self._holds(day):
                return day
            day += timedelta(days=1)
        raise UnclearTime(Trouble.NO_SUCH)

    def _holds(self, day: date) -> bool:
        last = (day + timedelta(days=1)).day == 1
        if self.repeats.months and day.month not in self.repeats.months:
            return False
        if self.repeats.days and not (day.day in self.repeats.days or (last and -1 in self.repeats.days)):
            return False
        if not self.repeats.weekdays:
            return True
        nth = self.repeats.nth
        which = (day.day + 6) // 7
        is_nth = nth in (0, which) or (nth < 0 and (day + timedelta(days=7)).month != day.month)
        return day.isoweekday() in self.repeats.weekdays and is_nth


def _day_every_month_has(day: date) -> int:
    return day.day if day.day <= 28 else -1 if (day + timedelta(days=1)).day == 1 else day.day


def _exists(month: int, day: int) -> bool:
    return day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def _listed(numbers: list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
