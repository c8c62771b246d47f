"""What the parts of a phrase say, before they are put together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from typing import TypedDict

from services.times.readings import Grain, Length
from services.times.repeats import Repeats, Trouble


@dataclass(frozen=True, slots=True)
class Span:
    """Whole days, `end` not included."""

    start: date
    end: date
    grain: Grain
    is_loose: bool = False
    """It was only named as "the month": the next one will do where this one is over."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as it was said."""

    hour: int
    minute: int = 0
    second: int = 0
    half: str = ""
    """`am` or `pm`; empty: not said; `24`: the hour can only be meant as it is."""
    grain: Grain = Grain.HOUR

    @property
    def exists(self) -> bool:
        """Whether a clock can show it."""
        whole = self.hour < 24 or (self.hour == 24 and self.minute == 0)
        return whole and self.minute < 60 and self.second < 60 and not (self.half in ("am", "pm") and self.hour == 0)

    def at(self, half: str) -> time:
        """As a time of day in that half, where it leaves the choice."""
        half = self.half or half
        hour = self.hour
        if half in ("am", "pm") and hour <= 12:
            hour = hour % 12 + (12 if half == "pm" else 0)
        return time(hour % 24, self.minute, self.second)


class Part(TypedDict, total=False):
    """Some of what a phrase says; what it does not say has no key. Parts that say different things can be joined."""

    year: int
    month: int
    day: int
    is_numeric: bool
    """Month and day were written as numbers, and either could be the other."""
    weekday: int
    which: int
    """Of the weekday: -1 the last one, 0 this one, 1 that of next week, 2 the one after the coming one."""
    span: Span
    nth: tuple[int, str]
    """The how-manieth of a weekday (`weekday`), or of a unit, within the rest; from the end where negative."""
    edge: str
    """`begin`, `middle` or `end` of the rest."""
    holiday: str
    number: int
    """A bare number: an hour or a day, as the other end of a range will show."""
    clocks: tuple[Clock, ...]
    portion: str
    zone: tzinfo
    length: Length
    """So long from now."""
    grain: Grain
    """Of `length`."""
    lasts: Length
    """How long it is to last."""
    is_bare: bool
    """`lasts` was said without "for": it is all of the phrase, or none of it."""
    at: datetime
    """A wall time that is complete already."""
    repeats: Repeats
    weekdays: tuple[int, ...]
    """Several weekdays, or one in the plural."""
    but: tuple[int, ...]
    """Weekdays on which it does not repeat."""
    days: tuple[int, ...]
    """Several days of the month."""
    is_between: bool
    """It began with "between"."""
    to: Part
    """The other end of a range."""
    until: Part
    first: Part
    count: int
    trouble: Trouble
    deadline: bool
    """It was said as the latest moment (`by Friday`)."""


def without(part: Part, *names: str) -> Part:
    """What `part` says beside `names`."""
    left = part.copy()
    for name in names:
        left.pop(name, None)  # type: ignore[misc]  # no key is required
    return left


def joined(left: Part, right: Part) -> Part | None:
    """Both together, or None where both say the same thing in different ways."""
    if not left:
        return right
    for name in left.keys() & right.keys():
        if left[name] != right[name]:  # type: ignore[literal-required]  # it is a key of both
            return None
    return {**left, **right}
