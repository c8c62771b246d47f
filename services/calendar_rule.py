"""A rule by the calendar: a cron expression, in every so many days, weeks, months or years, and what it means where the
clocks of a zone are moved.

A wall time that the clocks skip is meant with the offset from before the gap, one that they show twice is the first
(RFC 5545, 3.3.5): a time of the day holds once on every day. An expression that counts through the day (`0 * * * *`)
holds whenever the clock shows such a time, in an hour that comes twice both times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from services.cron_walls import CronWalls
from services.instants import SECOND, Occurrence, instant_of, shift_near, transition

FARTHEST_YEARS = 100
"""Nobody looks further ahead."""


class Unit(StrEnum):
    """What a calendar is counted in."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Calendar:
    """The wall times that a cron expression names (five fields; `L`, `1#2` and `5L` as cronsim reads them)."""

    cron: str
    step: int = 1
    """Only every so many `unit`s, counted from the one that holds `first`."""
    unit: Unit = Unit.DAY
    first: date | None = None
    """Not before this day. Required where `step` is above 1. Weeks begin on Monday."""


def next_by_calendar(rule: Calendar, zone: ZoneInfo, after: datetime) -> Occurrence | None:
    """The first moment of `rule` after the instant `after`; None when there is none for as long as anybody looks.
    Raises BadCron, and OverflowError at the calendar's end."""
    walls = CronWalls(rule.cron)
    cursor = after.astimezone(zone).replace(tzinfo=None, fold=0)
    shift = shift_near(zone, after)
    if shift:
        # Here walls and instants do not go in the same order: all that are near are looked at together.
        end = cursor + 2 * shift
        later = [one for one in _between(rule, walls, zone, cursor - 2 * shift, end, shift) if one.at > after]
        if later:
            return min(later, key=lambda one: one.at)
        cursor = end
    for wall in _walls(rule, walls, cursor):
        at = instant_of(wall, zone)
        shift = shift_near(zone, at)
        if not shift:
            return Occurrence(wall, at)
        near = _between(rule, walls, zone, wall - SECOND, wall + 2 * shift, shift)
        later = [one for one in near if one.at > after]
        if later:
            return min(later, key=lambda one: one.at)
    return None


def _between(
    rule: Calendar, walls: CronWalls, zone: ZoneInfo, start: datetime, end: datetime, shift: timedelta
) -> Iterator[Occurrence]:
    """What `rule` means by the walls after `start` and up to `end`, where the clocks move by `shift`."""
    shown: list[Occurrence] = []
    skipped: list[tuple[datetime, datetime, datetime]] = []
    for wall in _walls(rule, walls, start):
        if wall > end + 2 * shift:
            break
        first, second = instant_of(wall, zone), instant_of(wall.replace(fold=1), zone)
        if first > second:
            skipped.append((wall, first, second))
            continue
        shown.append(Occurrence(wall, first))
        if second > first and walls.goes_round:
            shown.append(Occurrence(wall.replace(fold=1), second))
    yield from (one for one in shown if one.wall <= end)
    for wall, late, early in skipped:
        gap = late - early
        began = transition(zone, early, late)
        # What a gap swallows is made up for after it, unless the rule holds in that stretch anyway.
        if wall <= end and not any(began <= one.at < began + gap for one in shown):
            yield Occurrence(wall, late)


def _walls(rule: Calendar, walls: CronWalls, after: datetime) -> Iterator[datetime]:
    """The wall times that `rule` names after the naive `after`."""
    cursor = after
    if rule.first is not None and cursor.date() < rule.first:
        cursor = datetime.combine(rule.first, time()) - SECOND
    last_year = cursor.year + FARTHEST_YEARS
    while (wall := walls.after(cursor)) is not None and wall.year <= last_year:
        begins = _period(rule, wall.date())
        if begins is None:
            return
        if begins <= wall.date():
            yield wall
            cursor = wall
        else:
            cursor = datetime.combine(begins, time()) - SECOND


def _period(rule: Calendar, day: date) -> date | None:
    """The first day from `day` on that the step allows; None where the calendar ends before it."""
    if rule.step == 1 or rule.first is None:
        return day
    index = _index(rule.unit, day)
    rest = (index - _index(rule.unit, rule.first)) % rule.step
    if not rest:
        return day
    try:
        return _beginning(rule.unit, index + rule.step - rest)
    except (OverflowError, ValueError):
        return None


def _index(unit: Unit, day: date) -> int:
    """The number of the day, week, month or year that `day` is in."""
    match unit:
        case Unit.DAY:
            return day.toordinal()
        case Unit.WEEK:
            return (day.toordinal() - 1) // 7  # the first day of all was a Monday
        case Unit.MONTH:
            return day.year * 12 + day.month - 1
        case Unit.YEAR:
            return day.year


def _beginning(unit: Unit, index: int) -> date:
    match unit:
        case Unit.DAY:
            return date.fromordinal(index)
        case Unit.WEEK:
            return date.fromordinal(index * 7 + 1)
        case Unit.MONTH:
            return date(index // 12, index % 12 + 1, 1)
        case Unit.YEAR:
            return date(index, 1, 1)
