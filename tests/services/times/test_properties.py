"""Parsing never raises and is always fast; formatted times are parsed back to the same value."""

from __future__ import annotations

import calendar
import contextlib
import time as clock
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from services.times import Kind, TimeProblem, Times, UnclearTime
from services.times.en.phrases import English
from services.times.zh.reader import Chinese

NEW_YORK = ZoneInfo("America/New_York")
OURS = Times([Chinese(), English()])
NOW = datetime(2026, 3, 4, 17, 30, tzinfo=NEW_YORK)
_WORDS = """
at on in 5 10 2026 0 99999 monday tomorrow every first last of the month and to - , . / : 3 days before after from until
may second am pm 8:30 week next this two a half an hour quarter past year christmas between 1st 15th EST 9999-12-31
0001-01-01 100000 years decades ago daily weekdays for times except later now 31/2 明天 每 下午 三 点
"""
WORDS = _WORDS.split()
FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d %B %Y at %H:%M:%S", "%B %d, %Y %H:%M:%S")
phrases = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
texts = st.one_of(st.text(max_size=300), phrases.map(lambda text: text[:300]))
walls = st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9998, 12, 31))  # noqa: DTZ001 - wall times
recent = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2040, 1, 1))  # noqa: DTZ001 - the same
zoned = recent.map(lambda wall: wall.replace(tzinfo=NEW_YORK))
moments = walls.map(lambda wall: wall.replace(microsecond=0, tzinfo=NEW_YORK))


@settings(max_examples=400)
@given(text=texts, now=moments)
@example(text="in 99999 decades", now=NOW)
@example(text="1/0 hours", now=NOW)
@example(text="9999-12-31 at midnight", now=NOW)
@example(text="100000 weekdays ago", now=datetime(1, 1, 3, tzinfo=UTC))
@example(text="tomorrow", now=datetime(9999, 12, 31, tzinfo=UTC))
@example(text="yesterday", now=datetime(1, 1, 1, tzinfo=UTC))
@example(text="²³ ½ hours", now=NOW)
def test_no_text_makes_a_reader_raise(text: str, now: datetime) -> None:
    reading = OURS.read(text, now)
    for found in OURS.find_all(text, now):
        assert 0 <= found.start < found.end <= len(text)
    if reading is not None:
        with contextlib.suppress(UnclearTime):
            reading.rule(now)


@settings(max_examples=150)
@given(text=phrases)
@example(text="1-" * 140)
@example(text="every day until " * 18)
@example(text="first of " * 30)
@example(text="before " * 40)
def test_no_text_takes_long(text: str) -> None:
    started = clock.perf_counter()
    OURS.read(text[:300], NOW)
    OURS.find_all(text[:300], NOW)
    assert clock.perf_counter() - started < 1  # some hundredths on a quiet machine


@given(wall=walls, form=st.sampled_from(FORMS))
def test_a_wall_time_that_is_written_out_comes_back(wall: datetime, form: str) -> None:
    written = wall.replace(microsecond=0)
    reading = OURS.read(written.strftime(form), NOW)
    assert reading is not None
    assert (reading.kind, reading.start) == (Kind.INSTANT, written)


@given(text=phrases)
def test_what_is_found_reads_to_the_same(text: str) -> None:
    for found in English().find_all(text[:300], NOW):
        if found.reading.problem is None:
            again = English().read(text[found.start : found.end], NOW)
            assert again == found.reading


WEEKDAY_NAMES, MONTH_NAMES = tuple(calendar.day_name), tuple(calendar.month_name)[1:]
DATED = (
    "{short}, {month_short} {day}",
    "{weekday} {day} {month}",
    "{month} {day} ({short})",
    "{day} {month}, {weekday} at 5pm",
    "{weekday} the {day}th of {month}",
    "{short} {m}/{day}",
    "周{zh}{m}月{day}号",
    "{m}月{day}日（星期{zh}）下午5点",
    "{m}月{day}号周{zh}",
    "礼拜{zh}，{m}月{day}日",
)
OF_A_MONTH = (
    "{weekday} the {day}th",
    "{short} {day}th at 5pm",
    "{day}号星期{zh}",
    "周{zh}{day}号",
    "next {weekday} {day}th",
)
coming = st.integers(1, 300).map(lambda days: (NOW + timedelta(days=days)).date())


def a_date_in_words(form: str, day: date, weekday: int) -> str:
    return form.format(
        weekday=WEEKDAY_NAMES[weekday - 1],
        short=WEEKDAY_NAMES[weekday - 1][:3],
        zh="一二三四五六日"[weekday - 1],
        month=MONTH_NAMES[day.month - 1],
        month_short=MONTH_NAMES[day.month - 1][:3],
        m=day.month,
        day=day.day,
    )


def is_asked_about(text: str, *, days: set[date], weekday: int) -> bool:
    """Whether `text` is ambiguous, and both one of `days` and the weekday can be chosen."""
    reading = OURS.read(text, NOW)
    found = OURS.find(text, NOW)
    if reading is None or reading.problem is not TimeProblem.AMBIGUOUS or found is None or found.reading != reading:
        return False
    chosen = {one.start.date() for one in reading.choices}
    return bool(chosen & days) and weekday in {day.isoweekday() for day in chosen} and NOW.date() <= min(chosen)


@pytest.mark.parametrize("form", DATED)
@given(day=coming, weekday=st.integers(1, 7))
def test_a_weekday_and_a_date_are_the_date_or_asked_about(form: str, day: date, weekday: int) -> None:
    assume(not ("/" in form and day.day <= 12))  # either number can be the month
    text = a_date_in_words(form, day, weekday)
    if weekday != day.isoweekday():
        assert is_asked_about(text, days={day}, weekday=weekday), text
        return
    reading = OURS.read(text, NOW)
    assert reading is not None
    assert (reading.problem, reading.start.date()) == (None, day)


@pytest.mark.parametrize("form", OF_A_MONTH)
@given(day=st.integers(1, 27).map(lambda days: (NOW + timedelta(days=days)).date()), weekday=st.integers(1, 7))
def test_a_weekday_and_a_day_of_the_month_are_the_next_such_day_or_asked_about(
    form: str, day: date, weekday: int
) -> None:
    text = a_date_in_words(form, day, weekday)
    past = {NOW.date() - timedelta(days=days) for days in range(1, 32)}
    assume(not any(one.day == day.day and one.isoweekday() == weekday for one in past))  # a date that has passed
    if weekday != day.isoweekday():
        assert is_asked_about(text, days={day}, weekday=weekday), text
        return
    reading = OURS.read(text, NOW)
    assert reading is not None
    assert (reading.problem, reading.start.date()) == (None, day)


@given(weekday=st.integers(0, 6), day=st.integers(13, 31), ending=st.sampled_from(["", " to pay", ", pay"]))
def test_a_number_after_a_weekday_is_a_day_on_it_or_asked_about(weekday: int, day: int, ending: str) -> None:
    found = OURS.find(f"{WEEKDAY_NAMES[weekday]} {day}{ending}", NOW)
    assert found is not None
    reading = found.reading
    if reading.problem is None:
        assert (reading.start.isoweekday(), reading.start.day) == (weekday + 1, day)
        return
    assert reading.problem is TimeProblem.AMBIGUOUS
    hours = {one.start.hour for one in reading.choices if one.has_clock}
    assert hours == ({day} if day < 24 else set())
    assert {one.start.day for one in reading.choices if not one.has_clock} >= {day}


TIMES_IN_FIGURES = ("at 7", "at 12", "tomorrow at 5", "in 2 hours", "on Friday at 10", "Jan 16", "in 20 minutes", "5pm")
CONTINUATIONS = ("q", "7z", " noon", " hundred", " 30", " or 6", " or friday", " and half", " hours", " mon", "x2")


@given(
    phrase=st.sampled_from(TIMES_IN_FIGURES), rest=st.sampled_from(CONTINUATIONS), text=st.sampled_from(("", " eat"))
)
def test_no_time_is_taken_without_a_word_next_to_it_that_may_belong_to_it(phrase: str, rest: str, text: str) -> None:
    for found in OURS.find_all(f"{phrase}{rest}{text}", NOW):
        is_whole = found.end >= len(phrase + rest)
        assert is_whole or found.reading.problem is TimeProblem.AMBIGUOUS or phrase.endswith("m"), found


@given(text=phrases)
def test_no_time_ends_within_a_word(text: str) -> None:
    for found in English().find_all(text[:300], NOW):
        assert not (text[found.end - 1].isalnum() and text[found.end : found.end + 1].isalnum()), found


@given(text=phrases)
def test_choices_are_meanings_without_a_problem(text: str) -> None:
    for found in OURS.find_all(text[:300], NOW):
        assert all(one.problem is None for one in found.reading.choices)
        assert not found.reading.choices or found.reading.problem is TimeProblem.AMBIGUOUS


@given(minutes=st.integers(1, 100_000), now=zoned)
def test_minutes_elapse_across_every_change_of_clocks(minutes: int, now: datetime) -> None:
    assume(now.astimezone(UTC).astimezone(NEW_YORK) == now)
    reading = OURS.read(f"in {minutes} minutes", now)
    assert reading is not None
    at = reading.start.replace(tzinfo=NEW_YORK).astimezone(UTC)
    assert at - now.astimezone(UTC) == timedelta(minutes=minutes)
