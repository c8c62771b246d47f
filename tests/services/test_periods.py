from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chats.message_history import Period, read_period, spoken_period
from services.times import Times

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 1, 7, 9, 30, tzinfo=UTC)  # a Wednesday, 10:30 in Oslo


def oslo(day: int, hour: int = 0, minute: int = 0) -> int:
    return round(datetime(2026, 1, day, hour, minute, tzinfo=OSLO).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("today", Period(oslo(7))),
        (" Since  Today ", Period(oslo(7))),
        ("今天", Period(oslo(7))),
        ("yesterday", Period(oslo(6), oslo(7))),
        ("昨天", Period(oslo(6), oslo(7))),
        ("since yesterday", Period(oslo(6))),
        ("从昨天开始", Period(oslo(6))),
        ("this week", Period(oslo(5))),
        ("本周", Period(oslo(5))),
        ("last 2 hours", Period(oslo(7, 8, 30))),
        ("the past hour", Period(oslo(7, 9, 30))),
        ("90 minutes", Period(oslo(7, 9, 0))),
        ("30m", Period(oslo(7, 10, 0))),
        ("last 3 days", Period(oslo(4, 10, 30))),
        ("最近2小时", Period(oslo(7, 8, 30))),
        ("过去 30 分钟", Period(oslo(7, 10, 0))),
        ("最近3天", Period(oslo(4, 10, 30))),
        ("last 100", Period(count=100)),
        ("50 messages", Period(count=50)),
        ("最近100条消息", Period(count=100)),
        ("2026-01-06", Period(oslo(6))),
        ("since 2026-01-06T18:00", Period(oslo(6, 18))),
        ("2026-01-06T17:00:00Z", Period(oslo(6, 18))),
    ],
)
def test_a_part_of_the_past_is_read_in_the_zone_of_the_chat(text: str, period: Period) -> None:
    assert read_period(text, NOW, OSLO) == period


@pytest.mark.parametrize("text", ["", "lately", "last", "the", "0", "last 0", "2 weeks ago", "tomorrow", "-5", "99999"])
def test_everything_else_is_no_period(text: str) -> None:
    assert read_period(text, NOW, OSLO) is None


def test_a_day_on_which_the_clocks_change_begins_at_its_own_midnight() -> None:
    after = datetime(2026, 3, 29, 12, tzinfo=UTC)  # clocks went forward at 02:00
    period = read_period("today", after, OSLO)
    assert period is not None
    assert period.since_ms == round(datetime(2026, 3, 28, 23, tzinfo=UTC).timestamp() * 1000)


@given(st.text(max_size=30) | st.from_regex(r"(last |最近)?\d{1,6} ?(h|hours|天|条|days)?", fullmatch=True))
def test_no_text_gives_a_period_that_begins_after_now_or_has_no_bound(text: str) -> None:
    period = read_period(text, NOW, OSLO)
    if period is None:
        return
    assert (period.since_ms, period.count) != (None, None)
    if period.since_ms is not None and not any(sign.isdigit() for sign in text[:5]):
        assert period.since_ms <= NOW.timestamp() * 1000
        assert period.since_ms >= (NOW - timedelta(days=500)).timestamp() * 1000


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("today", Period(oslo(7))),
        ("last 100", Period(count=100)),
        ("yesterday evening", Period(oslo(6, 18), oslo(7))),
        ("Monday", Period(oslo(5), oslo(6))),
        ("since Monday", Period(oslo(5))),
        ("from 2 to 4 January", Period(oslo(2), oslo(5))),
        ("9:15 am", Period(oslo(7, 9, 15), oslo(7, 10, 15))),
        ("two hours", Period(oslo(7, 8, 30))),
        ("昨天晚上", Period(oslo(6, 18), oslo(7))),
        ("周一", Period(oslo(5), oslo(6))),
        ("从周一开始", Period(oslo(5))),
        ("when pigs fly", None),
        ("every day", None),
        ("", None),
    ],
)
def test_past_times_are_read_in_words(text: str, period: Period | None) -> None:
    assert spoken_period(text, NOW, OSLO, Times()) == period


@given(st.text(max_size=60))
def test_any_words_are_a_past_period_or_none(text: str) -> None:
    found = spoken_period(text, NOW, OSLO, Times())
    assert (
        found is None
        or found.since_ms is None
        or found.since_ms <= NOW.timestamp() * 1000
        or read_period(text, NOW, OSLO)
    )
