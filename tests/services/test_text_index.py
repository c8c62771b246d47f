"""Terms of a text, and scores of documents."""

from __future__ import annotations

import pytest

from services.text_index import Field, TextIndex, scan, stem, terms, wishes

FIELDS = {"name": Field(8.0, 0.9), "description": Field(2.8, 0.2)}


def best(query: str, **documents: str) -> list[str]:
    """Documents that share a term with `query`, best first; each has a name and a description."""
    fields = [{"name": terms(name.replace("_", " ")), "description": terms(text)} for name, text in documents.items()]
    scores = TextIndex(fields, FIELDS).scores(dict.fromkeys(terms(query), 1.0))
    names = list(documents)
    return [names[number] for number in sorted(scores, key=lambda number: (-scores[number], number))]


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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("play some jazz music", [["play", "jazz", "music"]]),
        ("play jazz music, then order two pizzas", [["play", "jazz", "music"], ["order", "two", "pizza"]]),
        ("Book a flight to Rome. Convert euros; thanks!", [["book", "flight", "rome"], ["convert", "euro"]]),
        ("play jazz. Louder!", [["play", "jazz", "louder"]]),
        ("Louder! Play jazz.", [["louder", "play", "jazz"]]),
        ("Louder", [["louder"]]),
        ("查天气，另外订票", [["查", "天", "气", "查天", "天气"], ["订", "票", "订票"]]),
        ("thanks!", []),
        ("", []),
    ],
)
def test_requests_in_a_text_are_separated_unless_one_is_too_short(text: str, parts: list[list[str]]) -> None:
    assert wishes(text) == parts


def test_no_text_has_very_many_wishes_and_no_word_of_it_is_lost() -> None:
    parts = wishes(" ".join(f"red{letter} blue{letter}." for letter in "abcdefghijklmnopqrstuvwxyz"))

    assert len(parts) == 24
    assert sum(len(part) for part in parts) == 52


def test_the_document_with_the_rarer_shared_word_comes_first() -> None:
    documents = {"a": "show the list of songs", "b": "show the list of invoices", "c": "show a map"}

    assert best("please show me the list with invoices", **documents) == ["b", "a"]


def test_a_word_in_the_name_counts_more_than_one_in_the_description() -> None:
    assert best("currency", travel="currency of a country", currency="money of a country") == ["currency", "travel"]


def test_a_word_says_more_in_a_short_field_than_in_a_long_one() -> None:
    long = "music and films and books and games and poems and pictures"

    assert best("music", archive=long, radio="plays music") == ["radio", "archive"]


def test_a_term_counts_with_its_weight() -> None:
    index = TextIndex([{"name": ["tea"]}, {"name": ["milk"]}], {"name": Field(1.0, 0.0)})

    scores = index.scores({"tea": 1.0, "milk": 0.5})

    assert scores[1] == pytest.approx(scores[0] / 2)


def test_chinese_documents_are_ranked_without_spaces_between_words() -> None:
    documents = {"weather": "查询城市的天气预报", "todo": "查看待办清单"}

    assert best("北京明天天气怎么样", **documents)[0] == "weather"
    assert best("我的待办有哪些", **documents)[0] == "todo"


def test_the_rarest_terms_are_those_that_the_fewest_documents_have() -> None:
    index = TextIndex([{"name": terms(text)} for text in ("alpha beta gamma", "alpha beta", "alpha delta")], FIELDS)

    assert index.rarest(terms("alpha beta gamma delta nowhere"), 2) == {"gamma", "delta"}
    assert index.rarest(terms("alpha beta nowhere"), 2) == {"alpha", "beta"}


def test_a_term_that_very_many_documents_have_is_not_looked_up() -> None:
    index = TextIndex([{"name": ["thing", f"n{number}"]} for number in range(50)], FIELDS)

    assert index.rarest(["thing", "n7"], 10) == {"n7"}
    assert list(index.scores({"thing": 1.0, "n7": 1.0})) == [7]


def test_a_document_whose_text_is_wholly_in_the_query_is_covered_to_one() -> None:
    documents = [{"description": ["roll", "dice"]}, {"description": ["roll", "out", "carpet"]}]
    index = TextIndex(documents, FIELDS, covered="description")

    covered = index.coverages(["roll", "dice", "quick"])

    assert covered[0] == pytest.approx(1.0)
    assert 0 < covered[1] < 0.4


def test_an_empty_index_finds_nothing() -> None:
    assert TextIndex([], FIELDS).scores({"anything": 1.0}) == {}
