"""Tool definitions and their digests: equal content has an equal digest, and every change is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.mcp.tools import definition_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PINNED = ("description", "inputSchema", "outputSchema", "annotations")


def backwards(value: Any) -> Any:
    """The same value with its keys in another order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(one) for one in value] if isinstance(value, list) else value


@given(st.fixed_dictionaries({"name": st.text(min_size=1)}, optional=dict.fromkeys(PINNED, JSON)))
def test_the_order_of_keys_means_nothing(tool: dict[str, Any]) -> None:
    assert definition_of(tool).digest == definition_of(backwards(tool)).digest


@given(st.fixed_dictionaries({"name": st.text(min_size=1)}, optional=dict.fromkeys(PINNED, JSON)), JSON)
def test_whatever_is_another_value_gives_another_digest(tool: dict[str, Any], other: Any) -> None:
    for key in PINNED:
        changed = {**tool, key: other}
        same = definition_of(tool).canonical == definition_of(changed).canonical
        assert (definition_of(tool).digest == definition_of(changed).digest) is same


@pytest.mark.parametrize(("one", "other"), [(1, True), ("a", "a\u200b"), ({}, []), ("1", 1), ([1, 2], [2, 1])])
def test_what_only_looks_alike_is_told_apart(one: Any, other: Any) -> None:
    first, second = ({"name": "a", "inputSchema": {"default": value}} for value in (one, other))
    assert definition_of(first).digest != definition_of(second).digest


def test_what_nobody_reads_is_not_pinned() -> None:
    assert definition_of({"name": "a", "icons": [1], "_meta": {"a": 1}}).digest == definition_of({"name": "a"}).digest


@pytest.mark.parametrize("tool", [{}, {"name": ""}, {"name": 3}])
def test_a_tool_has_a_name(tool: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="without a name"):
        definition_of(tool)
