from __future__ import annotations

import pytest

from function_calls.handlers.lookup import weather
from services.clock import VirtualClock
from services.pictures import Pictures
from services.refs import ErrorCode
from services.web.http import WebClient, WebLimits
from services.web.weather import OpenMeteo
from tests.fakes.open_meteo import FORECAST_PATH, GEOCODING_PATH, a_forecast, open_meteo_pages
from tests.fakes.web_server import Page, WebServer
from tests.function_calls.handlers.running import Functions, text_of


def a_weather(server: WebServer) -> Functions:
    http = WebClient(WebLimits(timeout_seconds=0.5), allow_loopback=True)
    urls = {"geocoding_url": server.url(GEOCODING_PATH), "forecast_url": server.url(FORECAST_PATH)}
    return Functions(weather, OpenMeteo(http, VirtualClock(), **urls), Pictures())


@pytest.mark.requirement("D3", "D13", "D32", "D33", "D56", "D58")
async def test_the_weather_of_today_and_tomorrow_is_said() -> None:
    async with WebServer(open_meteo_pages()) as server:
        result = await a_weather(server).run("weather", city="Paris")
    assert text_of(result).splitlines() == [
        "Paris, Île-de-France, France: light rain, 6 °C, feels like 4 °C. Humidity 81%, wind 13 km/h.",
        "Today: light rain, 3 to 8 °C, chance of rain or snow 65%",
        "Tomorrow: snow, 1 to 4 °C, chance of rain or snow 90%",
    ]
    assert result.data["days"][1]["date"] == "2026-01-06"


async def test_further_days_are_called_by_their_weekday_and_an_unknown_chance_is_left_out() -> None:
    async with WebServer(open_meteo_pages()) as server:
        result = await a_weather(server).run("weather", city="Paris", days=4)
    assert text_of(result).splitlines()[3:] == [
        "Wednesday: overcast, 0 to 3 °C",
        "Thursday: clear, -3 to 2 °C, chance of rain or snow 0%",
    ]


async def test_unknown_temperatures_are_marked_and_the_other_days_keep_their_names() -> None:
    forecast = a_forecast()
    forecast["daily"]["temperature_2m_min"][:2] = [None, None]
    forecast["daily"]["temperature_2m_max"][0] = None
    pages = {**open_meteo_pages(), FORECAST_PATH: Page.json(forecast)}
    async with WebServer(pages) as server:
        result = await a_weather(server).run("weather", city="Paris", days=3)
    assert text_of(result).splitlines()[1:] == [
        "Today: light rain, ? to ? °C, chance of rain or snow 65%",
        "Tomorrow: snow, ? to 4 °C, chance of rain or snow 90%",
        "Wednesday: overcast, 0 to 3 °C",
    ]
    assert [(day["low_celsius"], day["high_celsius"]) for day in result.data["days"]] == [
        (None, None), (None, 4.2), (-0.4, 3.0),
    ]  # fmt: skip


async def test_the_weather_is_said_in_the_language_of_the_chat() -> None:
    async with WebServer(open_meteo_pages()) as server:
        result = await a_weather(server).run("weather", city="巴黎", days=3, language="zh")
        assert server.asked[0].query["language"] == "zh"
    assert text_of(result).splitlines()[1:] == [
        "今天：小雨，3～8℃，降水概率65%",
        "明天：雪，1～4℃，降水概率90%",
        "星期三：阴，0～3℃",
    ]


async def test_a_place_that_is_not_found_is_named() -> None:
    async with WebServer({GEOCODING_PATH: Page.json({})}) as server:
        result = await a_weather(server).run("weather", city="Atlantis")
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.NOT_FOUND, ("city",))
    assert "Atlantis" in result.error.text


@pytest.mark.parametrize(
    ("page", "code", "text"),
    [
        (Page(status=503), ErrorCode.TRANSIENT, "try again in a few minutes"),
        (Page(silent=True), ErrorCode.TRANSIENT, "try again in a few minutes"),
        (Page.json({}), ErrorCode.ENVIRONMENT, "doesn't work here"),
    ],
)
async def test_a_service_that_fails_is_told_in_plain_words(page: Page, code: ErrorCode, text: str) -> None:
    async with WebServer({**open_meteo_pages(), FORECAST_PATH: page}) as server:
        result = await a_weather(server).run("weather", city="Paris")
    assert result.error is not None
    assert result.error.code is code
    assert text in result.error.text


async def test_a_network_that_is_not_there_is_told_in_plain_words() -> None:
    http = WebClient(resolve=_no_network)
    result = await Functions(weather, OpenMeteo(http, VirtualClock()), Pictures()).run("weather", city="Paris")
    assert result.error is not None
    assert result.error.code is ErrorCode.ENVIRONMENT


async def _no_network(host: str, port: int) -> list[str]:
    raise OSError("network is unreachable")
