"""Recurrence rules: single instants, calendar rules and intervals, across daylight saving transitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from services.refs import JsonObject

_FIELDS = 5
_LONGEST = 200
_MONTH = 3
_MINUTES, _HOURS = 60, 24


class BadCron(ValueError):
    """Not a cron expression of five fields; `no_such_date`: valid fields, but with days that no month has."""

    def __init__(self, cron: str, *, no_such_date: bool = False) -> None:
        super().__init__(cron)
        self.no_such_date = no_such_date


class CronWalls:
    """Wall times of a cron expression, in order. If both the day of month and the weekday are restricted, either may
    match, as in Vixie cron; `L` is the last day, `5L` the last Friday, `1#2` the second Monday."""

    def __init__(self, cron: str) -> None:
        """`cron`: five fields, up to 200 characters. Raises BadCron."""
        self._sim = read_cron(cron)
        minutes, hours = cron.split()[:2]
        self.goes_round = (
            minutes.startswith("*")
            or hours.startswith("*")
            or len(self._sim.hours) == _HOURS
            or len(self._sim.minutes) == _MINUTES
        )
        """The rule counts through the day instead of naming times, so it also fires in a repeated hour."""

    def after(self, wall: datetime) -> datetime | None:
        """The first naive wall time after the naive `wall`; None without a match within 50 years."""
        self._sim.dt = wall.replace(microsecond=0, fold=0)
        try:
            return next(self._sim, None)
        except (OverflowError, ValueError):
            return None  # the calendar ends with the year 9999


def read_cron(cron: str) -> CronSim:
    """Parse a cron expression of five fields, up to 200 characters. Raises BadCron."""
    if len(cron) > _LONGEST or len(cron.split()) != _FIELDS:
        raise BadCron(cron)
    start = datetime(2000, 1, 1)  # noqa: DTZ001 - wall times have no zone
    try:
        return CronSim(cron, start)
    except (CronSimError, ValueError) as error:
        fields = cron.split()
        fields[_MONTH] = "*"
        raise BadCron(cron, no_such_date=fields != cron.split() and _is_readable(" ".join(fields), start)) from error


def _is_readable(cron: str, start: datetime) -> bool:
    try:
        CronSim(cron, start)
    except (CronSimError, ValueError):
        return False
    return True


SECOND = timedelta(seconds=1)
_NEAR = timedelta(hours=26)
"""No zone has ever shifted its clocks by more than a day."""
_NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Time at which a rule fires, as wall time and instant."""

    wall: datetime
    """Naive nominal wall time. `fold` is 1 for the second pass of a repeated hour."""
    at: datetime
    """Aware instant in UTC, in whole milliseconds."""


def instant_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """UTC instant of the naive `wall` in `zone`. In a gap the earlier offset applies; a repeated time means its first
    occurrence unless `wall.fold` is 1. Raises OverflowError at the end of the calendar."""
    return whole_ms(wall.replace(tzinfo=zone).astimezone(UTC))


def whole_ms(at: datetime) -> datetime:
    """Truncate `at` to milliseconds, the precision of the store."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def shift_near(zone: ZoneInfo, at: datetime) -> timedelta:
    """Size of a clock shift in `zone` near enough to `at` to affect its wall times; usually zero. Zero also at the ends
    of the calendar."""
    shift = _shift(zone, at, _NEAR)
    return shift and _shift(zone, at, 2 * shift + SECOND)


def transition(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Instant of the clock shift between `before` and `after`, to the second."""
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


FARTHEST_YEARS = 100
"""Limit of the search for an occurrence."""


class Unit(StrEnum):
    """Unit of the step of a calendar rule."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Calendar:
    """Calendar rule given by a cron expression (five fields; `L`, `1#2` and `5L` as in cronsim)."""

    cron: str
    step: int = 1
    """Interval in `unit`s, counted from the unit that contains `first`."""
    unit: Unit = Unit.DAY
    first: date | None = None
    """Earliest day; required if `step` is above 1. Weeks begin on Monday."""


def next_by_calendar(rule: Calendar, zone: ZoneInfo, after: datetime) -> Occurrence | None:
    """First occurrence of `rule` after the instant `after`; None without a match within the search limit. Raises
    BadCron, and OverflowError at the end of the calendar."""
    walls = CronWalls(rule.cron)
    cursor = after.astimezone(zone).replace(tzinfo=None, fold=0)
    shift = shift_near(zone, after)
    if shift:
        # Near a shift, wall times and instants are ordered differently: compare all occurrences around it.
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
    """Occurrences with wall times after `start` and up to `end`, around a clock shift of `shift`."""
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
        # An occurrence in a gap moves to the time after it, unless the rule fires there anyway.
        if wall <= end and not any(began <= one.at < began + gap for one in shown):
            yield Occurrence(wall, late)


def _walls(rule: Calendar, walls: CronWalls, after: datetime) -> Iterator[datetime]:
    """Naive wall times of `rule` after `after`, for at most 100 years, on days that its step permits."""
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
    """First day from `day` on that the step permits; None after the end of the calendar. `day` itself without a
    step."""
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
    """Index of the day, week, month or year that contains `day`, counted consecutively."""
    match unit:
        case Unit.DAY:
            return day.toordinal()
        case Unit.WEEK:
            return (day.toordinal() - 1) // 7  # day 1 of the proleptic calendar is a Monday
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


LEAST_SECONDS = 60
MOST_COUNT = 10_000
_MOST_STEP = 1000
_SHORTEST = timedelta(seconds=LEAST_SECONDS)
_SECOND_TIME = "(2)"


@dataclass(frozen=True, slots=True)
class Once:
    """A single time, which does not recur."""

    wall: datetime
    """Naive wall time, in the zone stored with the rule."""


@dataclass(frozen=True, slots=True)
class Every:
    """Interval of elapsed time, independent of clock shifts."""

    seconds: int
    since: datetime
    """Aware, in UTC: start of the first interval; the first occurrence is `seconds` later."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Recurrence rule: a single time, calendar rule or interval, with optional end and count."""

    when: Once | Calendar | Every
    until: datetime | None = None
    """Naive wall time of the last permitted occurrence."""
    count: int | None = None
    """Total number of occurrences, missed ones included."""


class RuleProblem(StrEnum):
    """Reason why a rule is invalid."""

    PAST = "past"  # the time has passed
    NO_SUCH_DATE = "no_such_date"  # the calendar has no such day
    BAD_CRON = "bad_cron"  # not a cron expression of five fields
    BAD_STEP = "bad_step"  # a step needs a first day and must be 1 to 1000
    BAD_COUNT = "bad_count"  # must be 1 to 10,000
    TOO_OFTEN = "too_often"  # more than once a minute
    NEVER = "never"  # no further occurrence
    TOO_FAR = "too_far"  # the first occurrence is more than 100 years away


class BadRule(ValueError):
    """Invalid rule, with its `reason` and its `index` among several rules."""

    def __init__(self, reason: RuleProblem, index: int = 0) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.index = index


class Missed(NamedTuple):
    """Missed occurrences of a rule: the latest, and their number."""

    latest: Occurrence
    passed: int
    """Number of missed occurrences, `latest` included; always 1 for rules without a count."""


def wall_of(text: str) -> datetime:
    """Parse a naive wall time such as `2027-02-28T10:00`. Raises BadRule if there is no such date."""
    try:
        wall = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRule(RuleProblem.NO_SUCH_DATE) from error
    return wall.replace(tzinfo=None)


def check(rule: Rule, zone: ZoneInfo, now: datetime) -> Occurrence:
    """Validate `rule` and return its first occurrence after `now`. Raises BadRule with the reason."""
    if rule.count is not None and not 1 <= rule.count <= MOST_COUNT:
        raise BadRule(RuleProblem.BAD_COUNT)
    match rule.when:
        case Once(wall):
            _check_once(wall, zone, now)
        case Every(seconds):
            if seconds < LEAST_SECONDS:
                raise BadRule(RuleProblem.TOO_OFTEN)
        case Calendar(cron, step, _, first):
            if not 1 <= step <= _MOST_STEP or (step > 1 and first is None):
                raise BadRule(RuleProblem.BAD_STEP)
            try:
                CronWalls(cron)
            except BadCron as error:
                raise BadRule(RuleProblem.NO_SUCH_DATE if error.no_such_date else RuleProblem.BAD_CRON) from error
    found = next_after(rule, zone, now)
    if found is None:
        raise BadRule(RuleProblem.NEVER)
    if found.at.year > now.year + FARTHEST_YEARS:
        raise BadRule(RuleProblem.TOO_FAR)
    return found


def next_after(rule: Rule, zone: ZoneInfo, after: datetime, *, done: int = 0) -> Occurrence | None:
    """First occurrence of `rule` after the instant `after`, or None after the last. `done` is the number of past
    occurrences, for rules with a count."""
    if rule.count is not None and done >= rule.count:
        return None
    try:
        found = _next_of(rule.when, zone, after)
    except OverflowError:
        return None
    if found is None or (rule.until is not None and found.wall > rule.until):
        return None
    return found


def missed(rule: Rule, zone: ZoneInfo, first: Occurrence, now: datetime, *, left: int | None = None) -> Missed:
    """Latest occurrence of `rule` up to `now`, given that `first` is not after `now`. `left` limits the number of
    occurrences, `first` included; only then are they counted."""
    if left is not None:
        latest, passed = first, 1
        while passed < left and (found := next_after(rule, zone, latest.at)) is not None and found.at <= now:
            latest, passed = found, passed + 1
        return Missed(latest, passed)
    return Missed(_latest(rule, zone, first, now), 1)


def _latest(rule: Rule, zone: ZoneInfo, first: Occurrence, now: datetime) -> Occurrence:
    """Latest occurrence up to `now` in logarithmic time: search back exponentially, then bisect."""
    latest, back = first, _SHORTEST
    while now - back > first.at:
        found = next_after(rule, zone, now - back)
        if found is not None and found.at <= now:
            latest = found
            break
        back *= 4
    none_after = now
    while none_after - latest.at > _SHORTEST:
        middle = latest.at + (none_after - latest.at) / 2
        found = next_after(rule, zone, middle)
        if found is not None and found.at <= now:
            latest = found
        else:
            none_after = middle
    while (found := next_after(rule, zone, latest.at)) is not None and found.at <= now:
        latest = found
    return latest


def occurrence_text(rule: Rule, occurrence: Occurrence) -> str:
    """Identifier of an occurrence within its rule: its wall time, or its instant for elapsed time."""
    if isinstance(rule.when, Every):
        return instant_text(occurrence.at)
    text = occurrence.wall.isoformat()
    return f"{text}{_SECOND_TIME}" if occurrence.wall.fold else text


def instant_text(at: datetime) -> str:
    """Identifier of an occurrence by its instant, in UTC with milliseconds: `2026-01-05T09:00:00.000Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def occurrence_of(text: str, zone: ZoneInfo) -> Occurrence:
    """Parse the occurrence in an identifier from `occurrence_text` or `instant_text`, using the current rules of
    `zone`. Raises ValueError for another text."""
    if text.endswith("Z"):
        at = datetime.fromisoformat(text)
        return Occurrence(at.astimezone(zone).replace(tzinfo=None), whole_ms(at.astimezone(UTC)))
    plain = text.removesuffix(_SECOND_TIME)
    wall = datetime.fromisoformat(plain).replace(fold=int(plain != text))
    return Occurrence(wall, instant_of(wall, zone))


def rule_to_json(rule: Rule) -> JsonObject:
    """Serialize `rule` as JSON data for the store, with its kind by key: `once`, `every_seconds` or `cron`."""
    data: JsonObject = _when_to_json(rule.when)
    if rule.until is not None:
        data["until"] = rule.until.isoformat()
    if rule.count is not None:
        data["count"] = rule.count
    return data


def rule_from_json(data: JsonObject) -> Rule:
    """Deserialize a rule from `rule_to_json`. Raises KeyError or ValueError for other data."""
    until = data.get("until")
    return Rule(_when_from_json(data), datetime.fromisoformat(until) if until else None, data.get("count"))


def _when_to_json(when: Once | Calendar | Every) -> JsonObject:
    match when:
        case Once():
            return {"once": when.wall.isoformat()}
        case Every():
            return {"every_seconds": when.seconds, "since": when.since.astimezone(UTC).isoformat()}
        case Calendar():
            data: JsonObject = {"cron": when.cron}
            if when.step != 1:
                data |= {"step": when.step, "unit": when.unit.value}
            if when.first is not None:
                data["first"] = when.first.isoformat()
            return data


def _when_from_json(data: JsonObject) -> Once | Calendar | Every:
    if "once" in data:
        return Once(datetime.fromisoformat(data["once"]))
    if "every_seconds" in data:
        return Every(data["every_seconds"], datetime.fromisoformat(data["since"]))
    first = data.get("first")
    unit = Unit(data.get("unit", Unit.DAY))
    return Calendar(data["cron"], data.get("step", 1), unit, date.fromisoformat(first) if first else None)


def _check_once(wall: datetime, zone: ZoneInfo, now: datetime) -> None:
    try:
        is_over = instant_of(wall, zone) <= now
    except OverflowError as error:
        raise BadRule(RuleProblem.TOO_FAR) from error
    if is_over:
        raise BadRule(RuleProblem.PAST)


def _next_of(when: Once | Calendar | Every, zone: ZoneInfo, after: datetime) -> Occurrence | None:
    match when:
        case Once(wall):
            at = instant_of(wall, zone)
            return Occurrence(wall, at) if at > after else None
        case Every(seconds, since):
            begin, step = whole_ms(since.astimezone(UTC)), timedelta(seconds=seconds)
            at = begin + max(1, (after - begin) // step + 1) * step
            return Occurrence(at.astimezone(zone).replace(tzinfo=None), at)
        case Calendar():
            return next_by_calendar(when, zone, after)
