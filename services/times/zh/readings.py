"""Parts of a Chinese time phrase and their meaning at a given instant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo

from services.times.recurrence import Unit
from services.times.words.parts import STEPS, is_likely, midnight, unit_span
from services.times.words.readings import Grain, Kind, Length, Reading, Repeats, TimeProblem, one_of, shifted
from services.times.zh.clocks import Amount, Clock, DayPart, waking_hour
from services.times.zh.days import Days, one_day


@dataclass(slots=True)
class Phrase:
    """Parsed parts of a Chinese time phrase, filled in step by step."""

    days: Days | None = None
    instead: tuple[Days, ...] = ()
    """Days to choose from, if a date and a weekday disagree."""
    part: DayPart | None = None
    clocks: list[Clock] = field(default_factory=list)
    zone: tzinfo | None = None
    ahead: Amount | None = None
    """Offset from now; before now if `is_ago`."""
    is_ago: bool = False
    lasts: Amount | None = None
    """Duration without a start."""
    window: tuple[Amount, bool, bool] | None = None
    """Next units; the last ones if the first flag is set, whole calendar units if the second is."""
    is_now: bool = False
    repeats: Repeats | None = None
    first: Days | None = None
    until: Days | None = None
    until_clock: Clock | None = None
    count: int | None = None
    run: str = ""
    """Unit of `count`."""
    problem: TimeProblem | None = None
    is_onward: bool = False
    end: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no part that makes a time was parsed; a zone or a count alone is no time."""
        return not (
            self.days
            or self.part
            or self.clocks
            or self.ahead
            or self.lasts
            or self.window
            or self.is_now
            or self.repeats
            or self.problem
        ) and not (self.count and self.run)


_NOON = Clock(12)
_RUNS = {
    **dict.fromkeys(("天", "日", "晚", "晚上"), Unit.DAY),
    **dict.fromkeys(("周", "星期", "礼拜"), Unit.WEEK),
    "月": Unit.MONTH,
    "年": Unit.YEAR,
}
_MOST_TRIES = 60


@dataclass(frozen=True, slots=True)
class Moment:
    """Reference time: `now` is aware."""

    now: datetime

    @property
    def wall(self) -> datetime:
        """Naive wall time of `now`."""
        return self.now.replace(tzinfo=None, fold=0)


def reading_of(phrase: Phrase, moment: Moment) -> Reading | None:
    """Resolve `phrase`, with wall times in the zone of `moment`. None if its parts are inconsistent. Raises
    OverflowError outside the years 1 to 9999."""
    if phrase.instead:
        return one_of(reading_of(_on(phrase, days), moment) for days in phrase.instead)
    problem = phrase.problem
    if not all(clock.exists for clock in phrase.clocks) or (phrase.days and not phrase.days.exists):
        problem = TimeProblem.NO_SUCH
    if phrase.part and phrase.part.name == "noon" and not phrase.clocks:
        phrase.clocks = [_NOON]
    if phrase.repeats is not None or (phrase.count and phrase.run):
        reading = _repeating(phrase, moment)
    elif phrase.lasts or phrase.window:
        reading = _lasting(phrase, moment)
    elif phrase.ahead:
        reading = _after_a_while(phrase, phrase.ahead, moment)
    else:
        reading = _on_a_day(phrase, moment)
    if phrase.count and not reading.repeats:
        return None
    choices: tuple[Reading, ...] = ()
    if problem is TimeProblem.AMBIGUOUS and reading.repeats is not None:  # 每隔两天
        both = (replace(reading.repeats, step=reading.repeats.step - less) for less in (0, 1))
        choices = tuple(replace(reading, repeats=repeats, zone=phrase.zone) for repeats in both)
    return replace(reading, problem=problem or reading.problem, zone=phrase.zone, choices=choices)


def _on(phrase: Phrase, days: Days) -> Phrase:
    """`phrase` on one of its `instead`: as its first day, if it repeats."""
    if phrase.repeats is not None:
        return replace(phrase, first=days, instead=())
    return replace(phrase, days=days, instead=())


def _on_a_day(phrase: Phrase, moment: Moment) -> Reading:
    """Reading of a time of day, part of a day, or days; now if none is given."""
    if phrase.clocks:
        return _at_clock(phrase, moment)
    if phrase.part:
        return _in_part(phrase, phrase.part, moment)
    if phrase.days:
        return _whole_days(phrase.days, moment)
    ends = moment.wall + timedelta(seconds=1) if phrase.is_now else moment.wall
    length = Length() if phrase.is_now else None
    return Reading(Kind.INSTANT, moment.wall, ends, Grain.SECOND, length=length)


def _whole_days(days: Days, moment: Moment) -> Reading:
    today = moment.wall.date()
    if days.is_not_today and days.first <= today:
        days = (days.next_days() if days.next_days else None) or days
    kind = Kind.DAY if days.is_day else Kind.INTERVAL
    return Reading(kind, midnight(days.first), midnight(days.after), days.grain)


def _coming(days: Days, ends: timedelta, moment: Moment) -> Days:
    """First occurrence of `days` whose midnight plus `ends` is in the future; the last one tried if none is."""
    for _ in range(_MOST_TRIES):
        following = days.next_days() if days.next_days and midnight(days.first) + ends <= moment.wall else None
        if following is None:
            break
        days = following
    return days


def _in_part(phrase: Phrase, part: DayPart, moment: Moment) -> Reading:
    """Reading of a part of a day, with its usual hour as the default; today or tomorrow without a day."""
    ends = timedelta(hours=part.end)
    days = phrase.days
    if days is None:
        today = moment.wall.date()
        days = one_day(today if midnight(today) + ends > moment.wall else today + timedelta(days=1))
    days = _coming(days, ends, moment)
    start = midnight(days.first)
    if not days.is_day:
        return Reading(Kind.INTERVAL, start, midnight(days.after), days.grain, default=part.default)
    return Reading(Kind.INTERVAL, start + timedelta(hours=part.begin), start + ends, Grain.HOUR, default=part.default)


def _hours(clock: Clock, *, is_today: bool) -> tuple[int, ...]:
    """Possible hours of an open time; only the waking one unless it is today."""
    if not clock.is_open:
        return (clock.hour,)
    return (clock.hour % 12, clock.hour % 12 + 12) if is_today else (waking_hour(clock),)


def _at_clock(phrase: Phrase, moment: Moment) -> Reading:
    clock = phrase.clocks[0]
    if phrase.days is None:
        start = _next_shown(clock, moment)
        return Reading(Kind.TIME_OF_DAY, start, start + STEPS[clock.grain], clock.grain, has_clock=True)
    today = moment.wall.date()
    days = phrase.days
    for _ in range(_MOST_TRIES):
        starts = [
            midnight(days.first) + timedelta(seconds=clock.seconds(hour))
            for hour in _hours(clock, is_today=days.first == today)
        ]
        start = next((each for each in starts if each > moment.wall), starts[-1])
        following = days.next_days() if days.next_days and start <= moment.wall else None
        if following is None:
            break
        days = following
    if clock.hour >= 24 and days.first == today and moment.wall.hour < 5:
        # After midnight, tonight's one o'clock is in the current night.
        earlier = start - timedelta(days=1)
        start = earlier if earlier > moment.wall else start
    return Reading(Kind.INSTANT, start, start + STEPS[clock.grain], clock.grain, has_clock=True)


def _next_shown(clock: Clock, moment: Moment) -> datetime:
    """Next occurrence of the time; without a part of the day the next likely one."""
    today = midnight(moment.wall.date())
    shown = [
        today + timedelta(days=day, seconds=clock.seconds(hour))
        for day in (-1, 0, 1)
        for hour in _hours(clock, is_today=True)
    ]
    coming = [each for each in (*shown, today + timedelta(days=2)) if each > moment.wall]
    return min(
        [each for each in coming if is_likely(each, moment.wall)] if clock.is_open else coming, default=min(coming)
    )


def _after_a_while(phrase: Phrase, ahead: Amount, moment: Moment) -> Reading:
    """Reading of an offset from now, or a time on the day at that offset."""
    length = -ahead.length if phrase.is_ago else ahead.length
    there = length.after(moment.now).replace(tzinfo=None)
    if not (phrase.clocks or phrase.part or phrase.days):
        return Reading(Kind.INSTANT, there, _grain_after(there, ahead.grain), ahead.grain, length=length)
    if length.seconds and not (length.days or length.months):
        return Reading(Kind.INSTANT, there, there, ahead.grain, problem=TimeProblem.NO_SUCH)
    day = shifted(moment.wall, Length(length.months, length.days)).date()
    return _on_a_day(replace(phrase, ahead=None, days=phrase.days or one_day(day)), moment)


def _grain_after(start: datetime, grain: Grain) -> datetime:
    return start + STEPS.get(grain, timedelta(days=1))


def _lasting(phrase: Phrase, moment: Moment) -> Reading:
    if phrase.lasts:
        length, grain = phrase.lasts.length, phrase.lasts.grain
        end = length.after(moment.now).replace(tzinfo=None)
        return Reading(Kind.DURATION, moment.wall, end, grain, length=length)
    assert phrase.window is not None
    amount, is_past, is_whole = phrase.window
    grain = amount.grain if is_whole or amount.grain in STEPS else Grain.DAY
    start = _start_of_unit(moment.wall, grain, 0 if is_past else 1)
    end = _moved(start, -amount.length if is_past else amount.length)
    start, end = min(start, end), max(start, end)
    return Reading(Kind.INTERVAL, start, end, amount.grain)


def _moved(wall: datetime, length: Length) -> datetime:
    return shifted(wall, length) + timedelta(seconds=length.seconds)


def _start_of_unit(wall: datetime, grain: Grain, which: int) -> datetime:
    """Start of the unit `grain` that contains `wall` (`which` 0) or of the next one (1). Weeks begin on Monday."""
    if grain not in STEPS:
        return midnight(unit_span(grain, which, 1, wall.date()).start)
    day = midnight(wall.date())
    return day + ((wall - day) // STEPS[grain] + which) * STEPS[grain]


def _repeating(phrase: Phrase, moment: Moment) -> Reading:
    repeats = phrase.repeats or Repeats(_RUNS.get(phrase.run, Unit.DAY))
    if phrase.run == "工作日" and not repeats.weekdays:
        repeats = Repeats(Unit.WEEK, weekdays=(1, 2, 3, 4, 5))
    if phrase.days is not None and phrase.repeats is None:
        phrase.first = phrase.days
    first = phrase.first.first if phrase.first else None
    times = tuple(dict.fromkeys(clock.as_time() for clock in phrase.clocks))
    repeats = replace(repeats, times=times, first=first, until=_until(phrase, moment), count=phrase.count)
    if repeats.until is None and phrase.first and not phrase.is_onward and phrase.first.grain is not Grain.DAY:
        repeats = replace(repeats, until=midnight(phrase.first.after) - timedelta(minutes=1))
    return Reading(
        Kind.RECURRENCE,
        moment.wall,
        moment.wall,
        phrase.clocks[0].grain if times else _grain_of(repeats),
        has_clock=bool(times),
        repeats=repeats,
        default=phrase.part.default if phrase.part and not times else None,
    )


def _until(phrase: Phrase, moment: Moment) -> datetime | None:
    """Last moment of a recurrence (None without an end): the end of a day or a current period, or the start of a future
    period."""
    until = phrase.until
    if until is None:
        return None
    if phrase.until_clock is not None:
        return midnight(until.first) + timedelta(seconds=phrase.until_clock.seconds(waking_hour(phrase.until_clock)))
    is_on = until.grain is Grain.DAY or until.first <= moment.wall.date()
    return (midnight(until.after) if is_on else midnight(until.first)) - timedelta(minutes=1)


def _grain_of(repeats: Repeats) -> Grain:
    if repeats.unit is not None:
        return Grain(repeats.unit.value)
    return Grain.SECOND if repeats.seconds % 60 else Grain.MINUTE if repeats.seconds % 3600 else Grain.HOUR
