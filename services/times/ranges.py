"""From one end to the other: each lends what the other leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from services.times.moments import Moment
from services.times.parts import Clock, Part, without
from services.times.readings import Grain, Kind, Reading, nothing
from services.times.repeats import Trouble

Resolve: TypeAlias = Callable[[Part, Moment], Reading | None]
_DAY = timedelta(days=1)
_OF_CLOCKS = ("clocks", "number", "portion", "deadline", "to", "zone")
_MOST_HOUR = 24
_FINEST_FIRST = list(Grain)


def range_of(part: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """The stretch of time from `part` to its other end."""
    left, right = without(part, "to", "deadline", "zone", "is_between"), without(part["to"], "deadline")
    if "zone" in right:
        return None
    if "clocks" in left or "clocks" in right or _are_hours(left, right):
        return clock_range(left, right, moment, resolve)
    return _day_range(left, right, moment, resolve)


def clock_range(left: Part, right: Part, moment: Moment, resolve: Resolve) -> Reading | None:
    """From one time of day to another, on the day that either names."""
    first, last = _clock_of(left), _clock_of(right)
    if first is None or last is None:
        return None
    if not (first.exists and last.exists):
        return nothing(moment.wall, Trouble.NO_SUCH)
    if not ("portion" in left and last.half):
        first = _in_half_of(first, last)
    begin_part: Part = {**without(right, *_OF_CLOCKS), **without(left, *_OF_CLOCKS), "clocks": (first,)}
    portion = left.get("portion", right.get("portion"))
    if portion is not None:
        begin_part["portion"] = portion
    begin = resolve(begin_part, moment)
    if begin is None or begin.trouble is not None:
        return begin
    start = begin.start
    ends = [datetime.combine(start.date() + days * _DAY, last.at(half)) for half in ("am", "pm") for days in (0, 1)]
    grain = min(first.grain, last.grain, key=_FINEST_FIRST.index)
    return Reading(Kind.INTERVAL, start, min(end for end in ends if end > start), grain, has_clock=True)


def _are_hours(left: Part, right: Part) -> bool:
    """Whether two bare numbers are hours: no month says that they are days."""
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
    """`first` in the half of the day that `last` names: 5 to 6pm, 11 to 1pm."""
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
    if begin is None or begin.trouble is not None:
        return begin
    if begin.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    start = begin.at or begin.start
    later = moment if "length" in right else replace(moment, today=start.date())
    end = resolve(right, later)
    if end is None or end.trouble is not None:
        return end
    if end.kind in (Kind.RECURRENCE, Kind.DURATION):
        return None
    last = end.at if end.at is not None and right.get("edge") in ("begin", "middle") else end.end
    grain = Grain.DAY if end.grain == Grain.SECOND else end.grain
    return Reading(Kind.INTERVAL, start, last, grain, begin.has_clock) if last > start else None


def _with_day(part: Part) -> Part:
    """A copy in which a bare number is a day of the month."""
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
