"""English times have their usual meaning. The time is Wednesday, 4 March 2026, 17:30 in Berlin."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from services.times import Kind, TimeProblem, Times
from services.times.en.phrases import English
from services.times.recurrence import Every
from tests.services.times.reading import NOW, TIMES, read, rule, stretch, trouble, wall


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow", "2026-03-05 09:00"),
        ("tmrw at 5pm", "2026-03-05 17:00"),
        ("the day after tomorrow at noon", "2026-03-06 12:00"),
        ("Friday", "2026-03-06 09:00"),
        ("fri. 8pm", "2026-03-06 20:00"),
        ("Wednesday", "2026-03-11 09:00"),  # today is a Wednesday: a week from now
        ("Wednesday at 8pm", "2026-03-04 20:00"),  # except for a time later today
        ("Wednesday at 8am", "2026-03-11 08:00"),
        ("this Friday", "2026-03-06 09:00"),
        ("next Friday", "2026-03-13 09:00"),
        ("Friday after next", "2026-03-13 09:00"),
        ("Friday week", "2026-03-13 09:00"),
        ("Monday of next week at 10", "2026-03-09 10:00"),
        ("next month on the 3rd", "2026-04-03 09:00"),
        ("the 20th of next month", "2026-04-20 09:00"),
        ("on the 4th", "2026-03-04 18:00"),  # 9:00 has passed, the day has not
        ("the 3rd", "2026-04-03 09:00"),
        ("3 fridays from now", "2026-03-20 09:00"),
        ("the first Monday of next month", "2026-04-06 09:00"),
        ("the first Monday of the month", "2026-04-06 09:00"),
        ("last working day of the month", "2026-03-31 09:00"),
        ("the second last day of May", "2026-05-30 09:00"),
        ("noon on the last day of the month", "2026-03-31 12:00"),
        ("end of the month", "2026-03-31 09:00"),
        ("a fortnight from tomorrow", "2026-03-19 09:00"),
        ("3 days before Christmas", "2026-12-22 09:00"),
        ("the Monday after Easter at 10am", "2026-04-06 10:00"),
        ("an hour before noon", "2026-03-05 11:00"),
        ("two business days from now", "2026-03-06 09:00"),
        ("this time tomorrow", "2026-03-05 17:30"),
        ("a week on Monday", "2026-03-16 09:00"),
        ("second-to-last Friday of June", "2026-06-19 09:00"),
    ],
)
def test_days_are_the_coming_ones(text: str, expected: str) -> None:
    assert wall(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15 May", "2026-05-15"),
        ("May 15th", "2026-05-15"),
        ("the 15th of May, 2027", "2027-05-15"),
        ("Feb 1", "2027-02-01"),
        ("3/4", "2027-03-04"),  # month first, and that is today
        ("25/12", "2026-12-25"),
        ("1.5.", "2026-05-01"),
        ("2026-10-02", "2026-10-02"),
        ("2/10/27", "2027-02-10"),
        ("February 29", "2028-02-29"),
        ("twenty-second of june twenty thirty", "2030-06-22"),
        ("Christmas Eve", "2026-12-24"),
        ("Thanksgiving 2027", "2027-11-25"),
        ("good friday", "2026-04-03"),
        ("hanukkah 2026", "2026-12-04"),
        ("tu bishvat 2027", "2027-01-22"),
    ],
)
def test_dates_without_a_year_are_the_next_that_exist(text: str, expected: str) -> None:
    now = NOW if text != "3/4" else NOW + timedelta(days=1)
    assert wall(text, now) == f"{expected} 09:00"


def test_whoever_writes_the_day_first_can_have_it_read_so() -> None:
    reading = English(day_first=True).read("3/4", NOW)
    assert reading is not None
    assert (reading.start.month, reading.start.day) == (4, 3)


def test_the_weekday_decides_between_two_orders() -> None:
    assert wall("Friday 7.8.", NOW) == "2026-08-07 09:00"
    assert wall("Monday 4/5", NOW) == "2026-05-04 09:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 5", "2026-03-05 17:00"),  # passed half an hour ago, and 5:00 is too early
        ("at 6", "2026-03-04 18:00"),
        ("at 9", "2026-03-04 21:00"),
        ("at 11", "2026-03-05 11:00"),
        ("half past 8", "2026-03-04 20:30"),
        ("quarter to seven", "2026-03-04 18:45"),
        ("ten to 8 in the morning", "2026-03-05 07:50"),
        ("08:15", "2026-03-05 08:15"),
        ("19h45", "2026-03-04 19:45"),
        ("8.45 pm", "2026-03-04 20:45"),
        ("5 p . m .", "2026-03-05 17:00"),
        ("noon", "2026-03-05 12:00"),
        ("midnight", "2026-03-05 00:00"),
        ("tonight", "2026-03-04 20:00"),
        ("tonight at 2", "2026-03-05 02:00"),
        ("tomorrow at 5", "2026-03-05 17:00"),
        ("tomorrow at 7", "2026-03-05 07:00"),
        ("tomorrow morning", "2026-03-05 09:00"),
        ("tomorrow evening at 8", "2026-03-05 20:00"),
        ("first thing tomorrow", "2026-03-05 08:00"),
        ("Friday at midnight", "2026-03-07 00:00"),
        ("tomorrow at six forty-three", "2026-03-05 18:43"),
    ],
)
def test_an_hour_without_am_or_pm_is_one_that_people_are_up_at(text: str, expected: str) -> None:
    assert wall(text) == expected


def test_an_hour_that_is_near_is_meant_even_at_night() -> None:
    night = NOW.replace(hour=4, minute=30)
    assert wall("at 6", night) == "2026-03-04 06:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 20 minutes", "2026-03-04 17:50"),
        ("in half an hour", "2026-03-04 18:00"),
        ("in an hour and a half", "2026-03-04 19:00"),
        ("in 1h30", "2026-03-04 19:00"),
        ("in 2 and a half hours", "2026-03-04 20:00"),
        ("in a quarter of an hour", "2026-03-04 17:45"),
        ("1 day 2 hours from now", "2026-03-05 19:30"),
        ("in 2 days", "2026-03-06 17:30"),
        ("in 2 days at 9am", "2026-03-06 09:00"),
        ("in a fortnight", "2026-03-18 17:30"),
        ("in a month", "2026-04-04 17:30"),
        ("in 15", "2026-03-04 17:45"),
        ("in five", "2026-03-04 17:35"),
        ("for 45 minutes", "2026-03-04 18:15"),
        ("90 seconds", "2026-03-04 17:31:30"),
        ("within the hour", "2026-03-04 18:30"),
        ("by Friday at 3pm", "2026-03-06 15:00"),
    ],
)
def test_so_long_from_now(text: str, expected: str) -> None:
    assert wall(text) == expected


def test_a_month_is_not_longer_than_the_calendar() -> None:
    assert wall("in a month", datetime(2026, 1, 31, 8, tzinfo=NOW.tzinfo)) == "2026-02-28 08:00"


def test_hours_elapse_where_clocks_jump() -> None:
    before = datetime(2026, 3, 29, 1, 30, tzinfo=NOW.tzinfo)  # 2:00 becomes 3:00 in Berlin
    assert wall("in an hour", before) == "2026-03-29 03:30"
    assert wall("in a day", before) == "2026-03-30 01:30"


def test_of_two_times_that_look_the_same_the_right_one_is_kept() -> None:
    before = datetime(2026, 10, 25, 2, 40, tzinfo=NOW.tzinfo)  # 3:00 becomes 2:00 again
    meant = rule("in 40 minutes", before)
    assert meant.when == Every(2400, before.astimezone(UTC))
    assert meant.count == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from 3 to 5pm", "03-05 15:00 to 03-05 17:00"),
        ("tomorrow 11 to 1pm", "03-05 11:00 to 03-05 13:00"),
        ("between 9:30 and 11:00 on Thursday", "03-05 09:30 to 03-05 11:00"),
        ("July 13 to 15", "07-13 00:00 to 07-16 00:00"),
        ("from the 28th of March to the 2nd", "03-28 00:00 to 04-03 00:00"),
        ("next week", "03-09 00:00 to 03-16 00:00"),
        ("this weekend", "03-07 00:00 to 03-09 00:00"),
        ("next month", "04-01 00:00 to 05-01 00:00"),
        ("q3", "07-01 00:00 to 10-01 00:00"),
        ("tomorrow afternoon", "03-05 12:00 to 03-05 18:00"),
        ("morning", "03-05 06:00 to 03-05 12:00"),
        ("from 4pm for half an hour", "03-05 16:00 to 03-05 16:30"),
    ],
)
def test_stretches_have_two_ends(text: str, expected: str) -> None:
    assert stretch(text) == expected
    assert read(text).kind is Kind.INTERVAL


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tomorrow", Kind.DAY),
        ("5pm", Kind.TIME_OF_DAY),
        ("tomorrow 5pm", Kind.INSTANT),
        ("2 hours", Kind.DURATION),
        ("next week", Kind.INTERVAL),
        ("every day", Kind.RECURRENCE),
    ],
)
def test_a_reading_says_what_was_named(text: str, kind: Kind) -> None:
    assert read(text).kind is kind


def test_a_stretch_that_has_begun_is_used_while_it_lasts() -> None:
    assert wall("today") == "2026-03-04 18:00"
    assert wall("this week") == "2026-03-04 18:00"
    assert trouble("today", NOW.replace(hour=23, minute=20)) is TimeProblem.PAST


@pytest.mark.parametrize("text", ["yesterday", "2 hours ago", "last Friday", "1 May 1990", "today at 9am"])
def test_what_is_over_is_past(text: str) -> None:
    assert trouble(text) is TimeProblem.PAST


@pytest.mark.parametrize(
    "text",
    [
        "30 February",
        "2026-02-29",
        "2027-13-01",
        "31 June at 9",
        "13/13/2027",
        "25:00",
        "tomorrow at 8:75",
        "the 35th of May",
    ],
)
def test_what_no_calendar_and_no_clock_shows_is_said_so(text: str) -> None:
    assert trouble(text) is TimeProblem.NO_SUCH


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tuesday, 10 January 2030", TimeProblem.AMBIGUOUS),  # a Thursday
        ("soon", TimeProblem.VAGUE),
        ("twice a day", TimeProblem.VAGUE),
        ("three times a week", TimeProblem.VAGUE),
        ("twice daily", TimeProblem.VAGUE),
        ("every day at 9 except public holidays", TimeProblem.SEVERAL),
        ("every Friday except Friday at 9", TimeProblem.NO_SUCH),
        ("tomorrow at 8 and 10", TimeProblem.SEVERAL),
    ],
)
def test_what_cannot_be_known_is_asked(text: str, expected: TimeProblem) -> None:
    assert trouble(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "hello",
        "25",
        "4a",
        "3 30",
        "two three",
        "this is the one",
        "buy milk",
        "at",
        "the",
        "every",
        "1/0 h",
        "9" * 40,
    ],
)
def test_what_is_no_time_is_not_read(text: str) -> None:
    assert TIMES.read(text, NOW) is None


def test_a_zone_that_is_said_is_kept_and_the_moment_is_told_here() -> None:
    reading = read("tomorrow at 3pm EST")
    assert (reading.start, str(reading.zone)) == (datetime(2026, 3, 5, 21), "Etc/GMT+5")  # noqa: DTZ001 - a wall time
    assert wall("9 o'clock in Tokyo") == "2026-03-05 01:00"
    assert wall("08:00 UTC+2") == "2026-03-05 07:00"
    assert reading.rule_zone(NOW) is NOW.tzinfo


def test_an_iso_time_with_its_offset_is_read() -> None:
    assert wall("2026-05-01T17:30:00Z") == "2026-05-01 19:30"
    assert wall("2026-05-01T17:30:00+05:30") == "2026-05-01 14:00"
    assert wall("2026-05-01 17:30:00-0400") == "2026-05-01 23:30"


def test_what_repeats_keeps_the_zone_that_is_said() -> None:
    reading = read("every day at 9am Tokyo time")
    assert reading.rule_zone(NOW) == ZoneInfo("Asia/Tokyo")
    assert reading.repeats is not None
    assert reading.repeats.times == (time(9),)


def test_a_reader_for_one_language_reads_no_other() -> None:
    assert Times([English()]).read("übermorgen", NOW) is None
