"""Rules of time: one instant, calendar recurrences and intervals, with daylight-saving transitions."""

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
    """This is no cron expression of five fields; `no_such_date`: it is, but it names days that no month has."""

    def __init__(self, cron: str, *, no_such_date: bool = False) -> None:
        super().__init__(cron)
        self.no_such_date = no_such_date


class CronWalls:
    """The wall times of one expression, in order. Where the days of the month and the week are both restricted, a day
    has to fit one of them, as everywhere; `L` is the last day, `5L` the last Friday, `1#2` the second Monday."""

    def __init__(self, cron: str) -> None:
        """Raises BadCron."""
        self._sim = _read(cron)
        minutes, hours = cron.split()[:2]
        self.goes_round = (
            minutes.startswith("*")
            or hours.startswith("*")
            or len(self._sim.hours) == _HOURS
            or len(self._sim.minutes) == _MINUTES
        )
        """It counts through the day rather than naming times of it: an hour that comes twice, it fires in twice."""

    def after(self, wall: datetime) -> datetime | None:
        """The first one after `wall`, which is naive; None when there is none for 50 years."""
        self._sim.dt = wall.replace(microsecond=0, fold=0)
        try:
            return next(self._sim, None)
        except (OverflowError, ValueError):
            return None  # the calendar ends with the year 9999


def _read(cron: str) -> CronSim:
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


__all__ = [
    "BadRule",
    "Calendar",
    "Every",
    "Missed",
    "Occurrence",
    "Once",
    "Rule",
    "RuleProblem",
    "Unit",
    "check",
    "instant_of",
    "instant_text",
    "missed",
    "next_after",
    "occurrence_of",
    "occurrence_text",
    "rule_from_json",
    "rule_to_json",
    "wall_of",
]

LEAST_SECONDS = 60
MOST_COUNT = 10_000
_MOST_STEP = 1000
_SHORTEST = timedelta(seconds=LEAST_SECONDS)
_SECOND_TIME = "(2)"


@dataclass(frozen=True, slots=True)
class Once:
    """One moment."""

    wall: datetime
    """Naive: what the clock on the wall shows then, in the zone that stands beside the rule."""


@dataclass(frozen=True, slots=True)
class Every:
    """Elapsed time, whatever clocks on walls do."""

    seconds: int
    since: datetime
    """Aware, in UTC: the count begins here; the first moment is `seconds` later."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When something is to happen."""

    when: Once | Calendar | Every
    until: datetime | None = None
    """Naive wall time: nothing after it."""
    count: int | None = None
    """So many times in all, those that were missed included."""


class RuleProblem(StrEnum):
    """Why a rule cannot be used."""

    PAST = "past"  # the moment is over
    NO_SUCH_DATE = "no_such_date"  # the calendar has no such day
    BAD_CRON = "bad_cron"  # no cron expression of five fields
    BAD_STEP = "bad_step"  # a step counts from a day, and is 1 to 1000
    BAD_COUNT = "bad_count"  # 1 to 10,000 times
    TOO_OFTEN = "too_often"  # more often than once a minute
    NEVER = "never"  # it never happens (again)
    TOO_FAR = "too_far"  # it happens in more than 100 years


class BadRule(ValueError):
    """A rule that cannot be used: `reason`, and of several rules the `index` of this one."""

    def __init__(self, reason: RuleProblem, index: int = 0) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.index = index


class Missed(NamedTuple):
    """What a rule should have done since some moment."""

    latest: Occurrence
    passed: int
    """How many there were, `latest` included; 1 where a rule without a count does not need to know."""


def wall_of(text: str) -> datetime:
    """The naive wall time in `text`, such as `2027-02-28T10:00`. Raises BadRule when the calendar has none such."""
    try:
        wall = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRule(RuleProblem.NO_SUCH_DATE) from error
    return wall.replace(tzinfo=None)


def check(rule: Rule, zone: ZoneInfo, now: datetime) -> Occurrence:
    """The first moment of `rule` after `now`. Raises BadRule when the rule cannot be used."""
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
    """The first moment of `rule` after the instant `after`; None when there is none. `done`: how many there have been,
    where the rule has a count."""
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
    """The latest moment of `rule` that is not after `now`, counted from `first`, which is not after it either. `left`:
    there are at most so many, `first` included."""
    if left is not None:
        latest, passed = first, 1
        while passed < left and (found := next_after(rule, zone, latest.at)) is not None and found.at <= now:
            latest, passed = found, passed + 1
        return Missed(latest, passed)
    return Missed(_latest(rule, zone, first, now), 1)


def _latest(rule: Rule, zone: ZoneInfo, first: Occurrence, now: datetime) -> Occurrence:
    """The last moment that is not after `now`, in a few steps however many there were: from ever farther back until one
    is found, and then by halves."""
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
    """What the occurrence is called beside its rule: its wall time; where elapsed time counts, its instant."""
    if isinstance(rule.when, Every):
        return instant_text(occurrence.at)
    text = occurrence.wall.isoformat()
    return f"{text}{_SECOND_TIME}" if occurrence.wall.fold else text


def instant_text(at: datetime) -> str:
    """An occurrence that is called by its instant."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def occurrence_of(text: str, zone: ZoneInfo) -> Occurrence:
    """The occurrence that `occurrence_text` or `instant_text` named, as `zone` has it now."""
    if text.endswith("Z"):
        at = datetime.fromisoformat(text)
        return Occurrence(at.astimezone(zone).replace(tzinfo=None), whole_ms(at.astimezone(UTC)))
    plain = text.removesuffix(_SECOND_TIME)
    wall = datetime.fromisoformat(plain).replace(fold=int(plain != text))
    return Occurrence(wall, instant_of(wall, zone))


def rule_to_json(rule: Rule) -> JsonObject:
    """`rule` as plain data, for the store."""
    data: JsonObject = _when_to_json(rule.when)
    if rule.until is not None:
        data["until"] = rule.until.isoformat()
    if rule.count is not None:
        data["count"] = rule.count
    return data


def rule_from_json(data: JsonObject) -> Rule:
    """The rule that `rule_to_json` wrote."""
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
