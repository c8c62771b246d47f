"""Times are found in sentences with their full length, and similar words are ignored."""

from __future__ import annotations

import pytest

from services.times.en.phrases import English
from tests.services.times.reading import NOW, TIMES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("remind me to call mum tomorrow at half past 8", "tomorrow at half past 8"),
        ("remind me in 20 minutes to check the oven", "in 20 minutes"),
        ("remind us every other Friday at 6pm until June to water the plants", "every other Friday at 6pm until June"),
        ("can you do that on the 3rd of next month?", "on the 3rd of next month"),
        ("the call is at 3pm EST on Friday", "at 3pm EST on Friday"),
        (
            "tell everyone tomorrow morning at 9 o'clock in Tokyo that we start",
            "tomorrow morning at 9 o'clock in Tokyo",
        ),
        ("set an alarm for 6:30 every weekday", "for 6:30 every weekday"),
        ("read chapter 3 in an hour", "in an hour"),
        ("release 2.10 tomorrow", "tomorrow"),
        ("Sunday", "Sunday"),
    ],
)
def test_the_time_in_a_sentence_is_found_whole(text: str, expected: str) -> None:
    found = TIMES.find(text, NOW)
    assert found is not None
    assert text[found.start : found.end] == expected


def test_all_times_are_found_in_order() -> None:
    text = "ping Bob on Monday and Alice at 5pm on Tuesday"
    spans = [text[one.start : one.end] for one in TIMES.find_all(text, NOW)]
    assert spans == ["on Monday", "at 5pm on Tuesday"]


@pytest.mark.parametrize(
    "text",
    [
        "buy 3 eggs and 2 litres of milk",
        "I may go there, the second one is fine",
        "I sat in the sun and he wed her",
        "version 3.5.1 was released",
        "at 192.168.1.1 there is a server",
        "chapter 12, page 45",
        "one of these days",
        "march on",
        "now what?",
    ],
)
def test_what_only_looks_like_a_time_is_left_alone(text: str) -> None:
    assert TIMES.find(text, NOW) is None


def test_what_is_found_reads_to_the_same() -> None:
    text = "please, two weeks from tomorrow at noon, or by the end of the month, or every first Monday of the month"
    found = TIMES.find_all(text, NOW)
    assert len(found) == 3
    assert all(TIMES.read(text[one.start : one.end], NOW) == one.reading for one in found)


def test_a_long_text_is_looked_at_no_further_than_its_beginning() -> None:
    assert TIMES.find("x " * 400 + "tomorrow", NOW) is None
    assert English().find_all("tomorrow and " * 100, NOW) != []
