"""English words for recurring times become rules. The time is Wednesday, 4 March 2026, 17:30 in Berlin."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from cronsim import CronSim

from services.times import TimeProblem
from services.times.recurrence import Calendar, Every, Unit
from tests.services.times.reading import NOW, TIMES, cron, rule, seconds, trouble


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every day", "0 9 * * *"),
        ("daily at noon", "0 12 * * *"),
        ("every morning at 6", "0 6 * * *"),
        ("each evening", "0 19 * * *"),
        ("mornings", "0 9 * * *"),
        ("every night at 10", "0 22 * * *"),
        ("3pm each day", "0 15 * * *"),
        ("every day at 8am and 8pm", "0 8,20 * * *"),
        ("every day at 8, 12 and 18:00", "0 8,12,18 * * *"),
        ("on weekdays at 7:30", "30 7 * * 1-5"),
        ("every working day", "0 9 * * 1-5"),
        ("weekends at 10", "0 10 * * 0,6"),
        ("every Monday and Thursday at 17:00", "0 17 * * 1,4"),
        ("Mon-Fri at 8:15", "15 8 * * 1-5"),
        ("Tuesdays and Thursdays", "0 9 * * 2,4"),
        ("Monday, Wednesday and Friday at 8", "0 8 * * 1,3,5"),
        ("every day except Sunday at 9", "0 9 * * 1,2,3,4,5,6"),
        ("every weekday except Friday at 9", "0 9 * * 1,2,3,4"),
        ("every day but weekends at 9", "0 9 * * 1-5"),
        ("at 9 every day apart from Mondays and Tuesdays", "0 9 * * 0,3,4,5,6"),
        ("once a week", "0 9 * * 3"),
        ("every month on the 3rd", "0 9 3 * *"),
        ("19th of every month", "0 9 19 * *"),
        ("the 1st and 15th of each month at 10", "0 10 1,15 * *"),
        ("last day of every month", "0 9 L * *"),
        ("last Friday of every month at 4pm", "0 16 * * 5L"),
        ("every first Monday of the month", "0 9 * * 1#1"),
        ("every third Wednesday", "0 9 * * 3#3"),
        ("every year on May 3", "0 9 3 5 *"),
        ("every 4th of July at noon", "0 12 4 7 *"),
        ("every Christmas", "0 9 25 12 *"),
        ("annually", "0 9 4 3 *"),
        ("every 2 hours from 9 to 17", "0 9,11,13,15,17 * * *"),
        ("every 30 minutes between 9am and noon on weekdays", "0,30 9,10,11 * * 1-5"),
        ("every 3 hours starting at 9am", "0 9,12,15,18,21 * * *"),
        ("every hour on the hour", "0 " + ",".join(map(str, range(24))) + " * * *"),
        ("weekday mornings at 7", "0 7 * * 1-5"),
        ("every second Friday of the month at 6pm", "0 18 * * 5#2"),
        ("every second Friday at 6pm", "0 18 * * 5 / 2 week from 2026-03-06"),
        ("every other Friday at 6pm", "0 18 * * 5 / 2 week from 2026-03-06"),
        ("every two weeks on Wednesday at 5pm", "0 17 * * 3 / 2 week from 2026-03-11"),
        ("biweekly on Fridays", "0 9 * * 5 / 2 week from 2026-03-06"),
        ("every 3 days", "0 9 * * * / 3 day from 2026-03-05"),
        ("every 3 months on the 1st", "0 9 1 * * / 3 month from 2026-04-01"),
        ("semi-annually", "0 9 4 * * / 6 month from 2026-04-04"),
    ],
)
def test_what_repeats_by_the_calendar(text: str, expected: str) -> None:
    assert cron(text) == expected
    CronSim(expected.split(" / ")[0], NOW)  # raises if it is not a cron expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every 20 minutes", 1200),
        ("hourly", 3600),
        ("every half hour", 1800),
        ("every hour and a half", 5400),
        ("every 36 hours", 129_600),
    ],
)
def test_minutes_and_hours_elapse(text: str, expected: int) -> None:
    assert seconds(text) == expected
    assert rule(text).when == Every(expected, NOW.astimezone(UTC))


def test_the_end_of_what_repeats_is_kept() -> None:
    assert rule("every other Friday at 6pm until June").until == datetime(2026, 5, 31, 23, 59)  # noqa: DTZ001
    assert rule("every day until Friday").until == datetime(2026, 3, 6, 23, 59)  # noqa: DTZ001
    assert rule("every 20 minutes until 9pm").until == datetime(2026, 3, 4, 21)  # noqa: DTZ001
    assert rule("every day at 8 for 2 weeks").until == datetime(2026, 3, 18, 17, 30)  # noqa: DTZ001
    assert rule("every Monday at 9 for 5 times").count == 5


def test_the_beginning_of_what_repeats_is_kept() -> None:
    assert rule("every day starting Monday at 8").when == Calendar("0 8 * * *", first=date(2026, 3, 9))
    assert rule("every Friday from next month").when == Calendar("0 9 * * 5", first=date(2026, 4, 1))
    other = rule("every other day starting tomorrow").when
    assert other == Calendar("0 9 * * *", 2, Unit.DAY, date(2026, 3, 5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every day at 8:00 and 20:30", TimeProblem.SEVERAL),
        ("every Friday the 13th", TimeProblem.SEVERAL),  # cron would take any Friday, and any 13th
        ("every 30 February", TimeProblem.NO_SUCH),
        ("three times a day", TimeProblem.VAGUE),
    ],
)
def test_what_one_rule_cannot_say_is_said_so(text: str, expected: TimeProblem) -> None:
    assert trouble(text) is expected


@pytest.mark.parametrize("text", ["every", "every time", "all day every", "every 5 eggs", "every other"])
def test_words_that_only_begin_like_it_are_not_read(text: str) -> None:
    assert TIMES.read(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 31 October at 13:30 every day", ("30 13 * * *", date(2026, 10, 31))),
        ("every day on 31 October 2027 at 13:30", ("30 13 * * *", date(2027, 10, 31))),
        ("starting 31 October at 13:30 every day", ("30 13 * * *", date(2026, 10, 31))),
        ("from Saturday 31 October every day at 13:30", ("30 13 * * *", date(2026, 10, 31))),
        ("on 31 October every weekday at 9", ("0 9 * * 1-5", date(2026, 10, 31))),
        ("tomorrow and every day after at 9", ("0 9 * * *", date(2026, 3, 5))),
        ("every day tomorrow at 9", ("0 9 * * *", date(2026, 3, 5))),
        ("daily in October at 9", ("0 9 * 10 *", None)),
        ("on 31 October every year at 9", ("0 9 31 10 *", None)),
    ],
)
def test_a_date_beside_a_rule_of_days_is_the_first_of_them(text: str, expected: tuple[str, date | None]) -> None:
    when = rule(text).when
    assert isinstance(when, Calendar)
    assert (when.cron, when.first) == expected


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("除了周末每天9点打卡", "除了周末每天9点", "0 9 * * 1-5"),
        ("每天9点(周日除外)打卡", "每天9点(周日除外)", "0 9 * * 1,2,3,4,5,6"),
        ("工作日9点，除了周三和周五以外 打卡", "工作日9点，除了周三和周五以外", "0 9 * * 1,2,4"),
        ("take pills every day except Sunday at 9", "every day except Sunday at 9", "0 9 * * 1,2,3,4,5,6"),
    ],
)
def test_days_that_are_left_out_belong_to_the_time_within_a_sentence(text: str, said: str, expected: str) -> None:
    (found,) = TIMES.find_all(text, NOW)
    assert (text[found.start : found.end], cron(said)) == (said, expected)


@pytest.mark.parametrize(("text", "found"), [("take pills twice a day", "twice a day"), ("每天9点打卡，周末除外", "")])
def test_what_no_rule_can_hold_is_not_taken_for_less_within_a_sentence(text: str, found: str) -> None:
    assert "".join(text[one.start : one.end] for one in TIMES.find_all(text, NOW)) == found
