"""Response bodies as values that can be stored and displayed."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.basic.run.web import MOST_DEPTH, body_value, is_deeper
from services.web.addresses import WebError
from services.web.http import WebAnswer

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=200), st.text(max_size=60))
def test_whatever_comes_is_a_value_that_can_be_written_down(body: bytes, content_type: str) -> None:
    with suppress(WebError):
        value = body_value(WebAnswer("https://a.example/", content_type, body))
        json.dumps(value, ensure_ascii=False).encode()


@given(VALUES)
def test_json_is_the_value_that_it_says(value: object) -> None:
    body = json.dumps(value).encode()
    assert body_value(WebAnswer("https://a.example/", "application/json", body)) == value


@pytest.mark.parametrize("charset", ["unicode_escape", "idna", "punycode", "hex", "rot13", "utf-7", "nonsense", "\0"])
def test_a_charset_that_is_none_reads_as_utf_8(charset: str) -> None:
    answer = WebAnswer("https://a.example/", f"text/plain; charset={charset}", "\\u0041 æ +AGE-".encode())
    assert body_value(answer) == "\\u0041 æ +AGE-"


@pytest.mark.parametrize("depth", [1, MOST_DEPTH, MOST_DEPTH + 1, 5000])
def test_depth_is_counted(depth: int) -> None:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value, {"a": 1}]
    assert is_deeper(value, MOST_DEPTH) is (depth > MOST_DEPTH)


def test_json_with_too_many_values_is_rejected() -> None:
    body = b"[" + b"[]," * 25_000 + b"[]]"
    with pytest.raises(WebError, match="more than 50000 values"):
        body_value(WebAnswer("https://a.example/", "application/json", body))
