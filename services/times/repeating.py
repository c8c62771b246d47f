"""What comes again and again, from what a phrase says."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, time, timedelta

from services.recurrence import Unit
from services.times.day_resolving import NoSuchDay, day_of_part
from services.times.lexicon import HOURS_OF
from services.times.moments import Moment, midnight, on_day
from services.times.parts import Part, Span, without
from services.times.ranges import Resolve, clock_range
from services.times.readings import Grain, Kind, Reading
from services.times.repeats import Repeats

_ALLOWED = frozenset(
    (
        *(
            "repeats",
            "weekdays",
            "days",
            "weekday",
            "which",
            "year",
            "but",
            "nth",
            "day",
            "month",
            "is_numeric",
            "holiday",
            "edge",
        ),
        *(
            "clocks",
            "number",
            "portion",
            "zone",
            "to",
            "is_between",
            "span",
            "until",
            "first",
            "count",
            "lasts",
            "grain",
        ),
    )
)
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_DAY_SECONDS = 86_400
_SOME_DAY = date(2024, 1, 8)
_EDGE_DAYS = {"end": -1, "begin": 1, "middle": 15}


def recurrence_of(part: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """The reading of what repeats; None where the parts make no sense together. Several weekdays with a time of day
    repeat, whether it was said or not. Raises NoSuchDay."""
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
    """`on 31 October every day`: the date is the first of the days. None where another one is said as well."""
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
    """`every day from Monday at 8`: the time of day is that of every day."""
    for bound, name in ((part.get("first"), "first"), (part.get("until"), "until")):
        if bound is not None and "clocks" in bound and bound.keys() - {"clocks", "portion"}:
            part = part.copy()
            part["clocks"] = bound["clocks"]
            part["first" if name == "first" else "until"] = without(bound, "clocks")
            return part
    return part


def _on_days(repeats: Repeats, part: Part, moment: Moment) -> Repeats | None:
    """On which days."""
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
    """On which weekdays; none where it does not matter. Raises NoSuchDay when all of them are excepted."""
    weekdays = part.get("weekdays", (part["weekday"],) if "weekday" in part else ())
    if "but" not in part:
        return weekdays
    left = tuple(day for day in weekdays or range(1, 8) if day not in part["but"])
    if not left:
        raise NoSuchDay
    return left


def _nth(repeats: Repeats, part: Part) -> Repeats | None:
    """The how-manieth weekday or day of a month."""
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
    """A holiday that has the same date every year."""
    this = day_of_part(Part(holiday=holiday), moment.today)
    following = None if this is None else day_of_part(Part(holiday=holiday), this[0].end)
    if this is None or following is None:
        return None
    month, day = this[0].start.month, this[0].start.day
    is_fixed = (following[0].start.month, following[0].start.day) == (month, day)
    return replace(repeats, unit=Unit.YEAR, months=(month,), days=(day,)) if is_fixed else None


def _within(repeats: Repeats, span: Span, moment: Moment) -> Repeats | None:
    """`every day next week`."""
    if span.end - span.start == _DAY:
        return repeats if span.start == moment.today else None
    return replace(repeats, first=max(span.start, moment.today), until=midnight(span.end) - _MINUTE)


def _bounded(repeats: Repeats, part: Part, moment: Moment, resolve: Resolve) -> Repeats | None:
    """From when, until when, how often in all."""
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
    usable = found is not None and found.trouble is None and found.kind not in (Kind.DURATION, Kind.RECURRENCE)
    return found if usable else None


def _at_times(repeats: Repeats, part: Part, moment: Moment, resolve: Resolve) -> Repeats | None:
    """At which times of day, or between which of them."""
    # On a day that is not today there is nothing that an hour could have passed.
    quiet = replace(moment, wall=midnight(_SOME_DAY), today=_SOME_DAY + _DAY)
    if "to" in part:
        if repeats.unit is not None or repeats.seconds >= _DAY_SECONDS:
            return None
        ends = Part(clocks=part["clocks"]) if "clocks" in part else without(part, *(part.keys() - {"number"}))
        stretch = clock_range(ends, part["to"], replace(quiet, today=_SOME_DAY), resolve)
        if stretch is None or stretch.trouble is not None or stretch.end.date() != stretch.start.date():
            return None
        return replace(repeats, window=(stretch.start.time(), stretch.end.time()))
    clocks, portion = part.get("clocks", ()), part.get("portion")
    if not clocks:
        return repeats
    if repeats.unit is None:
        return None
    return replace(repeats, times=tuple(on_day(_SOME_DAY, clock, portion, quiet).time() for clock in clocks))
