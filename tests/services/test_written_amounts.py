"""Numbers in tables as written by people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scripts.values import as_amount, mark_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12,50", 12.5), ("1.234,50", 1234.5), ("1,234.50", 1234.5), ("12,50 €", 12.5), ("€ 3", 3), ("1 234,5", 1234.5),
        ("12.50 EUR", 12.5), ("-0,5", -0.5), ("1,234", 1234), ("1.234", 1.234), ("1.234.567", 1234567), ("1e3", 1000),
        ("1'000.5", 1000.5), (7, 7), ("", None), ("tea", None), ("12,50,1", None), ("1.2.3", None), ("12,", None),
        ("2026-01-02", None), ("1,23.50", None), (True, None), ([], None), ("5 pieces", None), ("9" * 500, None),
    ],
)  # fmt: skip
def test_a_number_is_read_as_it_is_written(text: object, number: float | None) -> None:
    assert as_amount(text) == number


def test_a_column_tells_what_its_marks_mean() -> None:
    german = ["1.234", "12,50"]
    assert [as_amount(one, mark_of(german)) for one in german] == [1234, 12.5]
    english = ["1,234", "12.50"]
    assert [as_amount(one, mark_of(english)) for one in english] == [1234, 12.5]
    assert as_amount("1,234", mark_of(["12,50"])) == 1.234


@given(st.text(alphabet="0123456789.,+-€ eE", max_size=70))
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = as_amount(text, mark_of([text]))
    assert found is None or isinstance(found, int | float)


@given(st.integers(-(10**9), 10**9), st.integers(0, 99))
def test_what_is_written_either_way_is_the_same(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert as_amount(english) == as_amount(german)
