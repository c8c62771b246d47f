"""Rules of time survive the store."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from services.recurrence import Calendar, Every, Once, Rule, Unit, rule_from_json, rule_to_json


@pytest.mark.parametrize(
    "rule",
    [
        Rule(Once(datetime(2027, 3, 14, 2, 30))),  # noqa: DTZ001 - a wall time has no zone of its own
        Rule(Calendar("30 7 * * 1-5"), count=3),
        Rule(Calendar("0 9 * * 1", 2, Unit.WEEK, date(2027, 1, 4)), until=datetime(2027, 6, 1, 9)),  # noqa: DTZ001
        Rule(Every(3600, datetime(2027, 1, 1, tzinfo=UTC))),
    ],
)
def test_a_rule_comes_back_as_it_was_stored(rule: Rule) -> None:
    assert rule_from_json(rule_to_json(rule)) == rule
