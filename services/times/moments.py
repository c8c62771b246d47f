"""Times of day on days: which half of the day is meant where nobody says it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from services.times.parts import Clock
from services.times.readings import Grain, Kind, Reading

WAKING_HOURS = range(7, 23)
_SOON = timedelta(hours=3)
_DAY = timedelta(days=1)
STEPS = {
    Grain.SECOND: timedelta(seconds=1),
    Grain.MINUTE: timedelta(minutes=1),
    Grain.HOUR: timedelta(hours=1),
}
_EVENING = frozenset(
    (
        *("evening", "early evening", "late evening", "dusk", "dinner", "after work", "after school"),
        *("night", "early night", "late night", "tonight", "bedtime"),
    )
)
_NIGHT = frozenset(("night", "late night", "tonight", "bedtime"))
_FROM_NOON = frozenset(("afternoon", "early afternoon", "late afternoon", "lunch", "tea")) | _EVENING
_WITH_NOON = frozenset(("morning", "late morning", "brunch", "daytime"))
_NIGHT_ENDS = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """When, where and with which habits something is said."""

    now: datetime
    """Aware."""
    wall: datetime
    today: date
    day_first: bool = False

    @classmethod
    def at(cls, now: datetime, *, day_first: bool = False) -> Moment:
        """The moment `now` (aware)."""
        wall = now.replace(tzinfo=None)
        return cls(now, wall, wall.date(), day_first)


def midnight(day: date) -> datetime:
    """When a day begins: naive."""
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall time has no zone of its own


def instant(wall: datetime, grain: Grain, *, has_clock: bool) -> Reading:
    """The reading of one wall time."""
    step = STEPS.get(grain, _DAY)
    end = wall + step if wall < datetime.max - step else wall  # noqa: DTZ901 - a wall time
    return Reading(Kind.INSTANT, wall, end, grain, has_clock)


def time_of_day(clock: Clock, moment: Moment) -> Reading:
    """A time of day alone: when the clock shows it next. Without am or pm: next in waking hours, or soon."""
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
    """`3 in the morning`: the next one."""
    wall = on_day(moment.today, clock, portion, moment)
    if wall <= moment.wall:
        wall = on_day(moment.today + _DAY, clock, portion, moment)
    kind = Kind.INSTANT if portion == "tonight" else Kind.TIME_OF_DAY
    return Reading(kind, wall, wall + STEPS[clock.grain], clock.grain, has_clock=True)


def on_day(day: date, clock: Clock, portion: str | None, moment: Moment) -> datetime:
    """The wall time on `day`. Without am or pm it is what fits the part of the day that was said, or a waking hour,
    on this very day one that is still to come. Midnight ends a day."""
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
    """Whether somebody may mean it who says neither am nor pm: people are awake then, or it is soon."""
    return wall.hour in WAKING_HOURS or wall - now <= _SOON


def _in_portion(clock: Clock, portion: str, early: datetime, late: datetime) -> datetime:
    if portion not in _FROM_NOON:
        return late if clock.hour == 12 and portion in _WITH_NOON else early
    if portion in _EVENING and clock.hour == 12:
        return early + _DAY
    if portion in _NIGHT and clock.hour < _NIGHT_ENDS:
        return early + _DAY
    return early if portion == "lunch" and clock.hour in (10, 11) else late
