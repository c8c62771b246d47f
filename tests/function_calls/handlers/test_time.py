from __future__ import annotations

from typing import Any

import pytest

from function_calls.handlers.small import time
from services.clock import VirtualClock
from services.refs import ErrorCode
from services.times.places import Places
from tests.function_calls.handlers.running import Functions, text_of


@pytest.fixture
def functions() -> Functions:
    return Functions(time, Places(VirtualClock()))


@pytest.mark.requirement("D13", "D32", "D33", "D56")
async def test_the_time_is_that_of_the_chat_unless_a_place_is_named(functions: Functions) -> None:
    assert text_of(await functions.run("time_in")) == "It is 10:00 in Oslo: Monday, 5 January 2026 (UTC+1)."
    away = await functions.run("time_in", place="Tokyo")
    assert text_of(away) == "It is 18:00 in Tokyo: Monday, 5 January 2026 (UTC+9)."
    assert away.data == {"place": "Tokyo", "zone": "Asia/Tokyo", "time": "2026-01-05T18:00+09:00"}
    for here in ("here", " ", "这里"):
        language = "zh" if here == "这里" else "en"
        said = text_of(await functions.run("time_in", place=here, timezone="Asia/Kolkata", language=language))
        assert "14:30" in said


async def test_a_country_with_several_zones_is_answered_with_all_of_them(functions: Functions) -> None:
    result = await functions.run("time_in", place="US")
    lines = text_of(result).splitlines()
    assert lines[0] == "US has several time zones:"
    assert lines[1] == "New York: 04:00, Monday, 5 January 2026 (UTC-5)"
    assert lines[-1] == "Honolulu: 23:00, Sunday, 4 January 2026 (UTC-10)"
    assert len(result.data["several_zones"]) == 7


async def test_the_time_is_said_in_chinese(functions: Functions) -> None:
    said = text_of(await functions.run("time_in", place="北京", language="zh"))
    assert said == "北京现在是17:00，2026年1月5日星期一（UTC+8）。"


async def test_a_place_that_is_not_known_is_named_with_similar_ones(functions: Functions) -> None:
    for name in ("time_in", "date_in"):
        result = await functions.run(name, place="Berln")
        assert result.error is not None
        assert result.error.code is ErrorCode.NOT_FOUND
        assert "Berln" in result.error.text
        assert "Berlin" in result.error.text


async def test_the_date_is_that_of_the_place(functions: Functions) -> None:
    assert text_of(await functions.run("date_in")) == "Oslo: Monday, 5 January 2026"
    assert text_of(await functions.run("date_in", place="Honolulu")) == "Honolulu: Sunday, 4 January 2026"
    assert text_of(await functions.run("date_in", place="US")).splitlines() == [
        "New York: Monday, 5 January 2026",
        "Honolulu: Sunday, 4 January 2026",
    ]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"time": "3 pm", "from_place": "Tokyo", "to_place": "London"},
            "When it is 15:00 in Tokyo, it is 06:00 in London.",
        ),
        ({"time": "20:00", "to_place": "Tokyo"}, "When it is 20:00 in Oslo, it is 04:00 in Tokyo on the next day."),
        (
            {"time": "3 am", "from_place": "Tokyo", "to_place": "New York"},
            "When it is 03:00 in Tokyo, it is 13:00 in New York on the day before.",
        ),
        (
            {"time": "2026-03-29 02:30", "to_place": "UTC"},
            "When it is 03:30 in Oslo, it is 01:30 in UTC. "
            "(2026-03-29 02:30 does not exist in Oslo on that day: the clocks go forward.)",
        ),
        (
            {"time": "2026-10-25 02:30", "to_place": "UTC"},
            "When it is 02:30 in Oslo, it is 00:30 in UTC. "
            "(The clocks go back in Oslo on that day, so that time comes twice. This is the first one.)",
        ),
    ],
)
async def test_a_time_is_converted_from_place_to_place(functions: Functions, raw: dict[str, Any], said: str) -> None:
    assert text_of(await functions.run("time_convert", **raw)) == said


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ({"time": "soon", "to_place": "Tokyo"}, ("time",)),
        ({"time": "3 pm", "from_place": "US"}, ("from_place",)),
        ({"time": "3 pm", "to_place": "Australia"}, ("to_place",)),
    ],
)
async def test_what_cannot_be_converted_names_the_argument(
    functions: Functions, raw: dict[str, Any], fields: tuple[str, ...]
) -> None:
    result = await functions.run("time_convert", **raw)
    assert result.error is not None
    assert (result.error.code, result.error.fields) == (ErrorCode.BAD_ARGUMENTS, fields)
