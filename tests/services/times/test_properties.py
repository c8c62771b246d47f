"""Parsing never raises and is always fast; formatted times are parsed back to the same value."""

from __future__ import annotations

import contextlib
import time as clock
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from services.times import Kind, Times, UnclearTime
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


@given(minutes=st.integers(1, 100_000), now=zoned)
def test_minutes_elapse_across_every_change_of_clocks(minutes: int, now: datetime) -> None:
    assume(now.astimezone(UTC).astimezone(NEW_YORK) == now)
    reading = OURS.read(f"in {minutes} minutes", now)
    assert reading is not None
    at = reading.start.replace(tzinfo=NEW_YORK).astimezone(UTC)
    assert at - now.astimezone(UTC) == timedelta(minutes=minutes)
