"""Conversion of a requested time, in words or as a model's fields, to one recurrence rule.

Words take precedence if they parse completely, since parsing is deterministic; else the model's dates apply. Missing
details are taken from the model: the time of day, the recurrence, if the words name only its time of day, and its end.
Words that are ambiguous, or name another single time than the dates, are not decided here: the error has the choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

from services.times import Kind, Reading, TimeProblem, Times, UnclearTime
from services.times.recurrence import Calendar, Every, Once, Rule, Unit

_LATEST_SHARED_DAY = 28
"""The last day that every month has."""
_MINUTE_SECONDS = 60


class Repeat(StrEnum):
    """Kind of recurrence in a model's fields."""

    NONE = "none"
    DAILY = "daily"
    WEEKDAYS = "weekdays"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"
    INTERVAL = "interval"
    CRON = "cron"


@dataclass(frozen=True, slots=True)
class RequestedTime:
    """Time as requested in words, in a model's fields, or both. Empty fields are unspecified."""

    words: str = ""
    at: str = ""
    """ISO date, time of day, or both; a wall time unless it has an offset."""
    repeat: Repeat = Repeat.NONE
    every: int = 1
    """Interval in days, weeks, months or years; in minutes for INTERVAL."""
    cron: str = ""
    until: str = ""
    """ISO date, with an optional time of day."""
    count: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is specified."""
        return not (self.words.strip() or self.has_dates)

    @property
    def has_dates(self) -> bool:
        """Whether anything is specified in addition to the words."""
        return bool(self.at.strip() or self.cron.strip() or self.repeat is not Repeat.NONE)


def requested_time(
    words: str | None,
    at: str | None,
    repeat: Repeat | None,
    every: int | None,
    cron: str | None,
    until: str | None,
    count: int | None = None,
) -> RequestedTime:
    """Build a RequestedTime from optional arguments; None means unspecified (`every`: 1)."""
    return RequestedTime(words or "", at or "", repeat or Repeat.NONE, every or 1, cron or "", until or "", count)


@dataclass(frozen=True, slots=True)
class ParsedTime:
    """Recurrence rule of a requested time, with its zone and the assumed time of day."""

    rule: Rule
    zone: str
    """IANA name of the zone of its wall times."""
    assumed: time | None = None
    """Default time of day that was used because none was specified."""


class TimeNotUnderstood(ValueError):
    """`what` is not a usable time. `problem` is None if it is not a time at all."""

    def __init__(
        self,
        what: str,
        problem: TimeProblem | None = None,
        at: datetime | None = None,
        choices: tuple[Rule, ...] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.problem = problem
        self.at = at
        """For a time in the past: the aware time that was understood."""
        self.choices = choices
        """For an ambiguous time: its possible rules, most likely first; empty if they are unknown."""


def to_rule(requested: RequestedTime, times: Times, now: datetime, default_time: time) -> ParsedTime:
    """Recurrence rule for `requested` in the zone of `now` (aware, with a ZoneInfo). The rule is not yet checked.
    Raises TimeNotUnderstood, also for a single time that has passed."""
    words = requested.words.strip()
    reading = times.read(words, now) if words else None
    if reading is None:
        # The words may be an ISO date.
        return _from_dates(requested if requested.has_dates else replace(requested, at=words), now, default_time)
    try:
        rule = reading.rule(now, default_time)
    except UnclearTime as unclear:
        choices = _rules(unclear.choices, now, default_time)
        is_open = unclear.problem in (TimeProblem.AMBIGUOUS, TimeProblem.VAGUE, TimeProblem.SEVERAL)
        if is_open and not choices and requested.has_dates:
            return _from_dates(requested, now, default_time)
        at = _past_moment(reading, now, default_time)
        raise TimeNotUnderstood(words, unclear.problem, at, choices) from None
    if isinstance(rule.when, Once) and reading.length is None and _names_one_time(requested):
        dated = _dated(requested, now, default_time)
        if dated is not None and _adds_clock(dated, reading):
            return dated
        if (
            dated is not None
            and reading.kind is Kind.TIME_OF_DAY
            and isinstance(dated.rule.when, Once)
            and dated.assumed
        ):
            return replace(
                dated, rule=Rule(Once(datetime.combine(dated.rule.when.wall, rule.when.wall.time()))), assumed=None
            )
        if dated is not None and not _agrees(dated, rule.when, reading):
            raise TimeNotUnderstood(words, TimeProblem.AMBIGUOUS, choices=(rule, dated.rule))
    zone = _zone_name(reading.rule_zone(now), str(now.tzinfo))
    rule = _completed(rule, requested, now, default_time)
    return ParsedTime(rule, zone, _assumed(rule) if _has_no_clock(reading) else None)


def _rules(choices: Sequence[Reading], now: datetime, default_time: time) -> tuple[Rule, ...]:
    """Different rules of `choices`, without those that have passed."""
    rules: list[Rule] = []
    for reading in choices:
        with suppress(UnclearTime):
            rules.append(reading.rule(now, default_time))
    return tuple(rule for at, rule in enumerate(rules) if rule not in rules[:at])


def _names_one_time(requested: RequestedTime) -> bool:
    """Whether the dates are a single time."""
    return bool(requested.at.strip()) and requested.repeat is Repeat.NONE and not requested.cron.strip()


def _dated(requested: RequestedTime, now: datetime, default_time: time) -> ParsedTime | None:
    """The single time of the dates; None if it is invalid or has passed."""
    try:
        return _from_dates(requested, now, default_time)
    except TimeNotUnderstood:
        return None


def _adds_clock(dated: ParsedTime, reading: Reading) -> bool:
    """Whether the dates have a time of day within the period that the words name without one. Midnight is none."""
    if not _has_no_clock(reading) or reading.default is not None or dated.assumed is not None:
        return False
    return isinstance(dated.rule.when, Once) and reading.start < dated.rule.when.wall < reading.end


def _agrees(dated: ParsedTime, once: Once, reading: Reading) -> bool:
    """Whether the dates are the time of the words; compares only the day if one of them has no time of day."""
    if not isinstance(dated.rule.when, Once):
        return True
    wall = dated.rule.when.wall
    if dated.assumed is not None or _has_no_clock(reading):
        return wall.date() == once.wall.date() or reading.start <= wall < reading.end
    return wall.replace(second=0) == once.wall.replace(second=0)


def is_once(rule: Rule) -> bool:
    """Whether the rule fires only once."""
    return isinstance(rule.when, Once) or rule.count == 1


def _past_moment(reading: Reading, now: datetime, default_time: time) -> datetime | None:
    if reading.kind is Kind.RECURRENCE:
        return None
    at = reading.moment(default_time).replace(tzinfo=now.tzinfo)
    return at if at.astimezone(UTC) <= now.astimezone(UTC) else None


def _has_no_clock(reading: Reading) -> bool:
    if reading.repeats is not None:
        return reading.repeats.unit is not None and not reading.repeats.times
    return not reading.has_clock and reading.kind in (Kind.DAY, Kind.INTERVAL)


def _assumed(rule: Rule) -> time | None:
    match rule.when:
        case Once(wall):
            return wall.time()
        case Calendar(cron):
            minute, hour, *_ = cron.split()
            return time(int(hour), int(minute)) if hour.isdigit() and minute.isdigit() else None
        case Every():
            return None


def _zone_name(zone: tzinfo | None, home: str) -> str:
    """IANA name of a zone in the words. A fixed offset of whole hours has one; for others return `home`."""
    if isinstance(zone, ZoneInfo):
        return str(zone)
    hours, rest = divmod((zone.utcoffset(None) if zone else None) or timedelta(), timedelta(hours=1))
    if rest:
        return home
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"


def _completed(rule: Rule, requested: RequestedTime, now: datetime, default_time: time) -> Rule:
    """`rule`, from words, completed with the model's recurrence (only if it has the same time of day), end and
    count."""
    if isinstance(rule.when, Once) and requested.repeat is not Repeat.NONE:
        try:
            dated = _from_dates(requested, now, default_time).rule
        except TimeNotUnderstood:
            return rule
        return dated if _same_clock(rule.when, dated) else rule
    if is_once(rule):
        return rule
    until = rule.until or (_until(requested.until, now) if requested.until.strip() else None)
    return replace(rule, until=until, count=rule.count or requested.count)


def _same_clock(once: Once, rule: Rule) -> bool:
    at = _assumed(rule) if isinstance(rule.when, Calendar) else None
    return at is not None and (at.hour, at.minute) == (once.wall.hour, once.wall.minute)


def _from_dates(requested: RequestedTime, now: datetime, default_time: time) -> ParsedTime:
    """Rule from the model's dates. A time of day without a date is today or tomorrow. Raises TimeNotUnderstood if they
    are invalid or have passed."""
    start = _Start.read(requested.at, now, default_time)
    if requested.repeat is Repeat.NONE and not requested.cron.strip():
        wall = start.wall
        if not start.has_date and wall <= now.replace(tzinfo=None):
            wall += timedelta(days=1)
        at = wall.replace(tzinfo=now.tzinfo)
        if at.astimezone(UTC) <= now.astimezone(UTC):
            raise TimeNotUnderstood(requested.words or requested.at, TimeProblem.PAST, at)
        return ParsedTime(Rule(Once(wall)), str(now.tzinfo), None if start.has_clock else wall.time())
    until = _until(requested.until, now) if requested.until.strip() else None
    rule = Rule(_repeated(requested, start, now), until, requested.count)
    assumes = not start.has_clock and isinstance(rule.when, Calendar) and not requested.cron.strip()
    return ParsedTime(rule, str(now.tzinfo), start.wall.time() if assumes else None)


@dataclass(frozen=True, slots=True)
class _Start:
    """Parsed `at` of the model: naive wall time, and which parts were given."""

    wall: datetime
    has_date: bool
    has_clock: bool

    @classmethod
    def read(cls, text: str, now: datetime, default_time: time) -> _Start:
        """Parse an ISO date, time or both; an empty text is today at `default_time`. Raises TimeNotUnderstood."""
        text = text.strip()
        today = now.date()
        if not text:
            return cls(datetime.combine(today, default_time), has_date=False, has_clock=False)
        try:
            if len(text) <= len("09:00:00") and ":" in text:
                at = time.fromisoformat(text).replace(tzinfo=None)
                return cls(datetime.combine(today, at), has_date=False, has_clock=True)
            if len(text) <= len("2026-01-05"):
                start = cls(datetime.combine(date.fromisoformat(text), default_time), has_date=True, has_clock=False)
                return start.within_reach(text)
            at_wall = datetime.fromisoformat(text)
            if at_wall.tzinfo is not None:
                at_wall = at_wall.astimezone(now.tzinfo).replace(tzinfo=None)
            start = cls(at_wall.replace(microsecond=0), has_date=True, has_clock=True)
        except (ValueError, OverflowError):
            raise TimeNotUnderstood(text) from None
        return start.within_reach(text)

    def within_reach(self, text: str) -> _Start:
        """Return self. Raises TimeNotUnderstood for a year outside 1000 to 9000, where date arithmetic would
        overflow."""
        if not 1000 <= self.wall.year <= 9000:
            raise TimeNotUnderstood(text)
        return self


def _repeated(requested: RequestedTime, start: _Start, now: datetime) -> Calendar | Every:
    step, wall = max(requested.every, 1), start.wall
    today = now.date()
    later = wall.date() > today
    if requested.repeat is Repeat.INTERVAL:
        seconds = step * _MINUTE_SECONDS
        since = now.astimezone(UTC)
        if start.has_clock:
            since = wall.replace(tzinfo=now.tzinfo).astimezone(UTC) - timedelta(seconds=seconds)
        return Every(seconds, since)
    if requested.repeat is Repeat.CRON or (requested.repeat is Repeat.NONE and requested.cron.strip()):
        return Calendar(" ".join(requested.cron.split()), first=wall.date() if later else None)
    cron, unit = _CRONS[requested.repeat](wall)
    cron = f"{wall.minute} {wall.hour} {cron}"
    if requested.repeat is Repeat.WEEKDAYS:
        step = 1
    if step == 1:
        return Calendar(cron, first=wall.date() if later else None)
    return Calendar(cron, step, unit, wall.date() if start.has_date else today)


def _monthly(wall: datetime) -> str:
    is_last = (wall + timedelta(days=1)).day == 1
    return "L * *" if is_last and wall.day > _LATEST_SHARED_DAY else f"{wall.day} * *"


_CRONS: dict[Repeat, Callable[[datetime], tuple[str, Unit]]] = {
    Repeat.DAILY: lambda wall: ("* * *", Unit.DAY),
    Repeat.WEEKDAYS: lambda wall: ("* * 1-5", Unit.DAY),
    Repeat.WEEKLY: lambda wall: (f"* * {wall.isoweekday() % 7}", Unit.WEEK),
    Repeat.MONTHLY: lambda wall: (_monthly(wall), Unit.MONTH),
    Repeat.YEARLY: lambda wall: (f"{wall.day} {wall.month} *", Unit.YEAR),
}


def _until(text: str, now: datetime) -> datetime:
    """Naive wall time of the end; a date includes its whole day. Raises TimeNotUnderstood."""
    start = _Start.read(text, now, time(23, 59, 59))
    return start.wall
