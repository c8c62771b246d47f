"""What becomes of a moment that has come: it is said, or, where it comes too late, missed; and what comes after it.
Pure: from the rows to a decision, by the rules of the settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from services.recurrence import (
    Occurrence,
    Once,
    Rule,
    missed,
    next_after,
    occurrence_of,
    occurrence_text,
    rule_from_json,
)
from services.timer import at_ms, ms_of


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a timer, as it is kept."""

    wall: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a moment that has come."""

    says: bool
    """False: it is missed."""
    moment: Moment
    """The moment that is over with it: of several that were missed the latest."""
    passed: int
    """How many of its rule's moments are over with it."""
    next: Moment | None
    """The next one of its rule; None where there is none, or it stands beside this one."""


def decide(
    row: Mapping[str, Any], now: datetime, recurring_late: timedelta, been: Collection[str] = frozenset()
) -> Decision:
    """What becomes of the moment in `row` (a row of `services.store.due.row`), which is due at `now`. What happens once
    and what was put off is always said; of what happens again and again the latest moment, when it is no longer ago
    than `recurring_late`. `been`: moments of the rule from the row's on that are over already. Raises
    ZoneInfoNotFoundError and ValueError for a zone or a rule that this machine does not know."""
    moment = Moment(row["wall"], row["due_ms"])
    if row["snoozed"]:
        return Decision(True, moment, 0, None)
    rule = rule_from_json(orjson.loads(row["rule"]))
    if isinstance(rule.when, Once):
        return Decision(True, moment, 1, None)
    zone = ZoneInfo(row["zone"])
    first = Occurrence(occurrence_of(moment.wall, zone).wall, at_ms(moment.due_ms))
    left = None if rule.count is None else rule.count - row["done"]
    latest, passed = missed(rule, zone, first, now, left=left)
    wall = moment.wall if latest is first else occurrence_text(rule, latest)
    says = now - latest.at <= recurring_late and wall not in been
    following = next_moment(rule, zone, latest.at, row["done"] + passed, been)
    return Decision(says, Moment(wall, ms_of(latest.at)), passed, following)


def next_moment(
    rule: Rule, zone: ZoneInfo, after: datetime, done: int, been: Collection[str] = frozenset()
) -> Moment | None:
    """The first moment of `rule` after `after` that is not among those that have been; None when there is none."""
    found = next_after(rule, zone, after, done=done)
    while found is not None and (wall := occurrence_text(rule, found)) in been:
        found = next_after(rule, zone, found.at, done=done)
    return None if found is None else Moment(wall, ms_of(found.at))
