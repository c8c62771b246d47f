"""Recurrence rules and times formatted in both languages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.texts import Texts
from services.text_index import listed
from services.times.recurrence import Calendar, Every, Once, Rule, Unit
from services.times.time_formatting import amount, day, distance, exact_amount, in_words, moment

OSLO = ZoneInfo("Europe/Oslo")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
FRIDAY = date(2026, 11, 20)
TEXTS = Texts()
wall = datetime.fromisoformat
SAID = [
    (Rule(Once(wall("2026-11-21T17:00"))), "tomorrow, Saturday 21 November at 17:00", "明天（11月21日星期六）17:00"),
    (Rule(Once(wall("2027-01-02T08:05:07"))), "Saturday 2 January 2027 at 08:05:07", "2027年1月2日星期六08:05:07"),
    (Rule(Calendar("30 8 * * *")), "every day at 08:30", "每天08:30"),
    (Rule(Calendar("0 9,17 * * *"), count=5), "every day at 09:00 and 17:00, 5 times", "每天09:00和17:00，共5次"),
    (Rule(Calendar("0 9 * * *"), count=1), "every day at 09:00, once", "每天09:00，共一次"),
    (Rule(Calendar("0 9 * * *", 2, Unit.DAY, FRIDAY)), "every second day at 09:00", "每两天09:00"),
    (Rule(Calendar("0 9 * * *", 3, Unit.DAY, FRIDAY)), "every 3 days at 09:00", "每3天09:00"),
    (Rule(Calendar("30 8 * * 1-5")), "every weekday at 08:30", "每个工作日08:30"),
    (Rule(Calendar("30 8 * * MON,wed")), "every Monday and Wednesday at 08:30", "每个星期一和星期三08:30"),
    (Rule(Calendar("0 9 * * 6,0")), "every Saturday and Sunday at 09:00", "每个星期六和星期日09:00"),
    (
        Rule(Calendar("*/30 * * * *"), until=wall("2026-11-20T22:00:00")),
        "every 30 minutes, until today, Friday 20 November at 22:00",
        "每30分钟，直到今天（11月20日星期五）22:00",
    ),
    (
        Rule(Calendar("0 18 * * 5", 2, Unit.WEEK, FRIDAY), until=wall("2027-06-01T23:59:59")),
        "every second Friday at 18:00, until Tuesday 1 June 2027",
        "每两周的星期五18:00，直到2027年6月1日星期二",
    ),
    (Rule(Calendar("0 18 * * 5", 3, Unit.WEEK, FRIDAY)), "every 3 weeks on Friday at 18:00", "每3周的星期五18:00"),
    (Rule(Calendar("0 9 1,15 * *")), "on the 1st and 15th of every month at 09:00", "每月1日和15日09:00"),
    (Rule(Calendar("0 9 L * *")), "on the last day of every month at 09:00", "每月最后一天09:00"),
    (
        Rule(Calendar("0 9 5 * *", 2, Unit.MONTH, FRIDAY)),
        "on the 5th of every second month at 09:00",
        "每两个月的5日09:00",
    ),
    (Rule(Calendar("0 9 * * 1#1")), "on the first Monday of every month at 09:00", "每月第一个星期一09:00"),
    (Rule(Calendar("0 9 * * 5L")), "on the last Friday of every month at 09:00", "每月最后一个星期五09:00"),
    (Rule(Calendar("0 9 25 12 *")), "every year on 25 December at 09:00", "每年12月25日09:00"),
    (
        Rule(Calendar("0 9 * NOV 4#4")),
        "every year on the fourth Thursday of November at 09:00",
        "每年11月的第四个星期四09:00",
    ),
    (Rule(Every(5400, NOW)), "every 1 hour 30 minutes", "每1小时30分钟"),
    (Rule(Every(1200, NOW), count=1), "today, Friday 20 November at 16:20", "今天（11月20日星期五）16:20"),
    (Rule(Calendar("*/20 * * * *")), "every 20 minutes", "每20分钟"),
    (Rule(Calendar("15 * * * *")), "every hour at 15 minutes past", "每小时的第15分"),
    (Rule(Calendar("0 9 1 * 5")), "by the cron rule 0 9 1 * 5", "按 cron 规则 0 9 1 * 5"),
    (
        Rule(Calendar("*/7 9-17 * * 1-5", 2, Unit.MONTH, FRIDAY)),
        "by the cron rule */7 9-17 * * 1-5, only every 2 months",
        "按 cron 规则 */7 9-17 * * 1-5，每2个月一次",
    ),
]


@pytest.mark.parametrize(("rule", "english", "chinese"), SAID, ids=[english for _, english, _ in SAID])
def test_a_rule_is_said_as_people_say_it(rule: Rule, english: str, chinese: str) -> None:
    assert in_words(rule, OSLO, NOW, TEXTS.of("en")) == english
    assert in_words(rule, OSLO, NOW, TEXTS.of("zh")) == chinese


def test_a_day_is_named_after_today_where_the_reader_is() -> None:
    texts = TEXTS.of("en")
    late = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert moment(late, OSLO, NOW, texts) == "tomorrow, Saturday 21 November at 00:30"
    assert moment(late, ZoneInfo("America/New_York"), NOW, texts) == "today, Friday 20 November at 18:30"
    assert moment(late, ZoneInfo("Asia/Kathmandu"), NOW, texts) == "tomorrow, Saturday 21 November at 05:15"
    assert moment(late, ZoneInfo("Australia/Lord_Howe"), NOW, texts) == "today, Saturday 21 November at 10:30"
    assert day(date(2026, 11, 19), FRIDAY, texts) == "yesterday, Thursday 19 November"


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (1, "in 1 second", "1秒后"),
        (20, "in 20 seconds", "20秒后"),
        (60, "in 1 minute", "1分钟后"),
        (3599, "in 1 hour", "1小时后"),
        (2 * 3600, "in 2 hours", "2小时后"),
        (2 * 3600 + 310, "in 2 hours 5 minutes", "2小时5分钟后"),
        (3 * 86_400, "in 3 days", "3天后"),
        (75 * 86_400, "in 2 months", "2个月后"),
        (800 * 86_400, "in 2 years", "2年后"),
        (-7200, "2 hours ago", "2小时前"),
    ],
)
def test_how_far_away_something_is(seconds: int, english: str, chinese: str) -> None:
    at = NOW + timedelta(seconds=seconds)
    assert (distance(at, NOW, TEXTS.of("en")), distance(at, NOW, TEXTS.of("zh"))) == (english, chinese)


_FIELDS = st.sampled_from(
    listed("* 0 7 1,15 1-5 */5 1-10/3 L 5L 1#2 MON mon-fri DEC 61 -1 * x ,, 5/0 0-7 31 12 23,59 ١")
)
_CRONS = st.one_of(st.lists(_FIELDS, min_size=5, max_size=5).map(" ".join), st.text(max_size=20))
_DAYS = st.dates(date(1990, 1, 1), date(2190, 1, 1))
_WALLS = st.datetimes(datetime(1990, 1, 1), datetime(2190, 1, 1))  # noqa: DTZ001 - wall times have no zone
_WHENS = st.one_of(
    st.builds(Once, _WALLS),
    st.builds(Every, st.integers(1, 10**9), st.just(NOW)),
    st.builds(Calendar, _CRONS, st.integers(1, 1000), st.sampled_from(Unit), st.none() | _DAYS),
)
_RULES = st.builds(Rule, _WHENS, st.none() | _WALLS, st.none() | st.integers(1, 10_000))


@given(rule=_RULES, language=st.sampled_from(["en", "zh"]))
def test_every_rule_can_be_said(rule: Rule, language: str) -> None:
    said = in_words(rule, OSLO, NOW, TEXTS.of(language))
    assert said.strip()
    assert "{" not in said.replace(getattr(rule.when, "cron", ""), "")


@given(seconds=st.floats(0, 10**10), language=st.sampled_from(["en", "zh"]))
def test_every_length_of_time_can_be_said(seconds: float, language: str) -> None:
    texts = TEXTS.of(language)
    assert amount(seconds, texts)
    assert exact_amount(int(seconds), texts)
