"""Words of a text, and ranking by them."""

from __future__ import annotations

import pytest

from services.text_index import Field, TextIndex, scan, stem, terms

FIELDS = {"name": Field(8.0, 0.9), "description": Field(2.8, 0.2)}


def an_index(**documents: str) -> TextIndex:
    """Documents by their names, each with a description."""
    index = TextIndex(FIELDS)
    for name, description in documents.items():
        index.add(name, {"name": name.replace("_", " "), "description": description})
    return index


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Remind me of the meetings", ["remind", "meet"]),
        ("getWeatherForecast HTTPServer", ["weather", "forecast", "http", "server"]),
        ("Ann's lists", ["ann", "list"]),
        ("in 2024 call 5551234", ["2024", "call"]),
        ("天气预报", ["天", "气", "预", "报", "天气", "气预", "预报"]),
        ("我的list", ["list", "我的"]),
        ("", []),
    ],
)
def test_a_text_is_found_by_its_stems_numbers_and_pairs_of_characters(text: str, expected: list[str]) -> None:
    assert sorted(expected) == sorted(terms(text))


def test_tokens_keep_their_places_in_the_text_also_after_letters_that_grow_in_lower_case() -> None:
    text = "İzmir: 20°C, 明天 don't"

    tokens = scan(text)

    assert [token.text for token in tokens][1:] == ["20", "°", "c", "明", "天", "don't"]
    assert [text[token.start : token.end] for token in tokens][1:] == ["20", "°", "C", "明", "天", "don't"]


def test_forms_of_one_word_share_a_stem() -> None:
    assert stem("convert") == stem("converting") == stem("converted")


def test_the_document_with_the_rarer_shared_word_comes_first() -> None:
    index = an_index(a="show the list of songs", b="show the list of invoices", c="show a map")

    assert [key for key, _ in index.rank("please show me the list with invoices", 2)] == ["b", "a"]


def test_a_word_in_the_name_counts_more_than_one_in_the_description() -> None:
    index = an_index(currency="money of a country", travel="currency of a country")

    assert index.rank("currency", 1)[0][0] == "currency"


def test_equal_documents_keep_the_order_in_which_they_were_added() -> None:
    index = TextIndex(FIELDS)
    for key in ("second", "first", "third"):
        index.add(key, {"description": "plays music"})

    assert [key for key, _ in index.rank("music", 3)] == ["second", "first", "third"]


def test_a_document_that_is_added_later_is_found_too() -> None:
    index = an_index(weather="forecast for a place")
    assert index.rank("translate", 5) == []

    index.add("translate", {"name": "translate", "description": "words of another language"})

    assert [key for key, _ in index.rank("translate this", 5)] == ["translate"]


def test_repeating_a_word_in_the_query_changes_nothing() -> None:
    index = an_index(a="coffee", b="tea")

    assert index.rank("coffee tea", 2) == index.rank("coffee coffee tea tea tea", 2)


def test_chinese_documents_are_ranked_without_spaces_between_words() -> None:
    index = an_index(weather="查询城市的天气预报", todo="查看待办清单")

    assert index.rank("北京明天天气怎么样", 1)[0][0] == "weather"
    assert index.rank("我的待办有哪些", 1)[0][0] == "todo"


def test_a_very_long_query_is_cut_to_its_rarest_words() -> None:
    index = TextIndex({"description": Field(1.0, 0.0)}, query_terms=2)
    index.add("common", {"description": "alpha beta gamma"})
    index.add("other", {"description": "alpha beta"})
    index.add("rare", {"description": "alpha delta"})

    assert sorted((key for key, _ in index.rank("alpha beta gamma delta", 5)), reverse=True) == ["rare", "common"]


def test_an_empty_index_finds_nothing() -> None:
    assert TextIndex(FIELDS).rank("anything", 3) == []
