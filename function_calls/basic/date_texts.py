"""Dates and times as texts: parsing and formatting. The texts sort in order of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Literal, TypeVar

from function_calls.basic.codes import RunCode, RunError
from services.patterns import lazy_pattern

Form = Literal["date", "time", "both"]
Reckoned = TypeVar("Reckoned", datetime, timedelta)
HINT = "write dates as 2026-11-20 or 2026-11-20 22:15"
_NO_DAY = datetime(1900, 1, 1)  # noqa: DTZ001 - a wall time, as all moments
_LONGEST = 40
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,]\d{1,9})?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ZONE = r"(?: ?(?P<zone>[Zz]|[+-]\d\d:?\d\d))?"
_BEHIND = rf"(?:[ T]+{_CLOCK}{_ZONE})?"
_YEAR_FIRST = lazy_pattern(rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}}){_BEHIND}")
_YEAR_LAST = lazy_pattern(rf"(?P<one>\d{{1,2}})(?P<mark>[-/.])(?P<two>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}){_BEHIND}")
_CHINESE = lazy_pattern(rf"(?P<year>\d{{4}})年(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})[日号](?:\s*{_CLOCK})?")
_TIME = lazy_pattern(_CLOCK)
_PLAIN = lazy_pattern(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?")


@dataclass(frozen=True, slots=True)
class Moment:
    """A wall-clock time in the chat's time zone."""

    at: datetime
    """Naive. For a time without a date, an arbitrary day."""
    form: Form
    """Which parts of `at` are meaningful."""

    def __str__(self) -> str:
        if self.form == "date":
            return f"{self.at:%Y-%m-%d}".rjust(10, "0")
        if self.form == "time":
            return f"{self.at:%H:%M:%S}"
        return f"{self.at:%Y-%m-%d %H:%M:%S}".rjust(19, "0")

    def moved(self, by: timedelta) -> Moment:
        """The moment moved by `by` in wall-clock time; a date moved by part of a day gets a time. Raises RunError
        (BAD_VALUE) beyond the years 1 to 9999."""
        form: Form = "both" if self.form == "date" and by.seconds else self.form
        return Moment(within_calendar(lambda: self.at + by), form)


def read(text: str, zone: Callable[[], tzinfo | None]) -> Moment | None:
    """Parse a date or time: year first, or day and month first if only one reading is possible (31/12/2026,
    31.12.2026). A time with `Z` or an offset is converted to the zone. None for other texts."""
    if not 4 <= len(text) <= _LONGEST:
        return None
    text = text.strip()
    for pattern in (_YEAR_FIRST, _CHINESE, _YEAR_LAST, _TIME):
        found = pattern.fullmatch(text)
        if found:
            try:
                return _moment(found, zone)
            except (ValueError, OverflowError):  # for example month 13 or February 30
                return None
    return None


def read_plain(text: str) -> Moment | None:
    """Like `read`, but only for dates in the form 2026-11-20, optionally with a time in the form 22:15 or 22:15:30
    after a space or `T`, as NOW and TODAY give; None for other texts."""
    if not 10 <= len(text) <= 19 or text[4] != "-" or not _PLAIN.fullmatch(text):
        return None
    return read(text, lambda: None)


def within_calendar(reckon: Callable[[], Reckoned]) -> Reckoned:
    """The result of `reckon`. Raises RunError (BAD_VALUE) if it is beyond the years 1 to 9999."""
    try:
        return reckon()
    except (OverflowError, ValueError):
        raise RunError(RunCode.BAD_VALUE, "the date is outside the years 1 to 9999") from None


def days_later(moment: Moment, days: float) -> Moment:
    """The moment `days` later; fractions are rounded to seconds. Raises RunError (BAD_VALUE) outside the years 1 to
    9999."""
    return moment.moved(within_calendar(lambda: timedelta(seconds=round(days * 86_400))))


def _moment(found: re.Match[str], zone: Callable[[], tzinfo | None]) -> Moment | None:
    parts = found.groupdict()
    clock = _clock(parts)
    if parts.get("year") is None:
        return Moment(_NO_DAY + clock, "time") if clock is not None else None
    day = _day(parts)
    if day is None or clock is None:
        return Moment(day, "date") if day is not None and parts.get("hour") is None else None
    at = day + clock
    return Moment(_in_zone(at, parts["zone"], zone()) if parts.get("zone") else at, "both")


def _day(parts: dict[str, str | None]) -> datetime | None:
    year = int(parts["year"] or 0)
    if "one" not in parts:
        return datetime(year, int(parts["month"] or 0), int(parts["day"] or 0))  # noqa: DTZ001 - a wall time
    one, two = int(parts["one"] or 0), int(parts["two"] or 0)
    if parts["mark"] == "." or one > 12 or one == two:
        return datetime(year, two, one)  # noqa: DTZ001 - a wall time
    return datetime(year, one, two) if two > 12 else None  # noqa: DTZ001 - a wall time


def _clock(parts: dict[str, str | None]) -> timedelta | None:
    """Time since midnight; None if the text has no valid time."""
    if parts.get("hour") is None:
        return None
    hour, minute, second = int(parts["hour"] or 0), int(parts["minute"] or 0), int(parts["second"] or 0)
    half = parts.get("half")
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _in_zone(at: datetime, written: str | None, zone: tzinfo | None) -> datetime:
    offset = timedelta()
    if written and written not in "Zz":
        digits = written[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        offset = -offset if written[0] == "-" else offset
    return at.replace(tzinfo=timezone(offset)).astimezone(zone).replace(tzinfo=None)
