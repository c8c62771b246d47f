"""Dates and times: parsing, formatting, arithmetic and comparison."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.basic.codes import RunCode
from tests.fakes.basic_world import FixedWorld
from tests.function_calls.basic.calls import call, refused


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-20", "2026-11-20"),
        ("2026-1-5", "2026-01-05"),
        ("2026/11/20 7:05", "2026-11-20 07:05:00"),
        ("2026-11-20T22:15:00", "2026-11-20 22:15:00"),
        ("2026-11-20T22:15:00.123Z", "2026-11-20 23:15:00"),
        ("2026-07-20T22:15:00Z", "2026-07-21 00:15:00"),
        ("2026-11-20 22:15:00+08:00", "2026-11-20 15:15:00"),
        ("2026-11-20T22:15:00-0330", "2026-11-21 02:45:00"),
        ("31/12/2026", "2026-12-31"),
        ("12/31/2026", "2026-12-31"),
        ("05/05/2026", "2026-05-05"),
        ("5.6.2026", "2026-06-05"),
        ("31-12-2026 11:59 pm", "2026-12-31 23:59:00"),
        ("2026年11月20日", "2026-11-20"),
        ("2026年11月20日 22:15", "2026-11-20 22:15:00"),
        ("8:05 AM", "08:05:00"),
        ("12:00 am", "00:00:00"),
        ("0099-01-01", "0099-01-01"),
    ],
)
def test_dates_are_read_as_people_write_them(written: str, read: str) -> None:
    assert call("cdate", written) == read


@pytest.mark.parametrize(
    "written",
    [
        "",
        "05/06/2026",
        "2026-02-29",
        "2026-13-01",
        "32.1.2026",
        "25:00",
        "13:00 pm",
        "soon",
        "20261120",
        "2026-11",
        "0000-01-01",
        "9999-12-31T23:59:59-12:00",
        "20 Nov 2026",
    ],
)
def test_what_could_mean_two_dates_or_none_is_no_date(written: str) -> None:
    code, detail = refused("cdate", written)
    assert code is RunCode.BAD_VALUE
    assert "2026-11-20 22:15" in detail
    assert call("isdate", written) is False


def test_the_day_is_that_of_the_chat_s_zone() -> None:
    late = FixedWorld(at=datetime(2026, 11, 20, 23, 30, tzinfo=UTC), zone="Asia/Shanghai")
    assert call("today", world=late) == call("date", world=late) == "2026-11-21"
    assert call("time", world=late) == "07:30:00"
    assert call("now", world=late) == "2026-11-21 07:30:00"


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("2026-11-20", 3), "2026-11-23"),
        (("2026-11-20", 3, "days"), "2026-11-23"),
        (("day", 3, "2026-11-20"), "2026-11-23"),
        (("d", "-3", "2026-11-20"), "2026-11-17"),
        (("2026-01-31", 1, "month"), "2026-02-28"),
        (("2026-03-31", -1, "m"), "2026-02-28"),
        (("2024-02-29", 1, "yyyy"), "2025-02-28"),
        (("2026-11-20", 1, "q"), "2027-02-20"),
        (("2026-11-20", 2, "ww"), "2026-12-04"),
        (("2026-11-20", 90, "minute"), "2026-11-20 01:30:00"),
        (("2026-11-20 22:15:00", 2, "h"), "2026-11-21 00:15:00"),
        (("2026-11-20 22:15:00", 1.5, "day"), "2026-11-22 10:15:00"),
        (("23:30:00", 1, "hour"), "00:30:00"),
        (("2026-11-20", 1, "周"), "2026-11-27"),
        (("2026-03-28 12:00", 1, "day"), "2026-03-29 12:00:00"),
        (("2026-03-29 01:30", 1, "hour"), "2026-03-29 03:30:00"),
    ],
)
def test_dates_are_moved_with_their_arguments_in_either_order(arguments: tuple[Any, ...], result: str) -> None:
    assert call("dateadd", *arguments) == result


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("2026-11-20", "2026-12-24"), 34),
        (("day", "2026-11-20", "2026-12-24"), 34),
        (("2026-12-24", "2026-11-20", "d"), -34),
        (("2026-11-20 23:00", "2026-11-21 01:00", "day"), 1),
        (("2026-11-20 23:00", "2026-11-21 01:30", "hour"), 2),
        (("hour", "2026-11-21 01:30", "2026-11-20 23:00"), -2),
        (("2026-11-01", "2026-11-14", "week"), 1),
        (("2000-11-21", "2026-11-20", "year"), 25),
        (("2000-11-20", "2026-11-20", "year"), 26),
        (("2026-11-20", "2000-11-21", "year"), -25),
        (("2026-01-31", "2026-02-28", "month"), 1),
        (("2026-01-01", "2026-12-31", "quarter"), 3),
        (("08:00", "09:30", "minute"), 90),
        (("2026-03-29 00:00", "2026-03-29 06:00", "hour"), 5),
        (("2026-11-20", "2026-11-20T00:00:10", "s"), 10),
    ],
)
def test_differences_count_full_units_with_their_arguments_in_either_order(
    arguments: tuple[Any, ...], result: int
) -> None:
    assert call("datediff", *arguments) == result


@given(st.dates(), st.integers(-4000, 4000))
def test_a_date_that_is_moved_by_days_is_so_many_days_away(day: Any, count: int) -> None:
    start = f"{day:%Y-%m-%d}".rjust(10, "0")
    if not 100 < day.year < 9900:
        return
    assert call("datediff", start, call("dateadd", start, count)) == count


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("dateadd", ("2026-11-20", 1, "fortnight")),
        ("dateadd", ("2026-11-20", 10**30, "day")),
        ("dateadd", ("2026-11-20", 10**13, "hour")),
        ("dateadd", ("2026-11-20", 10**6, "year")),
        ("dateadd", ("0001-01-01", -1)),
        ("dateadd", ("9999-12-31 23:59:59", 1, "second")),
        ("datediff", ("2026-11-20", "10:00")),
        ("date", (2026, 11)),
        ("datevalue", ("10:00",)),
        ("dateserial", (10**9, 1, 1)),
        ("fromunix", (1e300,)),
        ("year", ("10:00",)),
        ("weekdayname", (8,)),
        ("monthname", (0,)),
    ],
)
def test_dates_beyond_the_calendar_are_refused(name: str, arguments: tuple[Any, ...]) -> None:
    assert refused(name, *arguments)[0] is RunCode.BAD_VALUE


def test_parts_are_told() -> None:
    moment = "2026-11-22 08:05:09"
    parts = ("year", "month", "day", "quarter", "weekday", "weeknum", "hour", "minute", "second")
    assert [call(part, moment) for part in parts] == [2026, 11, 22, 4, 1, 47, 8, 5, 9]
    assert call("hour", "08:05") == 8
    assert call("dateserial", 2026, 14, 1) == "2027-02-01"
    assert call("date", "2026-11-22 08:05") == "2026-11-22"


def test_names_are_in_the_language_of_the_chat() -> None:
    chinese = FixedWorld(language="zh")
    assert call("weekdayname", "2026-11-20", world=chinese) == "星期五"
    assert call("weekdayname", 1, True, world=chinese) == "周日"
    assert call("monthname", 11, world=chinese) == "十一月"
    assert call("weekdayname", 7) == "Saturday"
    assert call("monthname", "2026-11-20", True) == "Nov"
    assert call("monthname", 1, world=FixedWorld(language="xx-YY")) == "January"


def test_seconds_since_1970_go_there_and_back() -> None:
    assert call("fromunix", call("unixtime")) == call("now")
    assert call("unixtime", "2026-11-20 22:15:00") == call("unixtime")
