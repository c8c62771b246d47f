"""External texts: no invisible characters, and a limited length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.loading.foreign_text import UnseenIn, capped, cleaned_text, cleaned_value, described, has_unseen


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


HIDDEN = "a\u200b\U000e0063"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def texts_in(value: Any) -> Iterator[str]:
    """All texts in `value`, including keys."""
    if isinstance(value, str):
        yield value
    for one in value if isinstance(value, list) else []:
        yield from texts_in(one)
    for key, one in value.items() if isinstance(value, dict) else []:
        yield key
        yield from texts_in(one)


@given(JSON)
def test_in_a_value_all_can_be_seen_and_nothing_is_lost(value: Any) -> None:
    cleaned = cleaned_value(value)
    assert not [one for one in texts_in(cleaned) if has_unseen(one.replace("\n", "").replace("\t", ""))]
    assert len(list(texts_in(cleaned))) == len(list(texts_in(value)))
    assert cleaned_value(cleaned) == cleaned


def test_what_is_short_enough_is_not_cut() -> None:
    assert [capped("abc", most) for most in (4, 3, 2)] == ["abc", "abc", "a…"]


@pytest.mark.parametrize("mark", ["\u200b", "\u202e", "\ufe0f", "\U000e0100", "\U000e0063", "\x1b", "\x7f"])
def test_marks_that_have_no_shape_are_seen_for_what_they_are(mark: str) -> None:
    assert has_unseen(f"a{mark}b")
    assert cleaned_text(f"a{mark}b", lines=True) == "ab"


def test_what_is_no_text_in_a_schema_stays() -> None:
    schema = {"minimum": 3, "deprecated": True, "description": {"en": HIDDEN}, "default": {"a": [1, None, True]}}
    assert described(schema, 10) == {**schema, "description": {"en": "a"}}


def test_keys_that_look_the_same_are_told_apart() -> None:
    assert cleaned_value({"a\u200b": 1, "a": 2, "a\u202e": 3}) == {"a (2)": 1, "a": 2, "a (3)": 3}


def test_what_describes_in_a_schema_is_cleaned_and_what_counts_stays() -> None:
    long = "x\u200b" * 100
    schema = {
        "type": "object",
        "description": long,
        "properties": {
            "description": {"type": "string", "description": long, "enum": ["\r\n", "x"]},
            "title": {"const": "x", "examples": [HIDDEN], "x-note": {"deep": HIDDEN}},
        },
        "required": ["description"],
    }
    cleaned = described(schema, 10)
    assert cleaned["description"] == "xxxxxxxxx…"
    assert cleaned["properties"]["description"] == {
        "type": "string",
        "description": "xxxxxxxxx…",
        "enum": ["\r\n", "x"],
    }
    assert cleaned["properties"]["title"] == {"const": "x", "examples": ["a"], "x-note": {"deep": "a"}}
    assert cleaned["required"] == ["description"]


@pytest.mark.parametrize(
    "node",
    [
        {"enum": ["b", HIDDEN]},
        {"const": {"deep": [HIDDEN]}},
        {"default": HIDDEN},
        {"default": {HIDDEN: 1}},
        {"pattern": HIDDEN},
        {"properties": {HIDDEN: {}}},
        {"type": "array", "items": {"properties": {"b": {"properties": {HIDDEN: {}}}}}},
        {"anyOf": [{"required": [HIDDEN]}]},
        {"$defs": {HIDDEN: {}}},
        {"patternProperties": {HIDDEN: {}}},
        {HIDDEN: 1},
    ],
)
def test_what_counts_in_a_schema_has_to_be_seen(node: dict[str, Any]) -> None:
    with pytest.raises(UnseenIn) as refused:
        described({"type": "object", "properties": {"enum": node}}, 100)
    assert str(refused.value).startswith("'properties.enum.")
    assert str(refused.value).isascii()
