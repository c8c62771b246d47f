"""Weather and forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated

from pydantic import Field

from function_calls.call import Call
from function_calls.context import Attachment, MessageContext
from function_calls.declaration import tool_function
from function_calls.failures import not_reached
from function_calls.spec import FunctionResult
from function_calls.turn import PUBLIC
from services.pictures import Pictures, WeekChart
from services.refs import JsonObject
from services.web.http import WebError
from services.web.weather import DayWeather, Forecast, OpenMeteo

_DAYS_OF_A_PICTURE = 3

_City = Annotated[
    str, Field(description="City or place; may be narrowed: 'Paris, Texas'", min_length=1, max_length=100)
]
_Days = Annotated[int, Field(description="Days to tell about, today included", ge=1, le=7)]


@tool_function(
    description="Current weather and forecast for a place",
    examples=(
        "what's the weather like",
        "what is the weather like in {city} tomorrow",
        "how is the weather in {city} today",
        "show me the weather forecast for {city}",
        "weather in {city}",
        "what is the forecast for next week",
        "give me the {days} day forecast for {city}",
        "will it rain tomorrow",
        "will it rain in {city} tomorrow",
        "is it going to snow in {city}",
        "will there be a storm in {city} on friday",
        "is it cold outside",
        "how hot is it in {city} right now",
        "what will the temperature be in {city}",
        "do i need an umbrella in {city}",
        "should i take a jacket today",
        "{city}天气怎么样",
        "{city}今天天气如何",
        "查一下{city}的天气预报",
        "{city}明天会下雨吗",
        "今天外面冷不冷",
    ),
    commands=("weather", "forecast", "天气", "天气预报"),
    tags="find_out",
    touches="reads_outside",
    effect="read",
    ask={"city": "@weather.ask_city"},
)
async def weather(
    context: MessageContext, city: _City, days: _Days = 2, *, forecasts: OpenMeteo, pictures: Pictures, call: Call
) -> FunctionResult:
    """Return the current weather and the forecast for a place, from three days on with a picture."""
    try:
        found = await forecasts.forecast(city, call.profile.texts.language)
    except WebError as error:
        return not_reached(error, "weather", call.profile.texts)
    told = found.days[:days]
    lines = [_now(found, call), *(_day(day, found.days[0].day, call) for day in told)]
    picture = await pictures.drawn(context.chat, _chart(found, told, call)) if len(told) >= _DAYS_OF_A_PICTURE else ""
    files = (Attachment("weather.png", "image/png", picture),) if picture else ()
    result = FunctionResult.say("\n".join(lines), data=_data(found, told), attachments=files)
    return replace(result, metadata={PUBLIC: True})


def _place(found: Forecast) -> str:
    return ", ".join(filter(None, (found.place, found.region, found.country)))


def _chart(found: Forecast, days: Sequence[DayWeather], call: Call) -> WeekChart:
    labels = [(_day_name(day, found.days[0].day, call), call.say(f"weather.sky.{day.sky}")) for day in days]
    return WeekChart(_place(found), days, labels, call.say("weather.chance"))


def _now(found: Forecast, call: Call) -> str:
    return call.say(
        "weather.now",
        place=_place(found),
        sky=call.say(f"weather.sky.{found.sky}"),
        celsius=round(found.celsius),
        feels=round(found.feels_like_celsius),
        humidity=found.humidity_percent,
        wind=round(found.wind_kmh),
    )


def _day_name(day: DayWeather, today: date, call: Call) -> str:
    ahead = day.day - today
    if ahead < timedelta(days=2):
        return call.say("weather.tomorrow" if ahead else "weather.today")
    return call.profile.texts.words("time.weekdays")[day.day.weekday()]


def _day(day: DayWeather, today: date, call: Call) -> str:
    return call.say(
        "weather.day" if day.rain_percent is None else "weather.day_with_chance",
        day=_day_name(day, today, call),
        sky=call.say(f"weather.sky.{day.sky}"),
        low=_degrees(day.low_celsius),
        high=_degrees(day.high_celsius),
        chance=day.rain_percent,
    )


def _degrees(celsius: float | None) -> int | str:
    return "?" if celsius is None else round(celsius)


def _data(found: Forecast, days: tuple[DayWeather, ...]) -> JsonObject:
    return {
        "place": found.place,
        "country": found.country,
        "now": {"sky": found.sky.value, "celsius": found.celsius, "humidity_percent": found.humidity_percent},
        "days": [
            {
                "date": day.day.isoformat(),
                "sky": day.sky.value,
                "low_celsius": day.low_celsius,
                "high_celsius": day.high_celsius,
                "rain_percent": day.rain_percent,
            }
            for day in days
        ],
    }
