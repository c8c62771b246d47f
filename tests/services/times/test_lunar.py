"""The lunar calendar agrees with almanacs."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.times.words.holidays import LAST_DAY, clear_and_bright, lunar_date, lunar_day_from, winter_solstice

NEW_YEARS = (
    "1900-01-31 1912-02-18 1949-01-29 1966-01-21 1984-02-02 1985-02-20 1997-02-07 2000-02-05 2008-02-07 2012-01-23 "
    "2013-02-10 2014-01-31 2015-02-19 2016-02-08 2017-01-28 2018-02-16 2019-02-05 2020-01-25 2021-02-12 2022-02-01 "
    "2023-01-22 2024-02-10 2025-01-29 2026-02-17 2027-02-06 2028-01-26 2029-02-13 2030-02-03 2033-01-31 2034-02-19 "
    "2050-01-23"
)
MID_AUTUMNS = (
    "2008-09-14 2013-09-19 2015-09-27 2016-09-15 2017-10-04 2018-09-24 2019-09-13 2020-10-01 2021-09-21 2022-09-10 "
    "2023-09-29 2024-09-17 2025-10-06 2026-09-25 2027-09-15 2028-10-03 2030-09-12"
)
DRAGON_BOATS = "2013-06-12 2019-06-07 2020-06-25 2022-06-03 2023-06-22 2024-06-10 2025-05-31 2026-06-19 2028-05-28"


@pytest.mark.parametrize("day", [date.fromisoformat(day) for day in NEW_YEARS.split()])
def test_new_year_is_the_first_day_of_the_first_month(day: date) -> None:
    assert lunar_date(day.year, 1, 1) == day


@pytest.mark.parametrize("day", [date.fromisoformat(day) for day in MID_AUTUMNS.split()])
def test_mid_autumn_is_the_fifteenth_of_the_eighth_month(day: date) -> None:
    assert lunar_date(day.year, 8, 15) == day


@pytest.mark.parametrize("day", [date.fromisoformat(day) for day in DRAGON_BOATS.split()])
def test_the_dragon_boats_race_on_the_fifth_of_the_fifth_month(day: date) -> None:
    assert lunar_date(day.year, 5, 5) == day


@pytest.mark.parametrize(
    ("year", "month", "first"),
    [(2020, 4, "2020-05-23"), (2023, 2, "2023-03-22"), (2025, 6, "2025-07-25"), (2033, 11, "2033-12-22")],
)
def test_a_leap_month_comes_behind_the_month_of_its_number(year: int, month: int, first: str) -> None:
    assert lunar_date(year, month, 1, leap=True) == date.fromisoformat(first)


@given(st.integers(1900, 2099))
def test_the_day_before_new_year_is_the_last_of_the_year(year: int) -> None:
    eve, following = lunar_date(year, 12, LAST_DAY), lunar_date(year + 1, 1, 1)
    assert eve is not None
    assert following is not None
    assert following - eve == timedelta(days=1)


@given(st.integers(1900, 2100), st.integers(-3, 15), st.integers(1, 40), st.booleans())
def test_a_day_lies_near_its_month_or_does_not_exist(year: int, month: int, day: int, leap: bool) -> None:
    found = lunar_date(year, month, day, leap)
    if found is not None:
        assert 0 <= (found - date(year, 1, 20)).days <= 400
        assert day <= 30


def test_what_is_outside_of_the_table_is_not_known() -> None:
    assert lunar_date(1899, 1, 1) is None
    assert lunar_date(2101, 1, 1) is None


def test_the_next_day_may_lie_within_the_next_common_year() -> None:
    assert lunar_day_from(date(2026, 11, 20), 12, 8) == date(2027, 1, 15)
    assert lunar_day_from(date(2026, 1, 5), 12, 8) == date(2026, 1, 26)


@pytest.mark.parametrize(
    "day",
    ["2008-04-04", "2013-04-04", "2015-04-05", "2019-04-05", "2023-04-05", "2024-04-04", "2026-04-05", "2100-04-05"],
)
def test_clear_and_bright_follows_the_sun(day: str) -> None:
    assert clear_and_bright(int(day[:4])) == date.fromisoformat(day)


@pytest.mark.parametrize(
    "day",
    ["2019-12-22", "2020-12-21", "2021-12-21", "2022-12-22", "2023-12-22", "2024-12-21", "2025-12-21", "2026-12-22"],
)
def test_the_winter_solstice_follows_the_sun(day: str) -> None:
    assert winter_solstice(int(day[:4])) == date.fromisoformat(day)
