from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from services.clock import VirtualClock
from services.refs import RequestProblem
from services.times.places import Places, UnknownPlace, zone_label

OSLO, TOKYO, NEW_YORK = ZoneInfo("Europe/Oslo"), ZoneInfo("Asia/Tokyo"), ZoneInfo("America/New_York")


@pytest.fixture
def places() -> Places:
    return Places(VirtualClock())


@pytest.mark.parametrize(
    ("text", "name", "zone"),
    [
        ("Tokyo", "Tokyo", "Asia/Tokyo"),
        (" new  york ", "New York", "America/New_York"),
        ("in Tokyo Japan", "Tokyo", "Asia/Tokyo"),
        ("Houston, TX", "Houston", "America/Chicago"),
        ("punta gorda, florida", "Florida", "America/New_York"),
        ("Paris, Texas", "Texas", "America/Chicago"),
        ("Paris, France", "Paris", "Europe/Paris"),
        ("France", "France", "Europe/Paris"),
        ("the eastern time zone", "Eastern", "America/New_York"),
        ("pst", "PST", "America/Los_Angeles"),
        ("London's time", "London", "Europe/London"),
        ("北京时间", "北京", "Asia/Shanghai"),
        ("上海市", "上海", "Asia/Shanghai"),
        ("日本", "日本", "Asia/Tokyo"),
        ("europe/oslo", "Europe/Oslo", "Europe/Oslo"),
        ("Reunion", "Reunion", "Indian/Reunion"),
        ("port moresby", "Port Moresby", "Pacific/Port_Moresby"),
        ("UTC+8", "UTC+8", "UTC+08:00"),
        ("gmt-3:30", "UTC-3:30", "UTC-03:30"),
        ("UTC", "UTC", "UTC"),
    ],
)
def test_a_place_is_found_by_its_name(places: Places, text: str, name: str, zone: str) -> None:
    (found,) = places.find(text)
    assert (found.name, str(found.zone)) == (name, zone)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("US", ["New York", "Chicago", "Denver", "Phoenix", "Los Angeles", "Anchorage", "Honolulu"]),
        ("美国", ["纽约", "芝加哥", "丹佛", "凤凰城", "洛杉矶", "Anchorage", "檀香山"]),
        ("cst", ["Beijing", "Havana", "Chicago"]),
        ("IST", ["New Delhi", "Jerusalem", "Dublin"]),
        ("Georgia", ["Tbilisi", "New York"]),
    ],
)
def test_a_name_with_several_zones_gives_them_all_from_east_to_west(
    places: Places, text: str, names: list[str]
) -> None:
    assert [place.name for place in places.find(text)] == names


def test_a_name_that_is_not_known_brings_similar_ones(places: Places) -> None:
    with pytest.raises(UnknownPlace) as caught:
        places.find("Berln")
    assert caught.value.values == {"place": "Berln", "similar": "Berlin, Bern"}
    with pytest.raises(UnknownPlace) as caught:
        places.find("Xyzzyville")
    assert caught.value.key == "time.unknown_place"


@pytest.mark.parametrize("text", ["", " ", "UTC+99", ",", "?"])
def test_what_is_no_name_is_not_found(places: Places, text: str) -> None:
    with pytest.raises(UnknownPlace):
        places.find(text)


def test_every_zone_of_the_database_is_found_by_its_key(places: Places) -> None:
    wrong = [key for key in zoneinfo.available_timezones() if not places.find(key)]
    assert wrong == []


@pytest.mark.parametrize(("month", "hour", "offset"), [(1, 10, "UTC+1"), (7, 11, "UTC+2")])
def test_the_time_of_a_place_follows_daylight_saving_time(month: int, hour: int, offset: str) -> None:
    shown = Places(VirtualClock(datetime(2026, month, 5, 9, 0, tzinfo=UTC))).now(OSLO)
    assert (shown.hour, zone_label(shown)) == (hour, offset)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("15:30", "15:30"),
        ("at 3 pm", "15:00"),
        ("3:05pm", "15:05"),
        ("12 am", "00:00"),
        ("12 p.m.", "12:00"),
        ("5 o'clock", "05:00"),
        ("noon", "12:00"),
        ("midnight", "00:00"),
        ("15h45", "15:45"),
        ("下午3点半", "15:30"),
        ("晚上十点", "22:00"),
        ("三点一刻", "03:15"),
        ("二点", "02:00"),
        ("15点20分", "15:20"),
        ("中午12点", "12:00"),
        ("凌晨12点", "00:00"),
        ("now", "10:00"),
    ],
)
def test_a_time_of_day_is_read(places: Places, text: str, shown: str) -> None:
    assert f"{places.convert(text, OSLO, TOKYO).source:%H:%M}" == shown


@pytest.mark.parametrize("text", ["", "soon", "25:00", "13 pm", "0 am", "12:60", "2026-02-30 10:00", "25点"])
def test_what_is_no_time_of_day_is_refused(places: Places, text: str) -> None:
    with pytest.raises(RequestProblem, match=r"time\.bad_time"):
        places.convert(text, OSLO, TOKYO)


@pytest.mark.parametrize(("text", "days", "shown"), [("8:00", 0, "16:00"), ("20:00", 1, "04:00")])
def test_a_conversion_knows_the_next_day(places: Places, text: str, days: int, shown: str) -> None:
    converted = places.convert(text, OSLO, TOKYO)
    assert (converted.days_later, f"{converted.target:%H:%M}") == (days, shown)


def test_a_conversion_knows_the_day_before(places: Places) -> None:
    converted = places.convert("03:00", TOKYO, NEW_YORK)
    assert (converted.days_later, f"{converted.target:%H:%M}") == (-1, "13:00")


def test_two_places_that_change_their_clocks_on_different_days_are_an_hour_closer_between(places: Places) -> None:
    before = places.convert("2026-03-01 12:00", NEW_YORK, OSLO).target
    between = places.convert("2026-03-15 12:00", NEW_YORK, OSLO).target
    assert (before.hour, between.hour) == (18, 17)


def test_a_time_that_the_clocks_jump_over_is_moved_and_marked(places: Places) -> None:
    converted = places.convert("2026-03-29 02:30", OSLO, TOKYO)
    assert (converted.skipped, converted.repeated) == (True, False)
    assert (f"{converted.source:%H:%M}", f"{converted.target:%H:%M}") == ("03:30", "10:30")


def test_a_time_that_comes_twice_means_the_first_and_is_marked(places: Places) -> None:
    converted = places.convert("2026-10-25 02:30", OSLO, TOKYO)
    assert (converted.skipped, converted.repeated, f"{converted.target:%H:%M}") == (False, True, "09:30")
