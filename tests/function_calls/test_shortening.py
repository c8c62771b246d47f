"""Values that are too long for a model are shortened and stay valid JSON."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from function_calls.rounds.conversation import fitting

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=6), st.integers(120, 900))
def test_any_value_fits_and_is_json(value: dict[str, Any], characters: int) -> None:
    text = fitting(value, characters)
    assert len(text) <= characters
    read = orjson.loads(text)
    assert read == value if "cut" not in read or "cut" in value else "left out" in read["cut"]


def test_what_fits_is_not_touched() -> None:
    assert orjson.loads(fitting({"ok": True, "result": [1, 2]}, 100)) == {"ok": True, "result": [1, 2]}


def test_a_text_ends_at_a_sentence() -> None:
    page = "The first sentence is here. " * 40
    read = orjson.loads(fitting({"ok": True, "result": page}, 300))
    assert read["result"].endswith("here.…")


def test_a_chinese_text_ends_at_a_sentence() -> None:
    read = orjson.loads(fitting({"ok": True, "result": "今天天气很好。" * 100}, 300))
    assert read["result"].endswith("。…")


def test_a_list_ends_at_an_item_and_small_facts_stay_whole() -> None:
    rows = [{"city": f"Town {number}", "celsius": number} for number in range(100)]
    read = orjson.loads(fitting({"ok": True, "result": {"rows": rows, "count": 100}}, 400))
    kept = read["result"]["rows"]
    assert read["result"]["count"] == 100
    assert kept == rows[: len(kept)]
    assert len(kept) > 3
