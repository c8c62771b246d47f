"""Rules of time: once, again and again by the calendar, or every so many seconds. What they are, how they are stored,
and the instants that they mean in a zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from services.calendar_rule import FARTHEST_YEARS, Calendar, Unit, next_by_calendar
from services.cron_walls import BadCron, CronWalls
from services.instants import Occurrence, instant_of, whole_ms
from services.json_values import JsonObject

__all__ = [
    "BadRule",
    "Calendar",
    "Every",
    "Missed",
    "Occurrence",
    "Once",
    "Rule",
    "RuleFault",
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


class RuleFault(StrEnum):
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

    def __init__(self, reason: RuleFault, index: int = 0) -> None:
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
        raise BadRule(RuleFault.NO_SUCH_DATE) from error
    return wall.replace(tzinfo=None)


def check(rule: Rule, zone: ZoneInfo, now: datetime) -> Occurrence:
    """The first moment of `rule` after `now`. Raises BadRule when the rule cannot be used."""
    if rule.count is not None and not 1 <= rule.count <= MOST_COUNT:
        raise BadRule(RuleFault.BAD_COUNT)
    match rule.when:
        case Once(wall):
            _check_once(wall, zone, now)
        case Every(seconds):
            if seconds < LEAST_SECONDS:
                raise BadRule(RuleFault.TOO_OFTEN)
        case Calendar(cron, step, _, first):
            if not 1 <= step <= _MOST_STEP or (step > 1 and first is None):
                raise BadRule(RuleFault.BAD_STEP)
            try:
                CronWalls(cron)
            except BadCron as error:
                raise BadRule(RuleFault.NO_SUCH_DATE if error.no_such_date else RuleFault.BAD_CRON) from error
    found = next_after(rule, zone, now)
    if found is None:
        raise BadRule(RuleFault.NEVER)
    if found.at.year > now.year + FARTHEST_YEARS:
        raise BadRule(RuleFault.TOO_FAR)
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
        raise BadRule(RuleFault.TOO_FAR) from error
    if is_over:
        raise BadRule(RuleFault.PAST)


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
