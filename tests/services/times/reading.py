"""What tests ask of a reader: it is Wednesday, 4 March 2026, half past five in the afternoon in Berlin."""

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
    """Its rule; nine o'clock where no time of day is said."""
    return read(text, now).rule(now, time(9))


def wall(text: str, now: datetime = NOW) -> str:
    """When something that is to happen then happens."""
    when = rule(text, now).when
    assert isinstance(when, Once), text
    return when.wall.strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def cron(text: str, now: datetime = NOW) -> str:
    """The cron expression of something that repeats, and how often it does."""
    when = rule(text, now).when
    assert isinstance(when, Calendar), text
    return when.cron if when.step == 1 else f"{when.cron} / {when.step} {when.unit} from {when.first}"


def seconds(text: str) -> int:
    """After how many seconds something repeats."""
    when = rule(text).when
    assert isinstance(when, Every), text
    return when.seconds


def stretch(text: str, now: datetime = NOW) -> str:
    """From when to when."""
    reading = read(text, now)
    return f"{reading.start:%m-%d %H:%M} to {reading.end:%m-%d %H:%M}"


def trouble(text: str, now: datetime = NOW) -> TimeProblem | None:
    """Why there is no rule."""
    try:
        rule(text, now)
    except UnclearTime as unclear:
        return unclear.problem
    return None
