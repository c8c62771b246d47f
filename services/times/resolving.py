"""From what a phrase says to what it means at a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from services.recurrence import Unit
from services.times.day_resolving import NoSuchDay, day_of_part, edge_day
from services.times.lexicon import HOURS_OF
from services.times.parts import Clock, Part, Span, without
from services.times.readings import Grain, Kind, Reading
from services.times.repeats import Repeats, Trouble

WAKING_HOURS = range(7, 23)
_SOON = timedelta(hours=3)
_DAY = timedelta(days=1)
_GRAINS = {
    Grain.SECOND: timedelta(seconds=1),
    Grain.MINUTE: timedelta(minutes=1),
    Grain.HOUR: timedelta(hours=1),
}
_DAYS = ("year", "month", "day", "weekday", "which", "span", "nth", "holiday", "edge", "is_numeric")
_EVENING = frozenset(
    (
        "evening",
        "night",
        "tonight",
        "late evening",
        "late night",
        "early evening",
        "early night",
        "dinner",
        "dusk",
        "bedtime",
        "after work",
        "after school",
    )
)
_FROM_NOON = frozenset(("afternoon", "early afternoon", "late afternoon", "lunch", "tea")) | _EVENING


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


def resolve(part: Part, moment: Moment) -> Reading | None:
    """What `part` means at `moment`; None when it means no time. A date that does not exist is a reading with a
    trouble. Raises OverflowError or ValueError outside of the calendar."""
    zone = part.get("zone")
    there = moment if zone is None else Moment.at(moment.now.astimezone(zone), day_first=moment.day_first)
    try:
        reading = _resolved(part, there)
    except NoSuchDay:
        return _nothing(moment, Trouble.NO_SUCH)
    if reading is None or zone is None:
        return reading
    return _as_seen_from(reading, zone, moment)


def _as_seen_from(reading: Reading, zone: tzinfo, moment: Moment) -> Reading:
    def here(wall: datetime) -> datetime:
        return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(moment.now.tzinfo).replace(tzinfo=None)

    at = None if reading.at is None else here(reading.at)
    return replace(reading, start=here(reading.start), end=here(reading.end), at=at, zone=zone)


def _nothing(moment: Moment, trouble: Trouble) -> Reading:
    return Reading(Kind.INSTANT, moment.wall, moment.wall, Grain.SECOND, trouble=trouble)


def _resolved(part: Part, moment: Moment) -> Reading | None:
    clocks = part.get("clocks", ())
    if not all(clock.exists for clock in clocks):
        return _nothing(moment, Trouble.NO_SUCH)
    if "trouble" in part:
        return _nothing(moment, part["trouble"])
    if "repeats" in part or "weekdays" in part or "days" in part:
        return _recurrence(part, moment)
    if "until" in part or "first" in part or "count" in part:
        return None
    if "to" in part:
        return _range(part, part["to"], moment)
    if "lasts" in part:
        return _lasting(part, moment)
    if "number" in part:
        return None
    if "at" in part:
        return None if len(part.keys() - {"grain", "at"}) else _instant(part["at"], part["grain"], has_clock=True)
    if len(clocks) > 1:
        return _nothing(moment, Trouble.SEVERAL)
    reading = _single(part, clocks[0] if clocks else None, moment)
    if reading is not None and part.get("deadline") and reading.trouble is None:
        return _deadline(reading, part, moment)
    return reading


def _single(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    if "length" in part:
        return _from_now(part, clock, moment)
    found = day_of_part(part, moment.today, moment.wall.hour)
    portion = part.get("portion")
    if found is None:
        if clock is None:
            return None if portion is None else _portion(moment.today, portion, moment, is_open=True)
        if portion is None:
            return _time_of_day(clock, moment)
        return _time_of_portion(clock, portion, moment)
    span, trouble = found
    if clock is not None:
        if "edge" in part and span.grain != Grain.DAY:
            return None
        day = _day_for_clock(part, span, clock, moment)
        reading = _instant(on_day(day, clock, portion, moment), clock.grain, has_clock=True)
    elif portion is not None:
        reading = _portion(span.start, portion, moment, is_open=False)
    else:
        reading = _days(part, span, moment)
    return reading if trouble is None else replace(reading, trouble=trouble)


def _days(part: Part, span: Span, moment: Moment) -> Reading:
    start, end = _midnight(span.start), _midnight(span.end)
    if "edge" in part:
        whole = edge_day(part["edge"], span, moment.today)
        if isinstance(whole, datetime):
            return _instant(whole, Grain.SECOND, has_clock=True)
        stretch, day = whole
        return Reading(Kind.INTERVAL, _midnight(stretch.start), _midnight(stretch.end), Grain.DAY, at=_midnight(day))
    kind = Kind.DAY if span.end - span.start == _DAY else Kind.INTERVAL
    return Reading(kind, start, end, span.grain)


def _day_for_clock(part: Part, span: Span, clock: Clock, moment: Moment) -> date:
    """A weekday that is today means today while its time of day is still to come."""
    if "weekday" in part and "which" not in part and span.start - moment.today == 7 * _DAY:
        if (
            not part.keys() & {"month", "day", "span", "nth"}
            and on_day(moment.today, clock, part.get("portion"), moment) > moment.wall
        ):
            return moment.today
    return span.start


def _from_now(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    length, grain = part["length"], part["grain"]
    after = length.after(moment.now)
    wall = after.replace(tzinfo=None)
    if part.get("deadline"):
        if clock is not None:
            return None
        return Reading(Kind.INTERVAL, moment.wall, wall, grain, has_clock=True, length=length, at=wall)
    day = wall.date()
    if "weekday" in part:
        day += (part["weekday"] - day.isoweekday()) % 7 * _DAY
        if grain == Grain.DAY and day != wall.date():
            return _nothing(moment, Trouble.AMBIGUOUS)
    elif part.keys() & {"year", "month", "day", "span", "holiday", "nth", "edge"}:
        return None
    if clock is not None:
        if length.seconds:
            return None
        return _instant(on_day(day, clock, part.get("portion"), moment), clock.grain, has_clock=True)
    if "portion" in part:
        return None if length.seconds else _portion(day, part["portion"], moment, is_open=False)
    if "weekday" in part:
        return Reading(Kind.DAY, _midnight(day), _midnight(day + _DAY), Grain.DAY)
    step = _GRAINS.get(grain, _DAY)
    return Reading(Kind.INSTANT, wall, _later(wall, step), grain, has_clock=bool(length.seconds), length=length)


def _lasting(part: Part, moment: Moment) -> Reading | None:
    """`for 20 minutes`; with a beginning it is a stretch of time."""
    lasts, rest = part["lasts"], without(part, "lasts", "grain")
    if rest.pop("is_bare", False) and rest:
        return None
    if not rest:
        end = lasts.after(moment.now).replace(tzinfo=None)
        return Reading(Kind.DURATION, moment.wall, end, part["grain"], length=lasts)
    if "number" in rest:
        number = rest.pop("number")
        rest["clocks"] = (Clock(number),)
    begin = _resolved(rest, moment)
    if begin is None or begin.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    end = lasts.after(begin.start.replace(tzinfo=moment.now.tzinfo)).replace(tzinfo=None)
    return Reading(Kind.INTERVAL, begin.start, end, begin.grain, begin.has_clock, default=begin.default)


def _deadline(reading: Reading, part: Part, moment: Moment) -> Reading | None:
    if reading.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    has_day = reading.kind in (Kind.DAY, Kind.INTERVAL)
    at = (reading.at or reading.start) if has_day else reading.start
    return Reading(
        Kind.INTERVAL,
        moment.wall,
        reading.end if has_day else reading.start,
        reading.grain,
        reading.has_clock,
        at=at,
        default=reading.default,
    )


def _instant(wall: datetime, grain: Grain, *, has_clock: bool) -> Reading:
    return Reading(Kind.INSTANT, wall, _later(wall, _GRAINS.get(grain, _DAY)), grain, has_clock)


def _later(wall: datetime, step: timedelta) -> datetime:
    return wall + step if wall.year < 9999 else wall


def _portion(day: date, portion: str, moment: Moment, *, is_open: bool) -> Reading:
    """A part of a day; of today, or of tomorrow when it is over, where no day was said."""
    first, last, usual = HOURS_OF[portion]
    start = _midnight(day)
    if is_open and start + timedelta(hours=last) <= moment.wall:
        start += _DAY
    return Reading(
        Kind.INTERVAL, start + timedelta(hours=first), start + timedelta(hours=last), Grain.HOUR, default=time(usual)
    )


def _time_of_day(clock: Clock, moment: Moment) -> Reading:
    """A time of day alone: when the clock shows it next. Without am or pm: next in waking hours, or soon."""
    candidates = sorted(
        datetime.combine(moment.today + days * _DAY, clock.at(half)) for days in (0, 1, 2) for half in ("am", "pm")
    )
    is_plain = clock.half == "" and clock.hour <= 12
    if is_plain and clock.hour == 12:
        candidates = [wall for wall in candidates if wall.hour == 12]
    for wall in candidates:
        if wall > moment.wall and (not is_plain or wall.hour in WAKING_HOURS or wall - moment.wall <= _SOON):
            return Reading(Kind.TIME_OF_DAY, wall, wall + _GRAINS[clock.grain], clock.grain, has_clock=True)
    raise ValueError("a day has every time of day")


def _time_of_portion(clock: Clock, portion: str, moment: Moment) -> Reading:
    """`3 in the morning`: the next one."""
    wall = on_day(moment.today, clock, portion, moment)
    if wall <= moment.wall:
        wall = on_day(moment.today + _DAY, clock, portion, moment)
    kind = Kind.INSTANT if portion == "tonight" else Kind.TIME_OF_DAY
    return Reading(kind, wall, wall + _GRAINS[clock.grain], clock.grain, has_clock=True)


def on_day(day: date, clock: Clock, portion: str | None, moment: Moment) -> datetime:
    """The wall time on `day`. Without am or pm it is what fits the part of the day that was said, or a waking hour,
    on this very day one that is still to come. Midnight ends a day."""
    if clock.half or clock.hour > 12:
        wall = datetime.combine(day, clock.at(""))
        if clock.hour == 24 or (clock.at("") < time(5) and portion in ("night", "tonight", "late night")):
            wall += _DAY
        return wall
    early, late = datetime.combine(day, clock.at("am")), datetime.combine(day, clock.at("pm"))
    if portion is not None:
        return _in_portion(clock, portion, early, late)
    if clock.hour == 12:
        return late
    if day == moment.today:
        for wall in (early, late):
            if wall > moment.wall and (wall.hour in WAKING_HOURS or wall - moment.wall <= _SOON):
                return wall
    return early if early.hour in WAKING_HOURS else late


def _in_portion(clock: Clock, portion: str, early: datetime, late: datetime) -> datetime:
    if portion not in _FROM_NOON:
        return late if clock.hour == 12 and portion in ("morning", "late morning", "brunch", "daytime") else early
    if portion in _EVENING and clock.hour == 12:
        return early + _DAY
    if portion in ("night", "tonight", "late night", "bedtime") and clock.hour < 5:
        return early + _DAY
    return early if portion == "lunch" and clock.hour in (10, 11) else late


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall time has no zone of its own


def _range(left: Part, right: Part, moment: Moment) -> Reading | None:
    """From one end to the other; each lends what the other leaves out."""
    left = without(left, "to")
    left.pop("deadline", None)
    right = right.copy()
    right.pop("deadline", None)
    if "zone" in right and "zone" not in left:
        return None
    if "clocks" in left or "clocks" in right or _is_clock_range(left, right):
        return _clock_range(left, right, moment)
    return _day_range(left, right, moment)


def _is_clock_range(left: Part, right: Part) -> bool:
    """Whether two bare numbers are hours: no month, and no day but beside them."""
    numbers = "number" in left and "number" in right
    return numbers and max(left["number"], right["number"]) <= 24 and "month" not in left and "month" not in right


def _clock_of(part: Part) -> Clock | None:
    clocks = part.get("clocks")
    if clocks is not None:
        return clocks[0] if len(clocks) == 1 else None
    number = part.get("number")
    return None if number is None or number > 24 else Clock(number, half="24" if number > 12 else "")


def _clock_range(left: Part, right: Part, moment: Moment) -> Reading | None:
    first, last = _clock_of(left), _clock_of(right)
    if first is None or last is None:
        return None
    if not (first.exists and last.exists):
        return _nothing(moment, Trouble.NO_SUCH)
    days = {key: part[key] for part in (left, right) for key in _DAYS if key in part}  # type: ignore[literal-required]  # a key of a Part
    portion = left.get("portion", right.get("portion"))
    if "portion" in left and last.half:
        pass
    elif first.half == "" and last.half == "pm":
        same = replace(first, half="pm")
        first = same if same.at("") < last.at("") else replace(first, half="am")
    elif first.half == "" and last.half == "am" and first.at("am") < last.at("am"):
        first = replace(first, half="am")
    begin_part = Part(**days, clocks=(first,))  # type: ignore[typeddict-item]  # the keys are those of a Part
    if portion is not None:
        begin_part["portion"] = portion
    begin = _single(begin_part, first, moment)
    if begin is None or begin.trouble is not None:
        return begin
    end = min(
        wall
        for half in ("am", "pm")
        for days_later in (0, 1)
        if (wall := datetime.combine(begin.start.date() + days_later * _DAY, last.at(half))) > begin.start
    )
    return Reading(Kind.INTERVAL, begin.start, end, min(first.grain, last.grain, key=list(Grain).index), has_clock=True)


def _day_range(left: Part, right: Part, moment: Moment) -> Reading | None:
    left, right = _as_days(left, right), _as_days(right, left)
    if "month" in right and "month" not in left and "day" in left:
        left["month"] = right["month"]
    if "month" in left and "day" in left and "month" not in right and "day" in right:
        if right["day"] > left["day"]:
            right["month"] = left["month"]
        else:
            right["month"] = left["month"] % 12 + 1
    if "year" in right and "year" not in left and "month" in left:
        left["year"] = right["year"] - (
            1 if (left["month"], left.get("day", 0)) > (right.get("month", 0), right.get("day", 32)) else 0
        )
    elif "year" in left and "year" not in right and "month" in right:
        right["year"] = left["year"]
    begin = _resolved(left, moment) if left else None
    if begin is None or begin.kind in (Kind.RECURRENCE, Kind.DURATION) or begin.trouble is not None:
        return begin if begin is not None and begin.trouble is not None else None
    start = begin.at or begin.start
    later = Moment(moment.now, moment.wall, max(start.date(), date.min), moment.day_first)
    end = _resolved(right, later if "length" not in right else moment)
    if end is None or end.kind in (Kind.RECURRENCE, Kind.DURATION) or end.trouble is not None:
        return end if end is not None and end.trouble is not None else None
    last = end.at if end.at is not None and right.get("edge") in ("begin", "middle") else end.end
    if last <= start:
        return None
    return Reading(Kind.INTERVAL, start, last, end.grain if end.grain != Grain.SECOND else Grain.DAY, begin.has_clock)


def _as_days(part: Part, other: Part) -> Part:
    """A bare number is a day of the month (or nothing), a copy of the part otherwise."""
    part = part.copy()
    if "number" in part:
        part["day"] = part.pop("number")
    return part


def _recurrence(part: Part, moment: Moment) -> Reading | None:
    allowed = {
        "repeats",
        "weekdays",
        "days",
        "weekday",
        "nth",
        "day",
        "month",
        "clocks",
        "portion",
        "until",
        "first",
        "count",
        "zone",
        "to",
        "span",
        "lasts",
        "grain",
        "holiday",
        "is_numeric",
        "which",
        "number",
        "edge",
        "deadline",
    }
    if not part.keys() <= allowed or "deadline" in part or (part.get("which") or 0) != 0:
        return None
    if "repeats" not in part:
        if "days" in part or not ("clocks" in part or "portion" in part):
            return None
    repeats = part.get("repeats", Repeats(Unit.WEEK))
    if repeats.unit is not None and "clocks" not in part:
        part = _with_clock_of_bounds(part)
    repeats = _on_days(repeats, part, moment)
    if repeats is None:
        return None
    repeats = _bounded(repeats, part, moment)
    if repeats is None:
        return None
    clocks, portion = part.get("clocks", ()), part.get("portion")
    if "to" in part:
        windowed = _window(repeats, part, moment)
        if windowed is None:
            return None
        repeats, clocks = windowed, ()
    elif clocks:
        if repeats.unit is None:
            return None
        # On a day that is not today there is nothing that an hour could have passed.
        quiet = Moment(moment.now, moment.wall, date.min, moment.day_first)
        repeats = replace(
            repeats, times=tuple(on_day(date(2024, 1, 8), clock, portion, quiet).time() for clock in clocks)
        )
    default = time(HOURS_OF[portion][2]) if portion is not None and not clocks else None
    return Reading(
        Kind.RECURRENCE,
        moment.wall,
        moment.wall,
        clocks[0].grain if clocks else Grain.DAY,
        bool(clocks) or "to" in part,
        repeats=repeats,
        default=default,
    )


def _with_clock_of_bounds(part: Part) -> Part:
    """`every day from Monday at 8`: the time of day is that of every day."""
    for name in ("first", "until"):
        bound: Part | None = part.get(name)  # type: ignore[assignment]  # both are parts
        if bound is not None and "clocks" in bound and bound.keys() - {"clocks", "portion"}:
            return {**part, "clocks": bound["clocks"], name: without(bound, "clocks")}  # type: ignore[misc]  # the name is a key
    return part


def _on_days(repeats: Repeats, part: Part, moment: Moment) -> Repeats | None:
    weekdays = part.get("weekdays", (part["weekday"],) if "weekday" in part else ())
    days = part.get("days", (part["day"],) if "day" in part else ())
    months = (part["month"],) if "month" in part else ()
    if "holiday" in part:
        found = day_of_part(Part(holiday=part["holiday"]), moment.today)
        after = None if found is None else day_of_part(Part(holiday=part["holiday"]), found[0].end)
        if (
            found is None
            or after is None
            or (found[0].start.month, found[0].start.day) != (after[0].start.month, after[0].start.day)
        ):
            return None
        months, days = (found[0].start.month,), (found[0].start.day,)
    if "span" in part and not part["span"].is_loose:
        return _beginning_with(repeats, part["span"], moment, weekdays, days)
    if "edge" in part and repeats.unit is Unit.MONTH:
        days = (-1,) if part["edge"] == "end" else (1,) if part["edge"] == "begin" else (15,)
    if "nth" in part:
        number, what = part["nth"]
        if repeats.unit not in (Unit.MONTH, Unit.YEAR) and repeats != Repeats(Unit.WEEK):
            return None
        unit = Unit.YEAR if months else Unit.MONTH
        if what.startswith("weekday "):
            return (
                replace(
                    repeats,
                    unit=unit,
                    weekdays=(int(what.split()[1]),),
                    nth=number if number > 0 else -1,
                    months=months,
                )
                if -1 <= number <= 5
                else None
            )
        if what == Grain.DAY and (number > 0 or number == -1):
            return replace(repeats, unit=unit, days=(number,), months=months)
        return None
    if repeats.unit is None and (days or months):
        return None
    if repeats.unit is Unit.DAY and weekdays and repeats.step == 1:
        repeats = replace(repeats, unit=Unit.WEEK)
    if repeats.unit is Unit.WEEK and repeats.step == 1 and days and not weekdays and "days" not in part:
        return None
    if any(not 1 <= day <= 31 for day in days if day != -1):
        raise NoSuchDay
    return replace(repeats, weekdays=weekdays or repeats.weekdays, days=days, months=months)


def _beginning_with(
    repeats: Repeats, span: Span, moment: Moment, weekdays: tuple[int, ...], days: tuple[int, ...]
) -> Repeats | None:
    """`tomorrow and every day after` is not understood, `every day next week` is."""
    if span.end - span.start == _DAY:
        return (
            None if span.start != moment.today else replace(repeats, weekdays=weekdays or repeats.weekdays, days=days)
        )
    return replace(
        repeats,
        weekdays=weekdays or repeats.weekdays,
        days=days,
        first=max(span.start, moment.today),
        until=_midnight(span.end) - timedelta(minutes=1),
    )


def _bounded(repeats: Repeats, part: Part, moment: Moment) -> Repeats | None:
    if "first" in part:
        first = _resolved(part["first"], moment)
        if first is None or first.trouble is not None or first.kind is Kind.DURATION:
            return None
        repeats = replace(repeats, first=first.start.date())
    if "until" in part:
        until = _resolved(part["until"], moment)
        if until is None or until.trouble is not None or until.kind is Kind.DURATION:
            return None
        last = until.start if until.has_clock else until.end - timedelta(minutes=1)
        if until.grain in (Grain.MONTH, Grain.YEAR, Grain.QUARTER) and until.at is None:
            last = until.start - timedelta(minutes=1) if until.start > moment.wall else last
        repeats = replace(repeats, until=last)
    if "lasts" in part:
        start = moment.now if repeats.first is None else _midnight(repeats.first).replace(tzinfo=moment.now.tzinfo)
        repeats = replace(repeats, until=part["lasts"].after(start).replace(tzinfo=None, second=0, microsecond=0))
    if "count" in part:
        repeats = replace(repeats, count=part["count"])
    return repeats


def _window(repeats: Repeats, part: Part, moment: Moment) -> Repeats | None:
    """`every 2 hours from 9 to 17`."""
    if repeats.unit is not None or repeats.seconds >= 86_400:
        return None
    days = (
        Part(clocks=part["clocks"]) if "clocks" in part else Part(number=part["number"]) if "number" in part else Part()
    )
    tomorrow = Moment(moment.now, _midnight(moment.today), moment.today, moment.day_first)
    stretch = _clock_range(days, part["to"], tomorrow)
    if stretch is None or stretch.trouble is not None or stretch.end.date() != stretch.start.date():
        return None
    return replace(repeats, window=(stretch.start.time(), stretch.end.time()))
