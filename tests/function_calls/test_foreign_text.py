"""Text of strangers: nothing in it that nobody can see, and no more of it than is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.foreign_text import capped, cleaned_text, described, has_unseen


@given(st.text())
def test_what_is_left_can_be_seen(text: str) -> None:
    cleaned = cleaned_text(text, lines=True)
    assert not has_unseen(cleaned.replace("\n", "").replace("\t", ""))
    assert cleaned_text(cleaned, lines=True) == cleaned
    assert "\n" not in cleaned_text(text, lines=False)


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_it_is_no_longer_than_wanted(text: str, characters: int) -> None:
    assert len(capped(text, characters)) <= characters


@pytest.mark.parametrize("text", ["Grüße, 世界!", "ça va", "a\nb\tc", "日本語"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert cleaned_text(text, lines=True) == text


def test_only_descriptions_of_a_schema_are_changed() -> None:
    long = "x\u200b" * 100
    schema = {
        "type": "object",
        "description": long,
        "properties": {
            "description": {"type": "string", "description": long, "enum": [long]},
            "title": {"const": long},
        },
        "required": ["description"],
    }
    cleaned = described(schema, 10)
    assert cleaned["description"] == "xxxxxxxxx…"
    assert cleaned["properties"]["description"] == {"type": "string", "description": "xxxxxxxxx…", "enum": [long]}
    assert cleaned["properties"]["title"] == {"const": long}
    assert cleaned["required"] == ["description"]
