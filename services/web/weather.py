"""Weather from Open-Meteo: geocoding, current weather and daily forecast."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

from services.clock import Clock
from services.refs import ErrorCode, JsonValue, RequestProblem
from services.web.http import WebClient, WebError

GEOCODING_URL = "https://geocoding-api.open-meteo.com/v1/search"
FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
FRESH_SECONDS = 600.0
CACHED_PLACES = 256
DAYS_AHEAD = 7


class Sky(StrEnum):
    """Weather conditions, as groups of WMO weather codes."""

    CLEAR = "clear"
    PARTLY_CLOUDY = "partly_cloudy"
    OVERCAST = "overcast"
    FOG = "fog"
    DRIZZLE = "drizzle"
    FREEZING_RAIN = "freezing_rain"
    LIGHT_RAIN = "light_rain"
    RAIN = "rain"
    HEAVY_RAIN = "heavy_rain"
    SNOW = "snow"
    HEAVY_SNOW = "heavy_snow"
    SHOWERS = "showers"
    SNOW_SHOWERS = "snow_showers"
    THUNDERSTORM = "thunderstorm"
    HAIL = "hail"
    UNKNOWN = "unknown"


_WMO: Mapping[int, Sky] = {
    **dict.fromkeys((0, 1), Sky.CLEAR),
    2: Sky.PARTLY_CLOUDY,
    3: Sky.OVERCAST,
    **dict.fromkeys((45, 48), Sky.FOG),
    **dict.fromkeys((51, 53, 55), Sky.DRIZZLE),
    **dict.fromkeys((56, 57, 66, 67), Sky.FREEZING_RAIN),
    61: Sky.LIGHT_RAIN,
    63: Sky.RAIN,
    65: Sky.HEAVY_RAIN,
    **dict.fromkeys((71, 73, 77), Sky.SNOW),
    75: Sky.HEAVY_SNOW,
    **dict.fromkeys((80, 81, 82), Sky.SHOWERS),
    **dict.fromkeys((85, 86), Sky.SNOW_SHOWERS),
    95: Sky.THUNDERSTORM,
    **dict.fromkeys((96, 99), Sky.HAIL),
}


@dataclass(frozen=True, slots=True)
class DayWeather:
    """Forecast of one day; temperatures in degrees Celsius."""

    day: date
    sky: Sky
    low_celsius: float | None
    high_celsius: float | None
    """None if the service does not know it, as for `low_celsius`."""
    rain_percent: int | None
    """Probability of precipitation; None if it is not forecast."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Current weather and forecast of a place; temperatures in degrees Celsius, wind in km/h."""

    place: str
    region: str
    """State or province; empty if it has the same name as the place."""
    country: str
    sky: Sky
    celsius: float
    feels_like_celsius: float
    humidity_percent: int
    wind_kmh: float
    days: tuple[DayWeather, ...]
    """In order, starting with today in the place's time zone."""


class OpenMeteo:
    """Forecasts for places worldwide, cached for ten minutes and at most 256 places."""

    def __init__(
        self, http: WebClient, clock: Clock, *, geocoding_url: str = GEOCODING_URL, forecast_url: str = FORECAST_URL
    ) -> None:
        self._http = http
        self._clock = clock
        self._geocoding_url = geocoding_url
        self._forecast_url = forecast_url
        self._cache: OrderedDict[tuple[str, str], tuple[float, Forecast]] = OrderedDict()

    async def forecast(self, city: str, language: str) -> Forecast:
        """Current weather in `city` and the forecast of seven days, with names in `language`. A region after a comma
        narrows the search (`Paris, Texas`). Cached by city and language. Raises RequestProblem for an unknown place,
        and WebError if the service fails."""
        key = " ".join(city.casefold().split()), language
        now = self._clock.monotonic()
        known = self._cache.get(key)
        if known is not None and now - known[0] < FRESH_SECONDS:
            self._cache.move_to_end(key)
            return known[1]
        place = await self._find(city, language)
        found = await self._ask(place)
        self._cache[key] = (now, found)
        self._cache.move_to_end(key)
        while len(self._cache) > CACHED_PLACES:
            self._cache.popitem(last=False)
        return found

    async def _find(self, city: str, language: str) -> Mapping[str, Any]:
        name, *narrower = (part.strip() for part in city.replace("，", ",").split(","))
        query = {"name": name, "count": 10, "language": language, "format": "json"}
        answer = await self._http.get_json(self._geocoding_url, query=query)
        places = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(places, list):
            places = []
        fitting = [place for place in places if isinstance(place, dict) and _lies_in(place, narrower)]
        if not fitting:
            raise RequestProblem("weather.not_found", ErrorCode.NOT_FOUND, fields=["city"], city=city)
        return fitting[0]

    async def _ask(self, place: Mapping[str, Any]) -> Forecast:
        query = {
            "latitude": place.get("latitude"),
            "longitude": place.get("longitude"),
            "current": "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m",
            "daily": "weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max",
            "timezone": "auto",
            "forecast_days": DAYS_AHEAD,
        }
        answer = await self._http.get_json(self._forecast_url, query=query)
        try:
            return _forecast(place, answer)
        except (KeyError, TypeError, ValueError) as error:
            raise WebError(ErrorCode.FAILED, "the weather service answers in a shape that is not known") from error


def _lies_in(place: Mapping[str, Any], regions: Sequence[str]) -> bool:
    """Whether `place` lies in all `regions`, which are names or codes of countries and their subdivisions."""
    fields = ("country", "country_code", "admin1", "admin2", "admin3")
    known = {str(place.get(field) or "").casefold() for field in fields}
    return all(region.casefold() in known for region in regions if region)


def _forecast(place: Mapping[str, Any], answer: JsonValue) -> Forecast:
    now, daily = answer["current"], answer["daily"]
    name, region = str(place["name"]), str(place.get("admin1") or "")
    return Forecast(
        place=name,
        region="" if region == name else region,
        country=str(place.get("country") or ""),
        sky=_sky(now["weather_code"]),
        celsius=float(now["temperature_2m"]),
        feels_like_celsius=float(now["apparent_temperature"]),
        humidity_percent=round(now["relative_humidity_2m"]),
        wind_kmh=float(now["wind_speed_10m"]),
        days=tuple(_days(daily)),
    )


def _days(daily: Mapping[str, Sequence[Any]]) -> list[DayWeather]:
    columns = zip(
        daily["time"],
        daily["weather_code"],
        daily["temperature_2m_min"],
        daily["temperature_2m_max"],
        daily["precipitation_probability_max"],
        strict=True,
    )
    return [
        DayWeather(
            date.fromisoformat(day),
            _sky(code),
            None if low is None else float(low),
            None if high is None else float(high),
            None if chance is None else round(chance),
        )
        for day, code, low, high, chance in columns
    ]


def _sky(code: object) -> Sky:
    return _WMO.get(code, Sky.UNKNOWN) if isinstance(code, int) else Sky.UNKNOWN
