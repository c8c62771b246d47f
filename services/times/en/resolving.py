"""Resolution of parsed English phrases: times, ranges and recurrences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeAlias

from services.text_index import listed
from services.times.en.day_resolving import NoSuchDay, day_of_part, day_on_weekday, edge_day
from services.times.recurrence import Unit
from services.times.words.lexicon import HOURS_OF
from services.times.words.parts import (
    Clock,
    Moment,
    Part,
    Span,
    instant,
    joined,
    midnight,
    near_weekday,
    on_day,
    one_day,
    time_of_day,
    time_within,
    without,
)
from services.times.words.readings import Grain, Kind, Reading, Repeats, TimeProblem, nothing, one_of

Resolve: TypeAlias = Callable[[Part, Moment], Reading | None]
_DAY = timedelta(days=1)
_OF_CLOCKS = ("clocks", "number", "portion", "deadline", "to", "zone")
_MOST_HOUR = 24
_FINEST_FIRST = list(Grain)


def range_of(part: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """Reading of the period from `part` to its `to`; None if the two do not form one. A problem of either end is passed
    on."""
    left, right = without(part, "to", "deadline", "zone", "is_between"), without(part["to"], "deadline")
    if "zone" in right:
        return None
    if "clocks" in left or "clocks" in right or _are_hours(left, right):
        return clock_range(left, right, moment, resolve)
    return _day_range(left, right, moment, resolve)


def clock_range(left: Part, right: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """Reading of the period between two times of day, on the day given with either; ends after midnight if need be.
    None unless each side has one time."""
    first, last = _clock_of(left), _clock_of(right)
    if first is None or last is None:
        return None
    if not (first.exists and last.exists):
        return nothing(moment.wall, TimeProblem.NO_SUCH)
    if not ("portion" in left and last.half):
        first = _in_half_of(first, last)
    begin_part: Part = {**without(right, *_OF_CLOCKS), **without(left, *_OF_CLOCKS), "clocks": (first,)}
    portion = left.get("portion", right.get("portion"))
    if portion is not None:
        begin_part["portion"] = portion
    begin = resolve(begin_part, moment)
    if begin is None or begin.problem is not None:
        return begin
    start = begin.start
    ends = [datetime.combine(start.date() + days * _DAY, last.at(half)) for half in ("am", "pm") for days in (0, 1)]
    grain = min(first.grain, last.grain, key=_FINEST_FIRST.index)
    return Reading(Kind.INTERVAL, start, min(end for end in ends if end > start), grain, has_clock=True)


def _are_hours(left: Part, right: Part) -> bool:
    """Whether two bare numbers are hours, not days of a month."""
    if "number" not in left or "number" not in right or "month" in left or "month" in right:
        return False
    return max(left["number"], right["number"]) <= _MOST_HOUR


def _clock_of(part: Part) -> Clock | None:
    clocks = part.get("clocks")
    if clocks is not None:
        return clocks[0] if len(clocks) == 1 else None
    number = part.get("number")
    if number is None or number > _MOST_HOUR:
        return None
    return Clock(number, half="24" if number > 12 or number == 0 else "")


def _in_half_of(first: Clock, last: Clock) -> Clock:
    """Move `first` into the half of the day of `last`: 5 to 6pm, 11 to 1pm."""
    if first.half or last.half not in ("am", "pm"):
        return first
    same = replace(first, half=last.half)
    if same.at("") < last.at(""):
        return same
    return replace(first, half="am") if last.half == "pm" else first


def _day_range(left: Part, right: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    left, right = _with_day(left), _with_day(right)
    _lend_months(left, right)
    _lend_years(left, right)
    begin = resolve(left, moment) if left else None
    if begin is None or begin.problem is not None:
        return begin
    if begin.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    start = begin.at or begin.start
    later = moment if "length" in right else replace(moment, today=start.date())
    end = resolve(right, later)
    if end is None or end.problem is not None:
        return end
    if end.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    last = end.at if end.at is not None and right.get("edge") in ("begin", "middle") else end.end
    grain = Grain.DAY if end.grain == Grain.SECOND else end.grain
    return Reading(Kind.INTERVAL, start, last, grain, begin.has_clock) if last > start else None


def _with_day(part: Part) -> Part:
    """Copy with a bare number as a day of the month."""
    part = part.copy()
    if "number" in part:
        part["day"] = part.pop("number")
    return part


def _lend_months(left: Part, right: Part) -> None:
    if "month" in right and "month" not in left and "day" in left:
        left["month"] = right["month"]
    elif "month" in left and "month" not in right and "day" in left and "day" in right:
        is_same = right["day"] > left["day"]
        right["month"] = left["month"] if is_same else left["month"] % 12 + 1


def _lend_years(left: Part, right: Part) -> None:
    if "year" in right and "year" not in left and "month" in left:
        is_before = (left["month"], left.get("day", 0)) > (right.get("month", 0), right.get("day", 32))
        left["year"] = right["year"] - is_before
    elif "year" in left and "year" not in right and "month" in right:
        right["year"] = left["year"]


_ALLOWED = frozenset(
    listed("""
    repeats weekdays days weekday which year but nth day month is_numeric holiday edge clocks number portion zone to
    is_between span until first count lasts grain
    """)
)
_MINUTE = timedelta(minutes=1)
_DAY_SECONDS = 86_400
_SOME_DAY = date(2024, 1, 8)
_EDGE_DAYS = {"end": -1, "begin": 1, "middle": 15}


def recurrence_of(part: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """Reading of a recurrence; None if the parts are inconsistent or no rule can express them. Several weekdays with a
    time of day imply a recurrence. Raises NoSuchDay."""
    if not part.keys() <= _ALLOWED or part.get("which", 0) != 0:
        return None
    if "repeats" not in part and ("days" in part or part.keys().isdisjoint(("clocks", "portion"))):
        return None
    repeats = part.get("repeats", Repeats(Unit.WEEK))
    if repeats.unit in (Unit.DAY, Unit.WEEK):
        from_then_on = _from_a_date_on(part, moment)
        if from_then_on is None:
            return None
        part = from_then_on
    elif "year" in part:
        return None
    if repeats.unit is not None and "clocks" not in part:
        part = _with_clock_of_bounds(part)
    on_days = _on_days(repeats, part, moment)
    bounded = None if on_days is None else _bounded(on_days, part, moment, resolve)
    timed = None if bounded is None else _at_times(bounded, part, moment, resolve)
    if timed is None:
        return None
    clocks, portion = part.get("clocks", ()), part.get("portion")
    return Reading(
        Kind.RECURRENCE,
        moment.wall,
        moment.wall,
        clocks[0].grain if clocks else Grain.DAY,
        has_clock=bool(timed.times or timed.window),
        repeats=timed,
        default=time(HOURS_OF[portion][2]) if portion is not None and not clocks else None,
    )


def _from_a_date_on(part: Part, moment: Moment) -> Part | None:
    """`on 31 October every day`: use the date as the first day. None if there is another date."""
    date_keys = part.keys() & {"day", "month", "year", "is_numeric"}
    is_date = {"day", "month"} <= date_keys
    is_day = "span" in part and not part["span"].is_loose and _is_a_later_day(part["span"], moment)
    if not (is_date or is_day):
        return None if "year" in part else part
    if "first" in part or (is_date and is_day):
        return None
    if is_day:
        return {**without(part, "span"), "first": Part(span=part["span"])}
    if "weekdays" not in part:
        date_keys |= part.keys() & {"weekday"}
    return {**without(part, *date_keys), "first": without(part, *(part.keys() - date_keys))}


def _is_a_later_day(span: Span, moment: Moment) -> bool:
    return span.end - span.start == _DAY and span.start > moment.today


def _with_clock_of_bounds(part: Part) -> Part:
    """Copy of `part` with a time of day in its bounds moved to every day (`every day from Monday at 8`); `part` itself
    if the bounds have no time."""
    for bound, name in ((part.get("first"), "first"), (part.get("until"), "until")):
        if bound is not None and "clocks" in bound and bound.keys() - {"clocks", "portion"}:
            part = part.copy()
            part["clocks"] = bound["clocks"]
            part["first" if name == "first" else "until"] = without(bound, "clocks")
            return part
    return part


def _on_days(repeats: Repeats, part: Part, moment: Moment) -> Repeats | None:
    """`repeats` with the days in `part`; None if no rule can express them. Raises NoSuchDay."""
    if "span" in part and not part["span"].is_loose:
        within = _within(repeats, part["span"], moment)
        if within is None:
            return None
        repeats = within
    if "holiday" in part:
        return _yearly(repeats, part["holiday"], moment)
    if "nth" in part:
        return _nth(repeats, part)
    weekdays = _weekdays(part)
    days = part.get("days", (part["day"],) if "day" in part else ())
    months = (part["month"],) if "month" in part else ()
    if "edge" in part and repeats.unit is Unit.MONTH:
        days = (_EDGE_DAYS.get(part["edge"], 1),)
    if not all(1 <= day <= 31 or day == -1 for day in days):
        raise NoSuchDay
    if repeats.unit in (None, Unit.WEEK) and (days or months) and not (weekdays or repeats.weekdays):
        return None
    if repeats.unit is Unit.DAY and weekdays and repeats.step == 1:
        repeats = replace(repeats, unit=Unit.WEEK)
    return replace(repeats, weekdays=weekdays, days=days, months=months)


def _weekdays(part: Part) -> tuple[int, ...]:
    """Weekdays of the recurrence; empty for all. Raises NoSuchDay if all are excluded."""
    weekdays = part.get("weekdays", (part["weekday"],) if "weekday" in part else ())
    if "but" not in part:
        return weekdays
    left = tuple(day for day in weekdays or range(1, 8) if day not in part["but"])
    if not left:
        raise NoSuchDay
    return left


def _nth(repeats: Repeats, part: Part) -> Repeats | None:
    """`repeats` on the nth weekday or day of a month; None for other units."""
    number, what = part["nth"]
    if repeats.unit not in (Unit.MONTH, Unit.YEAR):
        return None
    months = (part["month"],) if "month" in part else ()
    repeats = replace(repeats, unit=Unit.YEAR if months else Unit.MONTH, months=months)
    if what.startswith("weekday ") and number in (-1, 1, 2, 3, 4, 5):
        return replace(repeats, weekdays=(int(what.split()[1]),), nth=number)
    if what == Grain.DAY and (0 < number <= 31 or number == -1):
        return replace(repeats, days=(number,))
    return None


def _yearly(repeats: Repeats, holiday: str, moment: Moment) -> Repeats | None:
    """`repeats` on a holiday with the same date every year; None for a moving one."""
    this = day_of_part(Part(holiday=holiday), moment.today)
    following = None if this is None else day_of_part(Part(holiday=holiday), this[0].end)
    if this is None or following is None:
        return None
    month, day = this[0].start.month, this[0].start.day
    is_fixed = (following[0].start.month, following[0].start.day) == (month, day)
    return replace(repeats, unit=Unit.YEAR, months=(month,), days=(day,)) if is_fixed else None


def _within(repeats: Repeats, span: Span, moment: Moment) -> Repeats | None:
    """`repeats` limited to a period (`every day next week`); None for a single day other than today."""
    if span.end - span.start == _DAY:
        return repeats if span.start == moment.today else None
    return replace(repeats, first=max(span.start, moment.today), until=midnight(span.end) - _MINUTE)


def _bounded(repeats: Repeats, part: Part, moment: Moment, resolve: Resolve) -> Repeats | None:
    """`repeats` with the start, end and count in `part`; None if a bound is not a usable time."""
    if "first" in part:
        first = _bound(part["first"], moment, resolve)
        if first is None:
            return None
        if repeats.unit is None and not part["first"].keys() - {"clocks", "portion"}:
            repeats = replace(repeats, window=(first.start.time(), time(23, 59)))
        else:
            repeats = replace(repeats, first=first.start.date())
    if "until" in part:
        until = _bound(part["until"], moment, resolve)
        if until is None:
            return None
        is_whole = until.at is not None or until.grain not in (Grain.MONTH, Grain.YEAR, Grain.QUARTER)
        last = until.end if is_whole or until.start <= moment.wall else until.start
        repeats = replace(repeats, until=until.start if until.has_clock else last - _MINUTE)
    if "lasts" in part:
        start = moment.now if repeats.first is None else midnight(repeats.first).replace(tzinfo=moment.now.tzinfo)
        repeats = replace(repeats, until=part["lasts"].after(start).replace(tzinfo=None, second=0, microsecond=0))
    return replace(repeats, count=part["count"]) if "count" in part else repeats


def _bound(part: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    found = resolve(part, moment)
    usable = found is not None and found.problem is None and found.kind not in (Kind.DURATION, Kind.RECURRENCE)
    return found if usable else None


def _at_times(repeats: Repeats, part: Part, moment: Moment, resolve: Resolve) -> Repeats | None:
    """`repeats` with the times of day or the window in `part`; None if they do not fit its unit."""
    # Not today, so that no hour is in the past.
    quiet = replace(moment, wall=midnight(_SOME_DAY), today=_SOME_DAY + _DAY)
    if "to" in part:
        if repeats.unit is not None or repeats.seconds >= _DAY_SECONDS:
            return None
        ends = Part(clocks=part["clocks"]) if "clocks" in part else without(part, *(part.keys() - {"number"}))
        stretch = clock_range(ends, part["to"], replace(quiet, today=_SOME_DAY), resolve)
        if stretch is None or stretch.problem is not None or stretch.end.date() != stretch.start.date():
            return None
        return replace(repeats, window=(stretch.start.time(), stretch.end.time()))
    clocks, portion = part.get("clocks", ()), part.get("portion")
    if not clocks:
        return repeats
    if repeats.unit is None:
        return None
    return replace(repeats, times=tuple(on_day(_SOME_DAY, clock, portion, quiet).time() for clock in clocks))


_OTHER_DAYS = frozenset(("year", "month", "day", "span", "holiday", "nth", "edge"))
_BOUNDS = frozenset(("until", "first", "count", "number", "is_between"))


def resolve(part: Part, moment: Moment) -> Reading | None:
    """Resolve `part` at `moment`; None if it is not a time. A date that does not exist gives a reading with a problem.
    Raises OverflowError or ValueError outside the calendar."""
    zone = part.get("zone")
    there = moment if zone is None else Moment.at(moment.now.astimezone(zone), day_first=moment.day_first)
    try:
        reading = _resolved(part, there)
    except NoSuchDay:
        return nothing(moment.wall, TimeProblem.NO_SUCH)
    return reading if reading is None or zone is None else _as_seen_from(reading, zone, moment)


def _as_seen_from(reading: Reading, zone: tzinfo, moment: Moment) -> Reading:
    """`reading`, with wall times in `zone`, converted to the zone of `moment`."""

    def here(wall: datetime) -> datetime:
        return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(moment.now.tzinfo).replace(tzinfo=None)

    at = None if reading.at is None else here(reading.at)
    choices = tuple(_as_seen_from(one, zone, moment) for one in reading.choices)
    return replace(reading, start=here(reading.start), end=here(reading.end), at=at, zone=zone, choices=choices)


def _resolved(part: Part, moment: Moment) -> Reading | None:
    clocks = part.get("clocks", ())
    if not all(clock.exists for clock in clocks):
        return nothing(moment.wall, TimeProblem.NO_SUCH)
    if "problem" in part:
        return nothing(moment.wall, part["problem"])
    if "either" in part:
        rest = without(part, "either", "zone")
        return one_of(resolve(both, moment) for one in part["either"] if (both := joined(rest, one)) is not None)
    if not part.keys().isdisjoint(("repeats", "weekdays", "days")):
        return recurrence_of(part, moment, _resolved)
    if "to" in part:
        return range_of(part, moment, _resolved)
    if "lasts" in part:
        return _lasting(part, moment)
    if not _BOUNDS.isdisjoint(part):
        return None
    if "at" in part:
        return None if part.keys() - {"grain", "at"} else instant(part["at"], part["grain"], has_clock=True)
    if len(clocks) > 1:
        return nothing(moment.wall, TimeProblem.SEVERAL)
    return _single(part, clocks[0] if clocks else None, moment)


def _single(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    """Reading of a single time or period, possibly a deadline; None if `part` is inconsistent."""
    if "length" in part:
        return _deadline_in(part, moment) if "deadline" in part else _from_now(part, clock, moment)
    found = day_of_part(part, moment.today, moment.wall.hour)
    reading = _without_day(part, clock, moment) if found is None else _resolving_on_days(part, *found, clock, moment)
    if reading is None or reading.problem is not None or "deadline" not in part:
        return reading
    return _deadline(reading, moment)


def _without_day(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    portion = part.get("portion")
    if clock is None:
        return None if portion is None else _portion(moment.today, portion, moment, is_open=True)
    return time_of_day(clock, moment) if portion is None else time_within(clock, portion, moment)


def _resolving_on_days(
    part: Part, span: Span, problem: TimeProblem | None, clock: Clock | None, moment: Moment
) -> Reading | None:
    portion = part.get("portion")
    if clock is not None:
        if "edge" in part and span.grain != Grain.DAY:
            return None
        day = _day_for_clock(part, span.start, clock, moment)
        reading = instant(on_day(day, clock, portion, moment), clock.grain, has_clock=True)
    elif portion is not None:
        reading = _portion(span.start, portion, moment, is_open=False)
    elif "edge" in part:
        reading = _edge(part["edge"], span, moment)
    else:
        kind = Kind.DAY if span.end - span.start == _DAY else Kind.INTERVAL
        reading = Reading(kind, midnight(span.start), midnight(span.end), span.grain)
    if problem is None:
        return reading
    return replace(reading, problem=problem, choices=_disagreeing(part, span.start, clock, moment))


def _disagreeing(part: Part, day: date, clock: Clock | None, moment: Moment) -> tuple[Reading, ...]:
    """Readings of a date, `day`, and a weekday that disagree: the date; the coming weekday nearest to it; and for a day
    of the month alone its next occurrence on that weekday, or the number as an hour."""
    weekday = part.get("weekday")
    if weekday is None or ("span" in part and "day" in part):
        return ()
    rest = without(part, "weekday", "which", "year", "month", "day", "span", "holiday", "is_numeric", "or_clock")
    days = [day, near_weekday(day, weekday, moment.today)]
    if "or_clock" not in part and part.keys().isdisjoint(("month", "span", "holiday", "length")):
        days += [found.start for found in (day_on_weekday(part["day"], weekday, moment.today),) if found is not None]
    readings = [_resolving_on_days(rest, one_day(one), None, clock, moment) for one in days if one >= moment.today]
    if "or_clock" in part and clock is None:
        readings.append(_single(without(part, "day", "or_clock"), part["or_clock"], moment))
    found = one_of(readings)
    return () if found is None else found.choices or (found,)


def _edge(edge: str, span: Span, moment: Moment) -> Reading:
    found = edge_day(edge, span, moment.today)
    if isinstance(found, datetime):
        return instant(found, Grain.SECOND, has_clock=True)
    stretch, day = found
    return Reading(Kind.INTERVAL, midnight(stretch.start), midnight(stretch.end), Grain.DAY, at=midnight(day))


def _day_for_clock(part: Part, day: date, clock: Clock, moment: Moment) -> date:
    """Today's weekday means today if the time of day is still to come."""
    is_plain = "weekday" in part and part.keys().isdisjoint(("which", "month", "day", "span", "nth"))
    if not is_plain or day - moment.today != 7 * _DAY:
        return day
    is_to_come = on_day(moment.today, clock, part.get("portion"), moment) > moment.wall
    return moment.today if is_to_come else day


def _from_now(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    """Reading of an offset from now, perhaps with a day or time: `in 3 hours`, `in 2 days at 5pm`; None if the parts
    are inconsistent."""
    length, grain = part["length"], part["grain"]
    if not _OTHER_DAYS.isdisjoint(part):
        return None
    wall = length.after(moment.now).replace(tzinfo=None)
    day = wall.date()
    if "weekday" in part:
        day += (part["weekday"] - day.isoweekday()) % 7 * _DAY
        if grain == Grain.DAY and day != wall.date():
            choices = _disagreeing(without(part, "length", "grain"), wall.date(), clock, moment)
            return replace(nothing(moment.wall, TimeProblem.AMBIGUOUS), choices=choices)
    if clock is not None or "portion" in part:
        if length.seconds:
            return None
        if clock is None:
            return _portion(day, part["portion"], moment, is_open=False)
        return instant(on_day(day, clock, part.get("portion"), moment), clock.grain, has_clock=True)
    if "weekday" in part:
        return Reading(Kind.DAY, midnight(day), midnight(day + _DAY), Grain.DAY)
    return replace(instant(wall, grain, has_clock=bool(length.seconds)), length=length)


def _deadline_in(part: Part, moment: Moment) -> Reading | None:
    """Reading of `within two weeks`: the period from now, with its event at the end; None with other parts."""
    if part.keys() - {"length", "grain", "deadline"}:
        return None
    wall = part["length"].after(moment.now).replace(tzinfo=None)
    return Reading(Kind.INTERVAL, moment.wall, wall, part["grain"], has_clock=True, length=part["length"], at=wall)


def _deadline(reading: Reading, moment: Moment) -> Reading:
    """Reading of `by Friday`: the period from now to the end of `reading`; the event is at its start, to leave time."""
    end = reading.end if reading.kind in (Kind.DAY, Kind.INTERVAL) else reading.start
    at = reading.at or reading.start
    return Reading(Kind.INTERVAL, moment.wall, end, reading.grain, reading.has_clock, at=at, default=reading.default)


def _lasting(part: Part, moment: Moment) -> Reading | None:
    """Reading of `for 20 minutes`; a period if it has a start. None for a bare duration with other parts."""
    lasts, rest = part["lasts"], without(part, "lasts", "grain", "is_bare")
    if not rest:
        end = lasts.after(moment.now).replace(tzinfo=None)
        return Reading(Kind.DURATION, moment.wall, end, part["grain"], length=lasts)
    if "is_bare" in part:
        return None
    if "number" in rest:
        rest["clocks"] = (Clock(rest.pop("number")),)
    begin = _resolved(rest, moment)
    if begin is None or begin.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    end = lasts.after(begin.start.replace(tzinfo=moment.now.tzinfo)).replace(tzinfo=None)
    return Reading(Kind.INTERVAL, begin.start, end, begin.grain, begin.has_clock, default=begin.default)


def _portion(day: date, portion: str, moment: Moment, *, is_open: bool) -> Reading:
    """Reading of a part of a day, with its usual hour as the default; `is_open`: of today, or of tomorrow if it is
    over."""
    first, last, usual = HOURS_OF[portion]
    start = midnight(day)
    if is_open and start + timedelta(hours=last) <= moment.wall:
        start += _DAY
    return Reading(
        Kind.INTERVAL, start + timedelta(hours=first), start + timedelta(hours=last), Grain.HOUR, default=time(usual)
    )
