"""For any arguments a function returns quickly: a value within the size limit, or a RunError."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from function_calls.basic.codes import RunError
from function_calls.basic.functions import FUNCTIONS, LanguageFunction
from function_calls.basic.value_sizes import LARGEST, size_of
from tests.fakes.basic_world import FixedWorld

UNLIKE = list({each.run: each for each in FUNCTIONS.values()}.values())

STRANGE = st.sampled_from(
    [
        0, -1, 1, 2.5, 1e9, -1e308, 1e308, 5e-324, 2**63, -(2**63), 10**400, math.inf, -math.inf, math.nan,
        "", " ", "0", "-1", "1e308", "9" * 99, "2026-11-20", "0001-01-01", "9999-12-31 23:59:59", "08:05",
        "2026-11-20T00:00:00+14:00", "day", "month", "second", "desc", "#,##0.00", "dd/MM/yyyy HH:mm", "C2[pt]", "@@-@",
        "%Y %q", "\0", "\ud800", "a\nb", "{\"a\": [1, 2]}", "[[[", "aGk=", "%zz", "ﬁß", "x" * 5000, ",", "a,b",
        [], {}, [None], [[]], [1, "2", None, [3]], [{"a": 1}, {"A": "x"}], {"a": {"b": [1]}}, list(range(300)),
        None, True, False,
    ]
)  # fmt: skip
VALUES = STRANGE | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("function", [pytest.param(each, id=each.name) for each in UNLIKE])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_function_gives_a_value_or_a_fault_of_ours(function: LanguageFunction, data: st.DataObject) -> None:
    most = function.fewest + 2 if function.most is None else function.most
    arguments = data.draw(st.lists(VALUES, min_size=function.fewest, max_size=most))
    before = repr(arguments)
    try:
        given_back = function.run(FixedWorld(language=data.draw(st.sampled_from(["en", "zh", "xx", ""]))), arguments)
    except RunError:
        pass
    else:
        assert size_of(given_back, LARGEST * 2) <= LARGEST * 2
        inside = set(map(id, leaves(arguments)))
        for leaf in leaves(given_back):
            assert leaf is None or type(leaf) in (bool, int, float, str)
            if id(leaf) not in inside and type(leaf) in (int, float):
                assert math.isfinite(leaf)
                assert type(leaf) is float or -(2**63) <= leaf < 2**63
    assert repr(arguments) == before
