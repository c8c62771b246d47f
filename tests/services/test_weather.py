from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from services.clock import VirtualClock
from services.refs import ErrorCode, RequestProblem
from services.web.http import WebClient, WebError
from services.web.weather import CACHED_PLACES, OpenMeteo, Sky
from tests.fakes.open_meteo import FORECAST_PATH, GEOCODING_PATH, a_forecast, open_meteo_pages
from tests.fakes.web_server import Page, WebServer


def a_service(server: WebServer, clock: VirtualClock) -> OpenMeteo:
    return OpenMeteo(
        WebClient(allow_loopback=True),
        clock,
        geocoding_url=server.url(GEOCODING_PATH),
        forecast_url=server.url(FORECAST_PATH),
    )


async def test_a_forecast_has_the_weather_now_and_of_seven_days() -> None:
    async with WebServer(open_meteo_pages()) as server:
        found = await a_service(server, VirtualClock()).forecast("Paris", "en")
    assert (found.place, found.region, found.country) == ("Paris", "Île-de-France", "France")
    assert (found.sky, found.celsius, found.humidity_percent, found.wind_kmh) == (Sky.LIGHT_RAIN, 6.4, 81, 13.2)
    assert [day.day for day in found.days] == [date(2026, 1, 5 + ahead) for ahead in range(7)]
    assert found.days[1].sky is Sky.SNOW
    assert (found.days[1].low_celsius, found.days[1].high_celsius, found.days[1].rain_percent) == (1.1, 4.2, 90)
    assert found.days[2].rain_percent is None


async def test_a_place_is_narrowed_by_what_stands_behind_a_comma() -> None:
    async with WebServer(open_meteo_pages()) as server:
        found = await a_service(server, VirtualClock()).forecast("Paris, Texas", "en")
        geocoding, forecast = server.asked
    assert (found.region, found.country) == ("Texas", "United States")
    assert geocoding.query["name"] == "Paris"
    assert forecast.query["latitude"] == "33.66094"


@pytest.mark.parametrize("city", ["Paris, Norway", "Nowhere"])
async def test_a_place_that_is_not_known_is_named(city: str) -> None:
    pages = open_meteo_pages()
    if city == "Nowhere":
        pages[GEOCODING_PATH] = Page.json({"generationtime_ms": 0.3})
    async with WebServer(pages) as server:
        with pytest.raises(RequestProblem) as caught:
            await a_service(server, VirtualClock()).forecast(city, "en")
    assert caught.value.values["city"] == city


async def test_an_answer_is_kept_for_ten_minutes_by_place_and_language() -> None:
    clock = VirtualClock()
    async with WebServer(open_meteo_pages()) as server:
        service = a_service(server, clock)
        await service.forecast("Paris", "en")
        await clock.advance(599)
        await service.forecast(" paris ", "en")
        assert len(server.asked) == 2
        await service.forecast("Paris", "zh")
        assert [asked.query["language"] for asked in server.asked if "language" in asked.query] == ["en", "zh"]
        await clock.advance(1)
        await service.forecast("Paris", "en")
        assert len(server.asked) == 6


async def test_only_so_many_places_are_kept() -> None:
    async with WebServer(open_meteo_pages()) as server:
        service = a_service(server, VirtualClock())
        for number in range(CACHED_PLACES + 1):
            await service.forecast(f"Paris{' ,' * number}", "en")
        asked = len(server.asked)
        await service.forecast("Paris", "en")
        assert len(server.asked) == asked + 2


@pytest.mark.parametrize("answer", [{}, [], {"current": {}, "daily": {}}, {"error": True, "reason": "no"}])
async def test_an_answer_of_another_shape_is_a_failure_of_the_service(answer: Any) -> None:
    async with WebServer({**open_meteo_pages(), FORECAST_PATH: Page.json(answer)}) as server:
        with pytest.raises(WebError) as caught:
            await a_service(server, VirtualClock()).forecast("Paris", "en")
    assert caught.value.code is ErrorCode.FAILED


async def test_a_weather_code_that_nobody_knows_is_said_to_be_unknown() -> None:
    forecast = a_forecast()
    forecast["current"]["weather_code"] = 1234
    async with WebServer({**open_meteo_pages(), FORECAST_PATH: Page.json(forecast)}) as server:
        assert (await a_service(server, VirtualClock()).forecast("Paris", "en")).sky is Sky.UNKNOWN
