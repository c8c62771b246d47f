"""Whole phrases of other languages are parsed, or rejected. The time is Wednesday, 4 March 2026, 17:30 in Berlin."""

from __future__ import annotations

import pytest

from tests.services.times.reading import NOW, TIMES, trouble, wall


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in 20 Minuten", "2026-03-04 17:50"),
        ("morgen um 6 Uhr", "2026-03-05 06:00"),
        ("übermorgen", "2026-03-06 09:00"),
        ("Montag um 8 Uhr", "2026-03-09 08:00"),
        ("demain à 17h", "2026-03-05 17:00"),
        ("le 14 juillet", "2026-07-14 09:00"),
        ("mañana a las 5", "2026-03-05 17:00"),  # dateparser alone ignores the five
        ("dentro de 3 horas", "2026-03-04 20:30"),
        ("morgen om 9 uur", "2026-03-05 09:00"),  # dateparser alone adds nine hours to tomorrow
        ("jutro o 18:00", "2026-03-05 18:00"),
        ("через 2 часа", "2026-03-04 19:30"),
    ],
)
def test_a_phrase_of_another_language_is_read_whole(text: str, expected: str) -> None:
    assert wall(text) == expected


def test_what_is_over_is_over_in_every_language() -> None:
    assert trouble("vor 2 Tagen") is not None


@pytest.mark.parametrize("text", ["Kaufe 3 Eier", "das ist gut", "bonjour", "mañana compro pan", "4a", "宜家 家居"])
def test_what_is_not_all_understood_is_not_read(text: str) -> None:
    assert TIMES.read(text, NOW) is None


def test_sentences_of_other_languages_are_not_searched() -> None:
    assert TIMES.find("erinnere mich übermorgen daran", NOW) is None
