"""From what a phrase says to what it means at a moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from services.times.day_resolving import NoSuchDay, day_of_part, edge_day
from services.times.lexicon import HOURS_OF
from services.times.moments import Moment, instant, midnight, on_day, time_of_day, time_within
from services.times.parts import Clock, Part, Span, without
from services.times.ranges import range_of
from services.times.readings import Grain, Kind, Reading, nothing
from services.times.repeating import recurrence_of
from services.times.repeats import Trouble

_DAY = timedelta(days=1)
_OTHER_DAYS = frozenset(("year", "month", "day", "span", "holiday", "nth", "edge"))
_BOUNDS = frozenset(("until", "first", "count", "number", "is_between"))


def resolve(part: Part, moment: Moment) -> Reading | None:
    """What `part` means at `moment`; None when it means no time. A date that does not exist is a reading with a
    trouble. Raises OverflowError or ValueError outside of the calendar."""
    zone = part.get("zone")
    there = moment if zone is None else Moment.at(moment.now.astimezone(zone), day_first=moment.day_first)
    try:
        reading = _resolved(part, there)
    except NoSuchDay:
        return nothing(moment.wall, Trouble.NO_SUCH)
    return reading if reading is None or zone is None else _as_seen_from(reading, zone, moment)


def _as_seen_from(reading: Reading, zone: tzinfo, moment: Moment) -> Reading:
    def here(wall: datetime) -> datetime:
        return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(moment.now.tzinfo).replace(tzinfo=None)

    at = None if reading.at is None else here(reading.at)
    return replace(reading, start=here(reading.start), end=here(reading.end), at=at, zone=zone)


def _resolved(part: Part, moment: Moment) -> Reading | None:
    clocks = part.get("clocks", ())
    if not all(clock.exists for clock in clocks):
        return nothing(moment.wall, Trouble.NO_SUCH)
    if "trouble" in part:
        return nothing(moment.wall, part["trouble"])
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
        return nothing(moment.wall, Trouble.SEVERAL)
    return _single(part, clocks[0] if clocks else None, moment)


def _single(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    """One moment or stretch, and whether it is only the latest."""
    if "length" in part:
        return _deadline_in(part, moment) if "deadline" in part else _from_now(part, clock, moment)
    found = day_of_part(part, moment.today, moment.wall.hour)
    reading = _without_day(part, clock, moment) if found is None else _on_days(part, *found, clock, moment)
    if reading is None or reading.trouble is not None or "deadline" not in part:
        return reading
    return _deadline(reading, moment)


def _without_day(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    portion = part.get("portion")
    if clock is None:
        return None if portion is None else _portion(moment.today, portion, moment, is_open=True)
    return time_of_day(clock, moment) if portion is None else time_within(clock, portion, moment)


def _on_days(part: Part, span: Span, trouble: Trouble | None, clock: Clock | None, moment: Moment) -> Reading | None:
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
    return reading if trouble is None else replace(reading, trouble=trouble)


def _edge(edge: str, span: Span, moment: Moment) -> Reading:
    found = edge_day(edge, span, moment.today)
    if isinstance(found, datetime):
        return instant(found, Grain.SECOND, has_clock=True)
    stretch, day = found
    return Reading(Kind.INTERVAL, midnight(stretch.start), midnight(stretch.end), Grain.DAY, at=midnight(day))


def _day_for_clock(part: Part, day: date, clock: Clock, moment: Moment) -> date:
    """A weekday that is today means today while its time of day is still to come."""
    is_plain = "weekday" in part and part.keys().isdisjoint(("which", "month", "day", "span", "nth"))
    if not is_plain or day - moment.today != 7 * _DAY:
        return day
    is_to_come = on_day(moment.today, clock, part.get("portion"), moment) > moment.wall
    return moment.today if is_to_come else day


def _from_now(part: Part, clock: Clock | None, moment: Moment) -> Reading | None:
    """`in 3 hours`; `in 2 days at 5pm`; `two months from today on Tuesday`."""
    length, grain = part["length"], part["grain"]
    if not _OTHER_DAYS.isdisjoint(part):
        return None
    wall = length.after(moment.now).replace(tzinfo=None)
    day = wall.date()
    if "weekday" in part:
        day += (part["weekday"] - day.isoweekday()) % 7 * _DAY
        if grain == Grain.DAY and day != wall.date():
            return nothing(moment.wall, Trouble.AMBIGUOUS)
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
    """`within two weeks`."""
    if part.keys() - {"length", "grain", "deadline"}:
        return None
    wall = part["length"].after(moment.now).replace(tzinfo=None)
    return Reading(Kind.INTERVAL, moment.wall, wall, part["grain"], has_clock=True, length=part["length"], at=wall)


def _deadline(reading: Reading, moment: Moment) -> Reading:
    """`by Friday`: from now until it is over; it is to happen when it begins, so that there is time left."""
    end = reading.end if reading.kind in (Kind.DAY, Kind.INTERVAL) else reading.start
    at = reading.at or reading.start
    return Reading(Kind.INTERVAL, moment.wall, end, reading.grain, reading.has_clock, at=at, default=reading.default)


def _lasting(part: Part, moment: Moment) -> Reading | None:
    """`for 20 minutes`; with a beginning it is a stretch of time."""
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
    """A part of a day; of today, or of tomorrow when it is over, where no day was said."""
    first, last, usual = HOURS_OF[portion]
    start = midnight(day)
    if is_open and start + timedelta(hours=last) <= moment.wall:
        start += _DAY
    return Reading(
        Kind.INTERVAL, start + timedelta(hours=first), start + timedelta(hours=last), Grain.HOUR, default=time(usual)
    )
