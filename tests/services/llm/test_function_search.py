"""The search for functions that match a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.model import OfferedFunction
from services.llm.offline.function_search import FunctionSearch
from services.llm.offline.vocabulary import topics_of
from services.text_index import terms


def a_function(name: str, description: str = "", *examples: str, **properties: Any) -> OfferedFunction:
    return OfferedFunction(name, name, description, {"type": "object", "properties": properties}, examples)


def found(text: str, *functions: OfferedFunction, limit: int = 10) -> list[str]:
    return [function.original for function, _ in FunctionSearch(functions).rank(text, limit)]


WEATHER = a_function("get_forecast", "Tell the weather of a city.", city={"type": "string", "description": "The city"})
TRAINS = a_function("trains", "Connections between two stations.", start={"type": "string"})
DICE = a_function("roll", "Throw some dice.")
MONEY = a_function("exchange", "Convert an amount.", to={"type": "string", "enum": ["euro", "dollar", "yen"]})
ORDER = a_function(
    "order",
    "Send what was chosen.",
    items={"type": "array", "items": {"properties": {"topping": {"enum": ["olives"]}}}},
)
ALL = (WEATHER, TRAINS, DICE, MONEY, ORDER)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("what is the forecast?", WEATHER),
        ("which city?", WEATHER),
        ("start from here", TRAINS),
        ("how many yen?", MONEY),
        ("with a topping", ORDER),
        ("no olives please", ORDER),
    ],
)
def test_a_function_is_found_by_the_words_of_all_that_defines_it(text: str, function: OfferedFunction) -> None:
    assert found(text, *ALL)[0] == function.original


def test_a_function_is_found_by_the_subject_of_words_that_it_does_not_have() -> None:
    assert found("do I need an umbrella", *ALL) == ["get_forecast"]
    assert found("下雨吗", a_function("a", "天气预报"), a_function("b", "播放音乐")) == ["a"]


def test_a_function_is_found_by_its_commands_in_other_languages() -> None:
    weather = OfferedFunction("weather", "weather", "Tell the weather.", {}, commands=("weather", "天气"))

    assert found("明天天气好吗", *ALL, weather) == ["weather"]


def test_the_dots_and_underscores_of_a_name_are_spaces() -> None:
    assert found("a poll for everybody", a_function("group.poll_open"), a_function("pollen")) == ["group.poll_open"]


def test_what_has_nothing_to_do_with_the_message_is_left_out() -> None:
    assert found("hi", *ALL) == []
    assert found("", *ALL) == []
    assert found("zzz qqq", *ALL) == []


def test_each_of_several_wishes_finds_its_function() -> None:
    text = "roll some dice, then find trains between two stations. And convert an amount of dollars to yen."

    assert set(found(text, *ALL, limit=3)) == {"roll", "trains", "exchange"}


def test_a_message_that_resembles_an_example_goes_before_one_that_only_shares_words() -> None:
    music = a_function("music", "Songs.", "play {song}", song={"type": "string"})
    museum = a_function("submarine_museum", "Opening hours of the yellow submarine.")

    assert found("play yellow submarine", museum, music)[0] == "music"


def test_of_functions_that_fit_alike_the_earlier_registered_comes_first() -> None:
    names = ["second", "first", "third"]

    assert found("music", *(a_function(name, "plays music") for name in names)) == names
    assert found("music", *(a_function(name, "plays music") for name in names), limit=2) == names[:2]


def test_functions_that_are_left_out_make_room_for_the_next_ones() -> None:
    search = FunctionSearch([a_function(f"f{number}", "plays music") for number in range(5)])

    ranked = search.rank("music", 2, among=lambda function: function.original in ("f1", "f3", "f4"))

    assert [function.original for function, _ in ranked] == ["f1", "f3"]


def test_schemas_of_strangers_do_not_break_the_search() -> None:
    strange: list[Any] = [
        {},
        {"properties": None},
        {"properties": {"a": None, "b": True, "c": {"enum": "x", "items": [1]}}},
        {"properties": {"a": {"description": 7, "enum": [1, None, "olives"]}}},
    ]
    functions = [OfferedFunction(f"f{n}", f"f{n}", "", schema) for n, schema in enumerate(strange)]

    assert found("olives", *functions) == ["f3"]


@given(st.text(max_size=200), st.integers(min_value=1, max_value=4))
def test_any_text_gives_each_function_at_most_once_best_first_and_never_more_than_asked(text: str, limit: int) -> None:
    ranked = FunctionSearch(ALL).rank(text, limit)

    names = [function.original for function, _ in ranked]
    assert len(names) == len(set(names)) <= limit
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)


def test_a_word_may_belong_to_several_subjects_and_most_words_to_none() -> None:
    assert set(topics_of(*terms("forecast"))) > {"weather"}
    assert topics_of("zanzibar") == ()
