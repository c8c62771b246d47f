"""Parses times at a fixed time: Wednesday, 4 March 2026, 17:30 in Berlin."""

from __future__ import annotations

from datetime import datetime, time
from zoneinfo import ZoneInfo

from services.times import Reading, TimeProblem, Times, UnclearTime
from services.times.recurrence import Calendar, Every, Once, Rule

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 4, 17, 30, tzinfo=BERLIN)
TIMES = Times()


def read(text: str, now: datetime = NOW) -> Reading:
    """The reading of a text that is a time."""
    reading = TIMES.read(text, now)
    assert reading is not None, text
    return reading


def rule(text: str, now: datetime = NOW) -> Rule:
    """Its rule; 9:00 by default."""
    return read(text, now).rule(now, time(9))


def wall(text: str, now: datetime = NOW) -> str:
    """Local time of a one-time event."""
    when = rule(text, now).when
    assert isinstance(when, Once), text
    return when.wall.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def cron(text: str, now: datetime = NOW) -> str:
    """Cron expression and step of a recurrence."""
    when = rule(text, now).when
    assert isinstance(when, Calendar), text
    return when.cron if when.step == 1 else f"{when.cron} / {when.step} {when.unit} from {when.first}"


def seconds(text: str) -> int:
    """Interval of a recurrence in seconds."""
    when = rule(text).when
    assert isinstance(when, Every), text
    return when.seconds


def stretch(text: str, now: datetime = NOW) -> str:
    """Start and end of an interval."""
    reading = read(text, now)
    return f"{reading.start:%m-%d %H:%M} to {reading.end:%m-%d %H:%M}"


def trouble(text: str, now: datetime = NOW) -> TimeProblem | None:
    """The problem, if there is no rule."""
    try:
        rule(text, now)
    except UnclearTime as unclear:
        return unclear.problem
    return None
