"""Responses in the format of Open-Meteo's two services."""

from __future__ import annotations

from typing import Any

from tests.fakes.web_server import Page

GEOCODING_PATH = "/v1/search"
FORECAST_PATH = "/v1/forecast"
PARISES = [
    {
        "id": 2988507,
        "name": "Paris",
        "latitude": 48.85341,
        "longitude": 2.3488,
        "feature_code": "PPLC",
        "country_code": "FR",
        "timezone": "Europe/Paris",
        "country": "France",
        "admin1": "Île-de-France",
    },
    {
        "id": 4717560,
        "name": "Paris",
        "latitude": 33.66094,
        "longitude": -95.55551,
        "feature_code": "PPLA2",
        "country_code": "US",
        "timezone": "America/Chicago",
        "country": "United States",
        "admin1": "Texas",
        "admin2": "Lamar",
    },
]


def a_forecast() -> dict[str, Any]:
    """Light rain today, snow tomorrow, and no precipitation probability for the third day."""
    return {
        "latitude": 48.86,
        "longitude": 2.3399997,
        "timezone": "Europe/Paris",
        "current": {
            "time": "2026-01-05T10:00",
            "interval": 900,
            "temperature_2m": 6.4,
            "apparent_temperature": 3.6,
            "relative_humidity_2m": 81,
            "weather_code": 61,
            "wind_speed_10m": 13.2,
        },
        "daily": {
            "time": [f"2026-01-{day:02}" for day in range(5, 12)],
            "weather_code": [61, 71, 3, 0, 2, 45, 95],
            "temperature_2m_max": [7.9, 4.2, 3.0, 2.5, 5.5, 6.1, 9.9],
            "temperature_2m_min": [2.6, 1.1, -0.4, -3.2, 0.2, 1.0, 4.4],
            "precipitation_probability_max": [65, 90, None, 0, 10, 20, 100],
        },
    }


def open_meteo_pages() -> dict[str, Page]:
    """Both services, with places called Paris."""
    return {GEOCODING_PATH: Page.json({"results": PARISES}), FORECAST_PATH: Page.json(a_forecast())}
