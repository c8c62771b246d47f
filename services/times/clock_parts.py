"""Times of day as parts of a phrase: lists of them, and bare numbers that are hours only by what stands around them."""

from __future__ import annotations

from services.times.clocks import clock_at
from services.times.durations import unit_at
from services.times.lexicon import MONTHS, PORTIONS, WEEKDAYS, WHICH
from services.times.parts import Clock, Part
from services.times.readings import Grain
from services.times.relative import ONE
from services.times.spots import Parts, Spot
from services.times.tokens import NUMBER
from services.times.zones import zone_at

RANGE = frozenset(("to", "-", "–", "—", "until", "untill", "till", "til", "through", "thru", "and", "but"))
"""Words before the other end of a range."""
_AT = frozenset(("at", "@", "around", "about", "for"))
_BEFORE_HOURS = _AT | {"by", "until", "till"}
_DAYS = frozenset(
    ("year", "month", "day", "weekday", "weekdays", "span", "nth", "holiday", "length", "edge", "repeats", "portion")
)
_BEHIND_HOURS = frozenset(("in", "at", "this", "tonight", "tomorrow", "on", "today"))
_MOST_LISTED = 6


def clock_parts(spot: Spot) -> Parts:
    """Times of day that can be nothing else, and the zone behind one."""
    line, so_far = spot.line, spot.so_far
    if spot.word in ("this", "same") and spot.ahead() == "time" and "clocks" not in so_far:
        unit = unit_at(line, spot.at + 3) if spot.ahead(2) == "next" else None
        if unit in ONE and not so_far:
            yield Part(length=ONE[unit], grain=Grain.DAY), spot.at + 4
        wall = spot.moment.wall
        yield Part(clocks=(Clock(wall.hour, wall.minute, wall.second, "24", Grain.MINUTE),)), spot.at + 2
    if "clocks" in so_far:
        zone = zone_at(line, spot.at) if "zone" not in so_far else None
        if zone is not None:
            yield Part(zone=zone[0]), zone[1]
        if spot.word == "midnight":
            yield Part(portion="early morning"), spot.at + 1
        return
    at = spot.at
    if spot.word == "t" and "day" in so_far and line.glued(at) and line.glued(at + 1):  # 2030-01-02T03:04
        at += 1
    if line.kinds[at] != NUMBER or "lasts" not in so_far or "repeats" in so_far:
        for clock, end, is_sure in clock_at(line, at, after_at=spot.link in _AT):
            if is_sure:
                yield from _listed(spot, clock, end)


def number_parts(spot: Spot) -> Parts:
    """A number that is an hour, a day of the month or the end of a range only by what stands around it."""
    line, at, so_far = spot.line, spot.at, spot.so_far
    if line.kinds[at] != NUMBER:
        return
    value, then = line.values[at], spot.ahead()
    is_day = 1 <= value <= 31
    if is_day and then == "of" and (spot.ahead(2) in WHICH or spot.ahead(2) in ("the", "every", "each")):
        yield Part(day=value), at + 1
    if "clocks" not in so_far and ("lasts" not in so_far or "repeats" in so_far):
        yield from _hours(spot)
    is_named = spot.link == "on" or spot.has_the or then in ("at", "@")
    if is_day and is_named and line.is_digits(at) and not so_far.keys() & {"day", "month"}:
        yield Part(day=value), at + 1
    in_range = spot.in_range or spot.link == "from" or "is_between" in so_far or then in RANGE
    if in_range and value < 60 and not so_far.keys() & {"number", "clocks", "day"}:
        yield Part(number=value), at + 1


def _hours(spot: Spot) -> Parts:
    """The number as an hour."""
    line, at = spot.line, spot.at
    is_dated = not _DAYS.isdisjoint(spot.so_far)
    then = spot.ahead()
    is_hour = then == "ish" or (then == "-" and spot.ahead(2) == "ish") or then in _BEHIND_HOURS or then in PORTIONS
    is_hour = is_hour or then in WEEKDAYS
    if spot.link == "in" or not (spot.link in _BEFORE_HOURS or is_dated or is_hour or not line.is_digits(at)):
        return
    for clock, end, is_sure in clock_at(line, at, after_at=spot.link in ("at", "@") or is_dated):
        is_spelled = clock.minute >= 10 and not line.is_digits(at)
        is_loose = not (spot.link or is_hour or is_spelled or line.is_digits(at))
        if is_loose and end < line.size:  # the second one
            continue
        if not is_sure and line.words[end] not in MONTHS and (spot.link or spot.so_far or is_hour or is_spelled):
            yield from _listed(spot, clock, end)


def _listed(spot: Spot, clock: Clock, end: int) -> Parts:
    """The time of day, and what else is listed with it: `8am and 8pm`."""
    line, clocks, after = spot.line, [clock], end
    while line.words[after] in ("and", ",", "&") and len(clocks) < _MOST_LISTED:
        start = after + 1
        while line.words[start] in ("and", "at"):
            start += 1
        more = [found for found in clock_at(line, start, after_at=True) if found[2] or clock.grain == Grain.HOUR]
        if not more or line.words[more[0][1]] in ("minutes", "days", "weeks", "/"):
            break
        clocks.append(more[0][0])
        after = more[0][1]
    if len(clocks) > 1:
        half = next((one.half for one in clocks if one.half in ("am", "pm")), "")
        shared = tuple(Clock(one.hour, one.minute, one.second, one.half or half, one.grain) for one in clocks)
        yield Part(clocks=shared), after
    yield Part(clocks=(clock,)), end
