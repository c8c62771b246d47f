"""Recurrence rules: stored without loss, with the same occurrences during clock changes of a zone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from time import process_time
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.times.recurrence import (
    BadRule,
    Calendar,
    CronWalls,
    Every,
    Occurrence,
    Once,
    Rule,
    RuleProblem,
    Unit,
    check,
    instant_of,
    instant_text,
    missed,
    next_after,
    occurrence_of,
    occurrence_text,
    rule_from_json,
    rule_to_json,
    wall_of,
)

NEW_YORK, BERLIN, LORD_HOWE = map(ZoneInfo, ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe"))
ZONES = [NEW_YORK, BERLIN, LORD_HOWE, *map(ZoneInfo, ("Asia/Beirut", "America/Santiago", "Africa/Casablanca", "UTC"))]
NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def moments(rule: Rule, zone: ZoneInfo, after: datetime) -> Iterator[Occurrence]:
    """All occurrences of `rule` after `after`."""
    done = 0
    while (found := next_after(rule, zone, after, done=done)) is not None:
        yield found
        after, done = found.at, done + 1


def texts(rule: Rule, zone: ZoneInfo, after: datetime, count: int) -> list[str]:
    return [f"{one.at:%Y-%m-%dT%H:%M:%SZ}" for one in islice(moments(rule, zone, after), count)]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(Once(wall_of("2027-03-14T02:30"))),
        Rule(Calendar("30 7 * * 1-5"), count=3),
        Rule(Calendar("0 9 * * 1", 2, Unit.WEEK, date(2027, 1, 4)), until=wall_of("2027-06-01T09:00")),
        Rule(Every(3600, datetime(2027, 1, 1, tzinfo=UTC))),
    ],
)
def test_a_rule_comes_back_as_it_was_stored(rule: Rule) -> None:
    assert rule_from_json(rule_to_json(rule)) == rule


def cases(data: Callable[[str], Path]) -> list[dict[str, Any]]:
    lines = data("G_faults/scheduler_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if "spec" in case]


def rule_in(case: dict[str, Any]) -> Rule:
    spec = case["spec"]
    if "once_local" in spec:
        return Rule(Once(wall_of(spec["once_local"])))
    if "every_seconds" in spec:
        return Rule(Every(spec["every_seconds"], utc(case.get("start_utc", "2027-01-01T00:00:00Z"))))
    hour, minute = map(int, spec["at"].split(":"))
    return Rule(Calendar(f"{minute} {hour} {spec.get('day', '*')} * *"))


@pytest.mark.requirement("D41")
def test_every_computed_case_gives_its_instants_or_is_refused(data: Callable[[str], Path]) -> None:
    found = cases(data)
    assert len(found) == 21
    for case in found:
        zone, wanted = ZoneInfo(case["tz"]), case["expected_fires_utc"]
        if not wanted:
            with pytest.raises(BadRule):
                check(rule_in(case), zone, NOW)
            continue
        start = instant_of(wall_of(case.get("from_local_date", "2026-01-05")), zone) - timedelta(milliseconds=1)
        if "start_utc" in case:
            start = utc(case["start_utc"])
        got = texts(rule_in(case), zone, start, len(wanted))
        assert got == wanted or got in case.get("also_ok", []), case["id"]


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (Rule(Once(wall_of("2026-01-05T09:00"))), RuleProblem.PAST),
        (Rule(Once(wall_of("9999-12-31T23:59"))), RuleProblem.TOO_FAR),
        (Rule(Once(wall_of("2200-01-01T00:00"))), RuleProblem.TOO_FAR),
        (Rule(Every(59, NOW)), RuleProblem.TOO_OFTEN),
        (Rule(Calendar("0 9 32 * *")), RuleProblem.BAD_CRON),
        (Rule(Calendar("0 9 31 2 *")), RuleProblem.NO_SUCH_DATE),
        (Rule(Calendar("0 9 31 4,6,9,11 *")), RuleProblem.NO_SUCH_DATE),
        (Rule(Calendar("0 0 9 * * *")), RuleProblem.BAD_CRON),
        (Rule(Calendar("every day")), RuleProblem.BAD_CRON),
        (Rule(Calendar("* " * 5000)), RuleProblem.BAD_CRON),
        (Rule(Calendar("0 9 * * *", 0, first=date(2026, 1, 1))), RuleProblem.BAD_STEP),
        (Rule(Calendar("0 9 * * *", 2)), RuleProblem.BAD_STEP),
        (Rule(Calendar("0 9 * * *"), count=0), RuleProblem.BAD_COUNT),
        (Rule(Calendar("0 9 * * *"), count=10_001), RuleProblem.BAD_COUNT),
        (Rule(Calendar("0 9 * * *"), until=wall_of("2026-01-05T08:59")), RuleProblem.NEVER),
        # Every seventh day from a Tuesday is never a Monday.
        (Rule(Calendar("0 9 * * 1", 7, Unit.DAY, date(2026, 1, 6))), RuleProblem.NEVER),
        (Rule(Calendar("0 9 29 2 *", 2, Unit.MONTH, date(2026, 1, 1))), RuleProblem.NEVER),
        (Rule(Calendar("0 9 29 2 *", 4, Unit.YEAR, date(2026, 1, 1))), RuleProblem.NEVER),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_reason(rule: Rule, fault: RuleProblem) -> None:
    with pytest.raises(BadRule) as refused:
        check(rule, ZoneInfo("UTC"), NOW)
    assert refused.value.reason is fault


@pytest.mark.parametrize("text", ["2027-02-29T10:00", "2027-13-01T10:00", "2027-06-31", "tomorrow"])
def test_a_day_that_the_calendar_does_not_have_is_no_wall_time(text: str) -> None:
    with pytest.raises(BadRule) as refused:
        wall_of(text)
    assert refused.value.reason is RuleProblem.NO_SUCH_DATE


@pytest.mark.parametrize(
    ("cron", "wanted"),
    [
        ("0 9 31 * *", ["2026-01-31", "2026-03-31", "2026-05-31"]),
        ("0 9 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 9 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 9 * * 1#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
        ("0 9 13 * 5", ["2026-01-09", "2026-01-13", "2026-01-16"]),
    ],
)
def test_days_are_those_that_the_calendar_has(cron: str, wanted: list[str]) -> None:
    found = texts(Rule(Calendar(cron)), ZoneInfo("UTC"), NOW, 3)
    assert found == [f"{day}T09:00:00Z" for day in wanted]


@pytest.mark.parametrize(
    ("unit", "cron", "first", "wanted"),
    [
        (Unit.DAY, "0 9 * * *", date(2026, 1, 5), ["2026-01-08", "2026-01-11", "2026-01-14"]),
        (Unit.WEEK, "0 9 * * 1,3", date(2026, 1, 7), ["2026-01-07", "2026-01-26", "2026-01-28"]),
        (Unit.MONTH, "0 9 31 * *", date(2026, 1, 31), ["2026-01-31", "2026-07-31", "2026-10-31"]),
        (Unit.YEAR, "0 9 1 6 *", date(2026, 2, 1), ["2026-06-01", "2029-06-01", "2032-06-01"]),
    ],
)
def test_every_third_period_is_counted_from_the_first(unit: Unit, cron: str, first: date, wanted: list[str]) -> None:
    found = texts(Rule(Calendar(cron, 3, unit, first)), ZoneInfo("UTC"), NOW, 3)
    assert found == [f"{day}T09:00:00Z" for day in wanted]


def test_a_rule_ends_with_its_count_or_after_its_last_moment() -> None:
    daily = Calendar("0 9 * * *")
    assert texts(Rule(daily, count=2), ZoneInfo("UTC"), NOW, 9) == ["2026-01-06T09:00:00Z", "2026-01-07T09:00:00Z"]
    assert texts(Rule(daily, until=wall_of("2026-01-06T09:00")), ZoneInfo("UTC"), NOW, 9) == ["2026-01-06T09:00:00Z"]
    assert texts(Rule(Every(86_400, NOW), until=wall_of("2026-01-07T08:00")), ZoneInfo("UTC"), NOW, 9) == [
        "2026-01-06T09:00:00Z"
    ]


@pytest.mark.parametrize("minutes", [15, 20, 30, 60])
@pytest.mark.parametrize(
    ("zone", "around"),
    [
        (NEW_YORK, "2027-03-14T07:00:00Z"),
        (NEW_YORK, "2027-11-07T06:00:00Z"),
        (BERLIN, "2027-03-28T01:00:00Z"),
        (BERLIN, "2027-10-31T01:00:00Z"),
    ],
)
def test_what_counts_through_the_day_neither_skips_nor_doubles_when_clocks_are_moved(
    minutes: int, zone: ZoneInfo, around: str
) -> None:
    cron = "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"
    start = utc(around) - timedelta(hours=6)
    found = [one.at for one in islice(moments(Rule(Calendar(cron)), zone, start), 720 // minutes)]
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=minutes)}


def test_every_second_hour_is_not_skipped_by_the_clocks_that_go_forward() -> None:
    found = texts(Rule(Calendar("0 */2 * * *")), NEW_YORK, utc("2027-03-14T04:00:00Z"), 3)
    assert found == ["2027-03-14T05:00:00Z", "2027-03-14T07:00:00Z", "2027-03-14T08:00:00Z"]


def test_times_that_fall_together_where_clocks_go_forward_are_one() -> None:
    found = texts(Rule(Calendar("30 2,3 * * *")), NEW_YORK, utc("2027-03-14T05:00:00Z"), 2)
    assert found == ["2027-03-14T07:30:00Z", "2027-03-15T06:30:00Z"]


@given(
    st.sampled_from(ZONES),
    st.tuples(st.integers(0, 59), st.integers(0, 23)),
    st.datetimes(datetime(2026, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001 - made aware below
)
def test_a_time_of_the_day_comes_once_on_every_local_date(zone: ZoneInfo, at: tuple[int, int], start: datetime) -> None:
    rule = Rule(Calendar(f"{at[0]} {at[1]} * * *"))
    found = list(islice(moments(rule, zone, start.replace(tzinfo=UTC)), 8))
    assert [later.wall.date() - earlier.wall.date() for earlier, later in pairwise(found)] == [timedelta(days=1)] * 7
    assert all(earlier.at < later.at for earlier, later in pairwise(found))


@given(
    st.sampled_from(ZONES),
    st.sampled_from(["*/7 * * * *", "0 * * * *", "15 */3 * * *", "*/20 1-3 * * *", "30 0,1,2,3 * * *", "5 2 * * 0"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001 - made aware below
    st.integers(0, 7200),
)
def test_the_next_moment_is_the_same_wherever_one_looks_from_before_it(
    zone: ZoneInfo, cron: str, start: datetime, seconds: int
) -> None:
    rule, after = Rule(Calendar(cron)), start.replace(tzinfo=UTC)
    first, second = islice(moments(rule, zone, after), 2)
    between = after + timedelta(seconds=seconds)
    looked = next_after(rule, zone, between)
    if between < first.at:
        assert looked == first
    elif between < second.at:
        assert looked == second


@given(
    st.sampled_from(ZONES),
    st.sampled_from(["*/7 * * * *", "0 * * * *", "30 1 * * *", "30 2 * * *", "0 9 * * 1"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001 - made aware below
)
def test_an_occurrence_is_found_again_by_what_it_is_called(zone: ZoneInfo, cron: str, start: datetime) -> None:
    for when in (Calendar(cron), Every(61, start.replace(tzinfo=UTC))):
        rule = Rule(when)
        found = next_after(rule, zone, start.replace(tzinfo=UTC))
        assert found is not None
        assert occurrence_of(occurrence_text(rule, found), zone) == found


def test_a_snoozed_moment_is_called_by_its_instant() -> None:
    assert instant_text(NOW) == "2026-01-05T09:00:00.000Z"
    assert occurrence_of(instant_text(NOW), BERLIN) == Occurrence(wall_of("2026-01-05T10:00"), NOW)


@pytest.mark.parametrize("away", [timedelta(minutes=3), timedelta(hours=5), timedelta(days=3), timedelta(days=400)])
@pytest.mark.parametrize(
    "rule",
    [
        Rule(Calendar("*/5 * * * *")),
        Rule(Calendar("0 9 * * *")),
        Rule(Calendar("0 9 31 * *")),
        Rule(Calendar("0 9 29 2 *")),
        Rule(Every(300, NOW)),
        Rule(Calendar("* * * * *")),
        Rule(Calendar("* * * 1 *")),
        Rule(Calendar("*/7 2,3 * * 0")),
        Rule(Calendar("0 9 * * *"), until=wall_of("2026-01-07T12:00")),
    ],
)
def test_of_what_was_missed_the_latest_is_found(rule: Rule, away: timedelta) -> None:
    first = next_after(rule, BERLIN, NOW)
    assert first is not None
    now = first.at + away
    latest = missed(rule, BERLIN, first, now).latest
    after = next_after(rule, BERLIN, latest.at)
    assert latest.at <= now
    assert after is None or now < after.at


@pytest.mark.parametrize(
    ("cron", "away"), [("* * * 1 *", timedelta(days=300)), ("* * * * *", timedelta(days=82, hours=17))]
)
def test_what_was_missed_is_found_without_looking_at_all_of_it(cron: str, away: timedelta) -> None:
    rule = Rule(Calendar(cron))
    first = check(rule, BERLIN, NOW)
    began = process_time()
    missed(rule, BERLIN, first, first.at + away)
    assert process_time() - began < 0.1  # a few milliseconds; each occurrence in turn: 20 to 80 times as long


def test_what_was_missed_counts_where_a_rule_has_a_count() -> None:
    rule = Rule(Calendar("*/5 * * * *"), count=10)
    first = check(rule, BERLIN, NOW)
    found = missed(rule, BERLIN, first, first.at + timedelta(minutes=12), left=10)
    assert (found.latest.at - first.at, found.passed) == (timedelta(minutes=10), 3)
    assert missed(rule, BERLIN, first, first.at + timedelta(days=3), left=4).passed == 4


def test_the_walls_of_an_expression_end_with_the_calendar() -> None:
    assert CronWalls("0 9 * * *").after(wall_of("9999-12-31T10:00")) is None
