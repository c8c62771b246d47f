"""Wall times and instants, and what happens to both where clocks are moved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
_NEAR = timedelta(hours=26)
"""No zone has ever moved its clocks by more than a day."""
_NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One moment at which a rule holds."""

    wall: datetime
    """Naive: what the clock on the wall is meant to show. `fold` is 1 the second time that it shows it."""
    at: datetime
    """The instant, aware, in UTC, in whole milliseconds."""


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of the naive `wall` in `zone`, in UTC. In a gap the offset from before it counts; of a time that is
    shown twice it is the first, or the second where `wall.fold` is 1. Raises OverflowError at the calendar's end."""
    return whole_ms(wall.replace(tzinfo=zone).astimezone(UTC))


def whole_ms(at: datetime) -> datetime:
    """`at` without what is smaller than a millisecond: the store keeps no more."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def shift_near(zone: ZoneInfo, at: datetime) -> timedelta:
    """By how much the clocks of `zone` move so near to `at` that its walls are affected; nothing nearly always."""
    shift = _shift(zone, at, _NEAR)
    return shift and _shift(zone, at, 2 * shift + SECOND)


def transition(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The instant between the two at which the clocks of `zone` move, to the second."""
    offset = _offset(zone, after)
    while after - before > SECOND:
        middle = before + (after - before) // 2
        before, after = (before, middle) if _offset(zone, middle) == offset else (middle, after)
    return after


def _shift(zone: ZoneInfo, at: datetime, near: timedelta) -> timedelta:
    try:
        offsets = [_offset(zone, one) for one in (at - near, at, at + near)]
    except OverflowError:
        return _NOTHING
    return max(offsets) - min(offsets)


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or _NOTHING
