from __future__ import annotations

import pytest

from services.calc.dice import alternatives, chosen


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["tea", "coffee"], ("tea", "coffee")),
        (["tea, coffee or milk"], ("tea", "coffee", "milk")),
        (["tea, coffee, or milk"], ("tea", "coffee", "milk")),
        (["green tea or milk"], ("green tea", "milk")),
        (["rock and roll or jazz"], ("rock and roll", "jazz")),
        (["pizza and pasta"], ("pizza", "pasta")),
        (["火锅还是烧烤"], ("火锅", "烧烤")),
        (["火锅、烧烤、寿司"], ("火锅", "烧烤", "寿司")),
        (["green", "tea,", "black", "coffee"], ("green tea", "black coffee")),
        (["tea", "coffee", "or", "milk"], ("tea", "coffee", "milk")),
        (["Yes, of course", "No"], ("Yes, of course", "No")),
        (["a", "A", " a "], ("a",)),
        (["alone"], ("alone",)),
        (["", " ", "\0"], ()),
        ([], ()),
    ],
)
def test_alternatives_are_read_as_people_list_them(options: list[str], found: tuple[str, ...]) -> None:
    assert alternatives(options) == found


@pytest.mark.parametrize(
    ("option", "index"),
    [
        ("2", 1),
        ("#3", 2),
        ("RED wine", 0),
        ("white", 1),
        ("w", None),
        ("4", None),
        ("0", None),
        ("", None),
        ("99999", None),
    ],
)
def test_an_alternative_is_chosen_by_number_text_or_beginning(option: str, index: int | None) -> None:
    assert chosen(option, ["red wine", "white wine", "water"]) == index


def test_a_text_that_is_a_number_wins_over_the_number_of_another() -> None:
    assert chosen("2", ["2", "1"]) == 0
