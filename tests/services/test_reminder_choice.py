"""Selection of reminders."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.refs import ChatRef, MemberRef
from services.timers.reminders import NoSuchReminder, SeveralReminders, described, means_all, numbers_in
from services.timers.timer import Timer, TimerKind, TimerState
from services.times.recurrence import Once, Rule

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
ANN = MemberRef("test", "bot", "ann")


def reminder(number: int, title: str) -> Timer:
    return Timer(
        id=number,
        number=number,
        state=TimerState.ACTIVE,
        kind=TimerKind.REMINDER,
        bot="default",
        chat=ChatRef("test", "bot", "family"),
        is_group=True,
        private_to=None,
        owner=ANN,
        owner_name="Ann",
        members=((ANN, "Ann"),),
        function="remind",
        arguments={"text": title},
        title=title,
        rule=Rule(Once(datetime.fromisoformat("2026-11-21T17:00"))),
        zone="UTC",
        source="",
        done=0,
        created_at=NOW,
        next_at=NOW,
        snoozed_until=None,
    )


MINE = [
    reminder(1, "Go to the dentist"),
    reminder(2, "buy milk"),
    reminder(3, "buy milk and bread"),
    reminder(4, "给妈妈打电话"),
    reminder(5, "the thing"),
]


@pytest.mark.parametrize(
    ("which", "numbers"),
    [
        ("3", [3]),
        ("#3", [3]),
        ("number 3", [3]),
        ("reminder 3", [3]),
        ("3, 5 and 7", [3, 5, 7]),
        ("#3 #5", [3, 5]),
        ("第3条", [3]),
        ("3和5", [3, 5]),
        ("3 3", [3]),
        ("3 apples", []),
        ("the 3rd", []),
        ("", []),
    ],
)
def test_numbers_are_read_where_there_is_nothing_else(which: str, numbers: list[int]) -> None:
    assert numbers_in(which) == numbers


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("the dentist one", 1),
        ("my reminder about the dentist", 1),
        ("DENTIST", 1),
        ("dentist go", 1),
        ("buy milk", 2),
        ("“buy milk”", 2),
        ("bread", 3),
        ("妈妈", 4),
        ("妈妈的提醒", 4),
        ("关于妈妈的", 4),
        ("the thing", 5),
    ],
)
def test_a_description_finds_the_one_reminder_that_it_fits(words: str, number: int) -> None:
    assert described(MINE, words).number == number


def test_a_description_that_fits_several_names_them_and_one_that_fits_none_says_so() -> None:
    with pytest.raises(SeveralReminders) as several:
        described(MINE, "the milk one")
    assert [one.number for one in several.value.candidates] == [2, 3]
    for words in ("haircut", "", "the one"):
        with pytest.raises(NoSuchReminder):
            described(MINE[:4], words)


@pytest.mark.parametrize("which", ["all", "ALL", "all of them", "all my reminders", "全部", "所有提醒"])
def test_all_of_them_can_be_meant(which: str) -> None:
    assert means_all(which)


@pytest.mark.parametrize("which", ["all the milk", "mall", "1", ""])
def test_all_is_not_read_into_other_words(which: str) -> None:
    assert not means_all(which)
