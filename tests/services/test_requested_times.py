"""Time of a request: priority of the member's words and a model's dates, and their meaning."""

from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.times import TimeProblem, Times
from services.times.recurrence import Calendar, Every, Once, Rule, Unit
from services.times.requested_times import Repeat, RequestedTime, TimeNotUnderstood, to_rule

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 11, 20, 16, 0, tzinfo=OSLO)
NINE = time(9)
NO_WORDS = Times(())


def meant(times: Times = NO_WORDS, now: datetime = NOW, **wish: object) -> Rule:
    return to_rule(RequestedTime(**wish), times, now, NINE).rule  # type: ignore[arg-type] # fields by name


def once(text: str) -> Rule:
    return Rule(Once(datetime.fromisoformat(text)))


def test_a_date_with_a_time_is_of_the_wall_and_an_offset_is_brought_home() -> None:
    assert meant(at="2026-11-21T17:00") == once("2026-11-21T17:00")
    assert meant(at="2026-11-21T17:00:00Z") == once("2026-11-21T18:00")
    assert meant(at="2026-11-21T17:00+05:45") == once("2026-11-21T12:15")


def test_a_time_of_day_is_the_next_one() -> None:
    assert meant(at="17:00") == once("2026-11-20T17:00")
    assert meant(at="15:00") == once("2026-11-21T15:00")


def test_a_day_alone_has_the_usual_time_and_says_so() -> None:
    found = to_rule(RequestedTime(at="2026-11-24"), NO_WORDS, NOW, NINE)
    assert (found.rule, found.assumed, found.zone) == (once("2026-11-24T09:00"), NINE, "Europe/Oslo")
    assert to_rule(RequestedTime(at="2026-11-24T09:00"), NO_WORDS, NOW, NINE).assumed is None


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"repeat": Repeat.DAILY, "at": "08:30"}, Rule(Calendar("30 8 * * *"))),
        ({"repeat": Repeat.DAILY}, Rule(Calendar("0 9 * * *"))),
        ({"repeat": Repeat.WEEKDAYS, "at": "08:30"}, Rule(Calendar("30 8 * * 1-5"))),
        ({"repeat": Repeat.WEEKLY, "at": "2026-11-20T18:00"}, Rule(Calendar("0 18 * * 5"))),
        (
            {"repeat": Repeat.WEEKLY, "every": 2, "at": "2026-11-27T18:00", "until": "2027-06-01"},
            Rule(
                Calendar("0 18 * * 5", 2, Unit.WEEK, datetime(2026, 11, 27).date()),  # noqa: DTZ001 - a wall
                until=datetime(2027, 6, 1, 23, 59, 59),  # noqa: DTZ001 - a wall
            ),
        ),
        ({"repeat": Repeat.MONTHLY, "at": "2026-11-15T10:00"}, Rule(Calendar("0 10 15 * *"))),
        (
            {"repeat": Repeat.MONTHLY, "at": "2026-11-30T10:00"},
            Rule(Calendar("0 10 L * *", first=datetime(2026, 11, 30).date())),  # noqa: DTZ001 - a wall
        ),
        ({"repeat": Repeat.YEARLY, "at": "2026-01-24T10:00"}, Rule(Calendar("0 10 24 1 *"))),
        ({"repeat": Repeat.CRON, "cron": " 0  9 * * 1 "}, Rule(Calendar("0 9 * * 1"))),
        ({"cron": "0 9 * * 1", "count": 3}, Rule(Calendar("0 9 * * 1"), count=3)),
        ({"repeat": Repeat.INTERVAL, "every": 90}, Rule(Every(5400, NOW.astimezone(UTC)))),
        (
            {"repeat": Repeat.INTERVAL, "every": 90, "at": "2026-11-20T18:00"},
            Rule(Every(5400, datetime(2026, 11, 20, 15, 30, tzinfo=UTC))),
        ),
    ],
)
def test_what_repeats_is_a_rule(wish: dict[str, object], rule: Rule) -> None:
    assert meant(**wish) == rule


def refused(times: Times = NO_WORDS, **wish: object) -> TimeNotUnderstood:
    with pytest.raises(TimeNotUnderstood) as raised:
        meant(times, **wish)
    return raised.value


def test_what_is_past_says_when_that_was() -> None:
    problem = refused(at="2026-11-19T17:00", words="yesterday at five")
    assert problem.problem is TimeProblem.PAST
    assert problem.at == datetime(2026, 11, 19, 17, 0, tzinfo=OSLO)


@pytest.mark.parametrize("at", ["soon", "2026-13-01", "2026-02-30T10:00", "25:00", "9999-99-99T00:00", "२०२६-११-२०"])
def test_what_is_no_date_is_told_as_it_stands(at: str) -> None:
    assert (refused(at=at).what, refused(at=at).problem) == (at, None)


def test_words_that_nobody_can_read_need_dates() -> None:
    assert refused(words="when the cows come home").problem is None
    assert meant(words="when the cows come home", at="2026-11-21T18:00") == once("2026-11-21T18:00")


@given(
    at=st.text(max_size=30) | st.datetimes().map(str) | st.times().map(str) | st.dates().map(str),
    until=st.text(max_size=12) | st.dates().map(str) | st.just(""),
    repeat=st.sampled_from(Repeat),
    every=st.integers(1, 525_600),
    cron=st.sampled_from(["", "0 9 * * 1", "x"]),
)
def test_whatever_a_model_sends_is_a_rule_or_refused(
    at: str, until: str, repeat: Repeat, every: int, cron: str
) -> None:
    wish = RequestedTime(at=at, until=until, repeat=repeat, every=every, cron=cron)
    try:
        found = to_rule(wish, NO_WORDS, NOW, NINE)
    except TimeNotUnderstood:
        return
    assert found.zone == "Europe/Oslo"


@pytest.mark.parametrize("at", ["0001-01-01T00:00", "9999-12-31T23:59", "0001-01-01", "9999-12-31T23:59-12:00"])
@pytest.mark.parametrize("repeat", Repeat)
def test_the_ends_of_the_calendar_are_no_times(at: str, repeat: Repeat) -> None:
    assert refused(at=at, repeat=repeat, cron="0 9 * * 1").what == at


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        ({"words": "tomorrow at 5pm", "at": "2026-11-21T17:00"}, once("2026-11-21T17:00")),
        ({"words": "tomorrow at 5pm", "at": "2026-11-21"}, once("2026-11-21T17:00")),
        ({"words": "at 5pm", "at": "2026-11-25"}, once("2026-11-25T17:00")),
        ({"words": "tomorrow", "at": "2026-11-21T17:00"}, once("2026-11-21T17:00")),
        ({"words": "tomorrow", "at": "2026-11-21T00:00"}, once("2026-11-21T09:00")),
        ({"words": "tomorrow at 5pm", "at": "2026-11-19T17:00"}, once("2026-11-21T17:00")),
        ({"words": "in 20 minutes", "at": "2026-11-20T17:20"}, once("2026-11-20T16:20")),
        ({"words": "tomorrow at 5pm", "repeat": Repeat.DAILY, "at": "2026-11-21T10:00"}, once("2026-11-21T17:00")),
        ({"words": "at 9am", "repeat": Repeat.DAILY, "at": "09:00"}, Rule(Calendar("0 9 * * *"))),
        ({"words": "every day at 9am", "count": 3}, Rule(Calendar("0 9 * * *"), count=3)),
        (
            {"words": "every day at 9am", "until": "2026-12-01"},
            Rule(Calendar("0 9 * * *"), until=datetime.fromisoformat("2026-12-01T23:59:59")),
        ),
        ({"words": "every day at 9am", "repeat": Repeat.WEEKLY, "at": "10:00"}, Rule(Calendar("0 9 * * *"))),
        ({"words": "soon", "at": "2026-11-25T10:00"}, once("2026-11-25T10:00")),
    ],
)
def test_the_words_win_and_the_dates_add_what_they_leave_open(wish: dict[str, object], rule: Rule) -> None:
    assert meant(Times(), **wish) == rule


@pytest.mark.parametrize(
    ("words", "at", "choices"),
    [
        ("tomorrow at 5pm", "2026-11-25T10:00", ("2026-11-21T17:00", "2026-11-25T10:00")),
        ("at 5", "2026-11-21T05:00", ("2026-11-20T17:00", "2026-11-21T05:00")),
        ("tomorrow", "2026-11-25T10:00", ("2026-11-21T09:00", "2026-11-25T10:00")),
        ("tomorrow at 5pm", "2026-11-25", ("2026-11-21T17:00", "2026-11-25T09:00")),
        ("Tue, Nov 27", "2026-11-27T09:00", ("2026-11-27T09:00", "2026-11-24T09:00")),
        ("周二11月27号", "2026-11-27T09:00", ("2026-11-27T09:00", "2026-11-24T09:00")),
    ],
)
def test_words_and_dates_that_contradict_each_other_leave_a_choice(
    words: str, at: str, choices: tuple[str, ...]
) -> None:
    problem = refused(Times(), words=words, at=at)
    assert (problem.problem, problem.choices) == (TimeProblem.AMBIGUOUS, tuple(once(one) for one in choices))


def test_words_for_elsewhere_are_brought_home_once_and_keep_to_the_clocks_there_where_they_repeat() -> None:
    assert meant(Times(), words="tomorrow at 5pm UTC") == once("2026-11-21T18:00")
    found = to_rule(RequestedTime(words="every day at 5pm UTC"), Times(), NOW, NINE)
    assert (found.rule, found.zone) == (Rule(Calendar("0 17 * * *")), "UTC")
    found = to_rule(RequestedTime(words="every day at 5pm UTC+3"), Times(), NOW, NINE)
    assert (found.rule, found.zone) == (Rule(Calendar("0 17 * * *")), "Etc/GMT-3")


@pytest.mark.parametrize(
    ("words", "trouble"),
    [("yesterday at 5pm", TimeProblem.PAST), ("soon", TimeProblem.VAGUE), ("30 february", TimeProblem.NO_SUCH)],
)
def test_words_that_are_no_time_to_come_say_why(words: str, trouble: TimeProblem) -> None:
    assert refused(Times(), words=words).problem is trouble


def test_a_day_in_words_has_the_usual_time_and_says_so() -> None:
    found = to_rule(RequestedTime(words="on tuesday"), Times(), NOW, NINE)
    assert (found.rule, found.assumed) == (once("2026-11-24T09:00"), NINE)
    assert to_rule(RequestedTime(words="every friday"), Times(), NOW, NINE).assumed == NINE
    assert to_rule(RequestedTime(words="every friday at 9"), Times(), NOW, NINE).assumed is None
    assert to_rule(RequestedTime(words="in 20 minutes"), Times(), NOW, NINE).assumed is None
