"""Charts: content and size of the PNG, fonts, and texts that cannot be drawn."""

from __future__ import annotations

from datetime import date, timedelta
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageFont

from bot.platforms.base import Limits
from bot.testing import FAMILY, TestPlatform, a_group
from function_calls.handlers.lookup import weather
from services.clock import VirtualClock
from services.pictures import Chart, Pictures, VoteChart, WeekChart, draw
from services.web.content import data_in
from services.web.http import WebClient, WebLimits
from services.web.weather import DayWeather, OpenMeteo, Sky
from tests.fakes.open_meteo import FORECAST_PATH, GEOCODING_PATH, open_meteo_pages
from tests.fakes.web_server import WebServer
from tests.function_calls.handlers.running import Functions

VOTES = VoteChart("📊 Poll 1: Where?", (("🍕 pizza", 3), ("sushi", 1), ("pasta", 0)), "pizza is ahead.")
WITH_FILES = Limits(
    text_chars=4000,
    sends_per_minute=100_000,
    sends_are_idempotent=True,
    choices=True,
    attachments=True,
    file_bytes=1_000_000,
)


def a_week(*values: tuple[float | None, float | None, int | None], title: str = "Oslo") -> WeekChart:
    days = [
        DayWeather(date(2026, 1, 5) + timedelta(days=place), Sky.RAIN, *value) for place, value in enumerate(values)
    ]
    return WeekChart(title, days, [("Wednesday", "thunderstorm with hail")] * len(days), "Chance of rain or snow")


def image_of(chart: Chart, font: str = "") -> Image.Image:
    content = draw(chart, font)
    assert content is not None
    return Image.open(BytesIO(content)).convert("RGB")


def share_of(colour: tuple[int, int, int], row: int, image: Image.Image) -> float:
    """Part of the pixels in a row with nearly that colour."""
    pixels = [image.getpixel((x, row)) for x in range(image.width)]
    return sum(
        isinstance(one, tuple) and all(abs(a - b) < 12 for a, b in zip(one, colour, strict=True)) for one in pixels
    ) / len(pixels)


def test_votes_are_bars_in_proportion_and_the_leading_one_has_its_own_colour() -> None:
    image = image_of(VOTES)
    assert (image.width, image.height) == (1440, 2 * (72 + 3 * 58 + 46))
    first, second, third = (2 * (72 + 58 * place + 37) for place in range(3))
    full = (720 - 64) / 720
    assert share_of((47, 111, 222), first, image) == pytest.approx(0.75 * full, abs=0.02)
    assert share_of((169, 196, 245), second, image) == pytest.approx(0.25 * full, abs=0.02)
    assert share_of((233, 237, 242), third, image) == pytest.approx(full, abs=0.02)
    assert image.getpixel((2, 2)) == (255, 255, 255)


def test_the_weather_has_a_range_of_temperatures_and_a_bar_of_rain_for_each_day() -> None:
    image = image_of(a_week((-5, 1, 90), (2, 9, 10), (3, 12, 50)))
    base = 2 * (72 + 294 + 56)
    assert share_of((90, 169, 230), base - 16, image) == pytest.approx(2 * 30 / 720, abs=0.02)
    assert share_of((90, 169, 230), base - 80, image) == pytest.approx(30 / 720, abs=0.02)


@pytest.mark.parametrize("values", [(None, None, None), (3.0, None, 0), (5.0, 5.0, 100), (-40.0, 50.0, 0)])
def test_unknown_equal_and_extreme_values_are_drawn(values: tuple[float | None, float | None, int | None]) -> None:
    assert image_of(a_week(values, values)).width == 1440


def test_long_texts_are_wrapped_or_cut() -> None:
    long = "a very long option about the restaurant behind the station " * 5
    short, tall = image_of(VOTES), image_of(VoteChart(long, [(long, 1), ("b" * 300, 1), ("c", 0)], long))
    assert tall.height == short.height + 2 * 32
    assert share_of((255, 255, 255), 2 * (104 + 14), tall) > 0.2


@pytest.mark.parametrize("text", ["\U00012000\U00012001", "👍", "\U0010fffe"])
def test_a_text_without_glyphs_is_not_drawn(text: str) -> None:
    assert draw(VoteChart("Which?", [(text, 1), ("b", 0)], "c")) is None


def test_a_font_of_the_settings_is_tried_first_and_an_unusable_one_left_out(tmp_path: Path) -> None:
    bad = tmp_path / "bad.ttf"
    bad.write_bytes(b"no font")
    assert draw(VOTES, str(bad)) == draw(VOTES) == draw(VOTES, str(tmp_path / "none.ttf"))
    found = [one for one in (Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),) if one.exists()]
    for font in found:
        assert ImageFont.truetype(font, 10).getname()[0] == "DejaVu Sans"
        assert draw(VOTES, str(font)) != draw(VOTES)


async def test_nothing_is_drawn_for_networks_without_files_or_with_too_small_ones() -> None:
    assert await Pictures().drawn(FAMILY, VOTES) == ""
    assert await Pictures(file_bytes=lambda chat: 1000).drawn(FAMILY, VOTES) == ""
    url = await Pictures(file_bytes=lambda chat: 1_000_000).drawn(FAMILY, VOTES)
    assert (data_in(url) or b"").startswith(b"\x89PNG")


async def test_results_of_a_poll_have_a_picture_only_where_files_can_be_sent() -> None:
    for limits, count in ((WITH_FILES, 1), (None, 0)):
        async with a_group(platform=TestPlatform(limits)) as group:
            await group.say("Ann", "/poll Where? here, there")
            assert await group.say("Ann", "/results") != []
            await group.say("Ann", "/vote 1")
            for line in ("/results", "/poll close"):
                [text] = await group.say("Ann", line)
                assert "1. here: 1 (100%)" in text
                assert ".png" not in text
                assert [one.name for one in group.platform.sent[-1].attachments] == ["poll.png"] * count
            assert [len(one.attachments) for one in group.platform.sent] == [0, 0, 0, count, count]


async def test_three_days_of_weather_have_a_picture_and_two_do_not() -> None:
    async with WebServer(open_meteo_pages()) as server:
        http = WebClient(WebLimits(timeout_seconds=5), allow_loopback=True)
        urls = {"geocoding_url": server.url(GEOCODING_PATH), "forecast_url": server.url(FORECAST_PATH)}
        pictures = Pictures(file_bytes=lambda chat: 1_000_000)
        functions = Functions(weather, OpenMeteo(http, VirtualClock(), **urls), pictures)
        two = await functions.run("weather", city="Paris")
        week = await functions.run("weather", city="Paris", days=7)
    assert two.attachments == ()
    [picture] = week.attachments
    assert (picture.name, picture.media_type) == ("weather.png", "image/png")
    assert week.reply.startswith("Paris, Île-de-France, France: light rain")
