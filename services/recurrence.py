"""Rules of time: once, again and again by the calendar, or every so many seconds. Plain values; the instants that they
mean in a zone are computed where they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum

from services.json_values import JsonObject


class Unit(StrEnum):
    """What a calendar is counted in."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Once:
    """One moment."""

    wall: datetime
    """Naive: what the clock on the wall shows then, in the zone that stands beside the rule."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The wall times that a cron expression names (five fields; `L`, `1#2` and `5L` as cronsim reads them)."""

    cron: str
    step: int = 1
    """Only every so many `unit`s, counted from the one that holds `first`."""
    unit: Unit = Unit.DAY
    first: date | None = None
    """Not before this day. Required where `step` is above 1. Weeks begin on Monday."""


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
