"""Conflicting examples of functions, and accuracy with the examples of the built-in functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.offline import Case, built_in_offer, intent_cases, outcomes, overheard_cases, report
from services.llm.model import Offer, OfferedFunction
from services.llm.offline.matching import ExampleIndex
from services.llm.offline.offline import contested_examples, spoken_times


def a_function(name: str, *examples: str, **properties: object) -> OfferedFunction:
    """A function with examples."""
    return OfferedFunction(name, name, "", {"type": "object", "properties": properties}, examples)


def test_an_example_that_another_function_has_too_is_reported_with_its_winner() -> None:
    first = a_function("play", "start the music", "play {song}", song={"type": "string"})
    second = a_function("radio", "turn on the radio", "start the music")

    contested = contested_examples(Offer([first, second]))

    assert [row[:3] for row in contested] == [("radio", "start the music", "play")]
    assert contested[0][3] > 0.9


def test_an_example_that_not_even_its_own_function_recognises_is_reported_without_a_winner() -> None:
    function = a_function("anything", "{text}", text={"type": "string"})

    assert contested_examples(Offer([function])) == (("anything", "{text}", "", 0.0),)


def test_examples_that_keep_apart_are_not_reported() -> None:
    play = a_function("play", "play {song}", "play me some music", song={"type": "string"})
    stop = a_function("stop", "stop the music", "be quiet")

    assert contested_examples(Offer([play, stop])) == ()


def test_no_built_in_function_takes_the_examples_of_another() -> None:
    assert contested_examples(built_in_offer()) == ()


@pytest.fixture(scope="module")
def built_in() -> ExampleIndex:
    """Examples of the built-in functions."""
    return ExampleIndex(built_in_offer().functions)


def test_half_of_what_people_ask_for_is_understood_and_little_is_misunderstood(
    built_in: ExampleIndex, data: Callable[[str], Path]
) -> None:
    known = frozenset(function.original for function in built_in.functions)

    figures = report(*outcomes(built_in, intent_cases(data("C_intents"), known)[::2], 0.0))

    assert figures["right"] >= 0.48
    assert figures["wrong"] <= 0.015
    assert figures["oos_false"] <= 0.02


def test_chat_among_people_is_left_alone(built_in: ExampleIndex, data: Callable[[str], Path]) -> None:
    cases: list[Case] = overheard_cases(data("F_group_chat"), most=1500)

    figures = report(*outcomes(built_in, cases, 0.0))

    assert figures["irc"] == len(cases)
    assert figures["irc_false"] <= 0.006


PASTA = ["pizza", "pasta"]


@pytest.fixture(scope="module")
def with_phrases() -> ExampleIndex:
    """Examples and phrases of the built-in functions, with the reader of times."""
    return ExampleIndex(built_in_offer().functions, spoken_times())


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("pick between A, B and C", "pick_one", {"options": ["A", "B", "C"]}),
        ("roll d20", "roll_dice", {"dice": "d20"}),
        ("扔两个骰子", "roll_dice", {"dice": "2d6"}),
        ("weather in Oslo next 3 days", "weather", {"city": "Oslo", "days": 3}),
        ("上海明天天气怎么样", "weather", {"city": "上海"}),
        ("搜索上海好吃的火锅店", "search", {"query": "上海好吃的火锅店"}),
        ("五分钟后提醒我", "reminder_create", {"when": "五分钟后"}),
        ("下个月1号提醒我交物业费", "reminder_create", {"when": "下个月1号", "text": "交物业费"}),
        ("remind us to vote at 5pm", "reminder_create", {"who": ["everyone"], "when": "at 5pm", "text": "vote"}),
        ("help me with reminders", "help", {"topic": "reminders"}),
        ("multiply 7 by 42", "calculate", {"expression": "7*42"}),
        ("let's vote: where to eat, pizza or pasta", "poll_create", {"question": "where to eat", "options": PASTA}),
        ("start a poll: lunch pizza, pasta", "poll_create", {"question": "lunch", "options": PASTA}),
        ("will it rain tomorrow in Miami", "weather", {"city": "Miami"}),
        ("设置一个明天下午5点买牛奶的提醒", "reminder_create", {"when": "明天下午5点", "text": "买牛奶", "count": 1}),
    ],
)
def test_values_are_read_as_people_say_them(
    with_phrases: ExampleIndex, text: str, name: str, arguments: dict[str, object]
) -> None:
    best = with_phrases.best(text)[0]

    assert (best.function.name, best.arguments, best.is_callable()) == (name, arguments, True)


@pytest.mark.parametrize(
    "text",
    [
        "The weather was terrible yesterday",
        "that reminds me of my grandma",
        "Anna, can you remind Tom about the keys",
        "thanks for the reminder",
        "google is so useless these days",
        "我妈提醒我多穿点",
        "昨天北京的天气真好",
    ],
)
def test_remarks_about_the_topic_of_a_function_do_nothing(with_phrases: ExampleIndex, text: str) -> None:
    assert not any(match.is_callable() for match in with_phrases.best(text)[:1])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("i don't need the vet reminder any longer", "reminder_delete_all"),
        ("i want news posted here tomorrow at 5pm", "news"),
        ("when it's 6pm here, what time is it in Tokyo", "time_in"),
        ("纽约早上9点，东京几点", "time_in"),
        ("todo milk done", "todo_add"),
        ("提醒过你多少次了", "reminder_create"),
        ("it'll rain, i can feel it in my bones", "weather"),
        ("clear the history of my vacuum cleaner in this chat", "clear_messages"),
    ],
)
def test_a_function_that_would_ignore_a_part_of_the_message_is_not_called(
    with_phrases: ExampleIndex, text: str, name: str
) -> None:
    called = [match.function.original for match in with_phrases.best(text)[:1] if match.is_callable()]

    assert name not in called
