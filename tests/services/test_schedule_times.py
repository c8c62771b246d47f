"""Times of schedules: at the start of a command line, and in files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.timers.schedules import UnclearWhen, WhenReader, at_clock, by_cron, every_seconds, is_cron, once_at
from services.times import Times
from services.times.recurrence import Calendar, Every, Once, Rule

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
OSLO = "Europe/Oslo"
READER = WhenReader(Times())


def is_word(rest: str) -> bool:
    """Whether it may be a command."""
    return rest[:1].isalpha() or rest.startswith("/")


@pytest.mark.parametrize(
    ("line", "cron", "rest"),
    [
        ("daily 07:00 weather Oslo", "0 7 * * *", "weather Oslo"),
        ("every day at 7 weather Oslo 3", "0 7 * * *", "weather Oslo 3"),
        ("every weekday at 8 news tech", "0 8 * * 1-5", "news tech"),
        ("fridays 17:00 poll Where do we eat? pizza, sushi", "0 17 * * 5", "poll Where do we eat? pizza, sushi"),
        ("every Monday and Thursday at 8:30pm todo", "30 20 * * 1,4", "todo"),
        ("every day at noon time Tokyo", "0 12 * * *", "time Tokyo"),
        ("daily 07:00: roll 2d6", "0 7 * * *", "roll 2d6"),
        ("daily 07:00 /todo", "0 7 * * *", "/todo"),
        ("daily 07:00", "0 7 * * *", ""),
        ("30 7 * * 1-5 weather Oslo", "30 7 * * 1-5", "weather Oslo"),
        ("*/10 * * * * why 3", "*/10 * * * *", "why 3"),
        ("0 18 L * * todo", "0 18 L * *", "todo"),
        ("每天早上7点 天气 北京", "0 7 * * *", "天气 北京"),
        ("每天早上7点天气 北京", "0 7 * * *", "天气 北京"),
        ("每个工作日8点半，待办", "30 8 * * 1-5", "待办"),
        ("每周五17:00 投票 吃什么？ 披萨，寿司", "0 17 * * 5", "投票 吃什么？ 披萨，寿司"),
    ],
)
def test_a_line_begins_with_its_time(line: str, cron: str, rest: str) -> None:
    when, found = READER.head(line, NOW, OSLO, is_word)
    assert (when.rule.when, found) == (Calendar(cron), rest)


def test_words_that_could_still_be_of_the_time_belong_to_what_follows_where_only_that_makes_sense() -> None:
    line = "every day at 7 8 9"
    assert READER.head(line, NOW, OSLO, lambda rest: rest == "8 9")[1] == "8 9"


def test_what_elapses_is_counted_from_now() -> None:
    when, rest = READER.head("every 2 hours time Tokyo", NOW, OSLO, is_word)
    assert (when.rule.when, rest, when.zone) == (Every(7200, NOW), "time Tokyo", OSLO)


def test_one_moment_is_by_the_clocks_of_the_zone() -> None:
    when, rest = READER.head("tomorrow at 8 weather Oslo", NOW, OSLO, is_word)
    assert (when.rule.when, rest) == (Once(datetime.fromisoformat("2026-11-21T08:00")), "weather Oslo")


@pytest.mark.parametrize("line", ["", "weather Oslo daily", "often todo", "0 7 * *"])
def test_a_line_without_a_time_at_its_head_is_refused(line: str) -> None:
    with pytest.raises(UnclearWhen, match="not_a_time"):
        READER.head(line, NOW, OSLO, is_word)


@pytest.mark.parametrize(
    "text",
    ["every day at 7:30", "every Monday at 8", "every weekday at 8", "0 7 * * 1-5", "on the 1st of every month at 9"],
)
def test_what_means_the_same_every_day_may_stand_in_a_file(text: str) -> None:
    first, later = (READER.parse_fixed(text, NOW + timedelta(days=days), OSLO) for days in (0, 100))
    assert not first.floats
    assert first.rule == later.rule
    assert first.is_like(later.rule, later.zone)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tomorrow at 8", "moves"),
        ("in 3 hours", "moves"),
        ("on Friday at 8", "moves"),
        ("24 December at 18:00", "moves"),
        ("every week at 9:00", "moves"),
        ("every day at 9 until Friday", "moves"),
        ("every day at 8 for 5 times", "counted"),
        ("blue moon", "not_a_time"),
    ],
)
def test_what_means_another_time_each_day_may_not(text: str, why: str) -> None:
    with pytest.raises(UnclearWhen) as caught:
        READER.parse_fixed(text, NOW, OSLO)
    assert caught.value.why == why


def test_a_full_date_may_stand_in_a_file() -> None:
    when = READER.parse_fixed("24 December 2030 at 18:00", NOW, OSLO)
    assert when.rule == Rule(Once(datetime.fromisoformat("2030-12-24T18:00")))


@pytest.mark.parametrize("text", ["every 90 minutes", "every other day at 9:00", "every second Monday at 9:00"])
def test_where_only_the_beginning_of_a_count_would_differ_it_is_the_same_time(text: str) -> None:
    first = READER.parse_fixed(text, NOW, OSLO)
    later = READER.parse_fixed(text, NOW + timedelta(days=8, hours=1), OSLO)
    assert first.floats
    assert first.rule != later.rule
    assert later.is_like(first.rule, first.zone)
    assert not later.is_like(first.rule, "Asia/Tokyo")


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_elapsed_times_are_the_same_when_they_are_as_long(one: int, other: int) -> None:
    first, later = every_seconds(one, NOW, OSLO), every_seconds(other, NOW + timedelta(hours=5), OSLO)
    assert later.is_like(first.rule, first.zone) == (one == other)


def test_exact_forms_are_what_they_say() -> None:
    assert at_clock("7:05", (7, 1), OSLO).rule == by_cron("5  7 * * 0,1", OSLO).rule
    assert once_at("2030-12-24 8:05", OSLO).rule == once_at("2030-12-24T08:05", OSLO).rule
    with pytest.raises(UnclearWhen, match="no_such"):
        once_at("2030-02-30 10:00", OSLO)


@pytest.mark.parametrize(
    ("text", "yes"),
    [("0 7 * * *", True), ("*/5 0-6 1,15 JAN MON#2", True), ("0 7 * *", False), ("at 7 on every day", False)],
)
def test_five_fields_are_a_cron_expression(text: str, yes: bool) -> None:
    assert is_cron(text) is yes


@given(st.text(max_size=60))
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        READER.head(line, NOW, OSLO, is_word)
    except UnclearWhen:
        return
