"""Display of external texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.patterns import is_visible, visible, visible_line


@pytest.mark.parametrize(
    ("text", "shown", "line"),
    [
        ("plain, 普通, \u00e9", "plain, 普通, \u00e9", "plain, 普通, \u00e9"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree", "one<U+000D><U+000A>two<U+0009>three"),
        ("rm\u202e\u200b\x1b[2J", "rm<U+202E><U+200B><U+001B>[2J", "rm<U+202E><U+200B><U+001B>[2J"),
        ("\ud800\ue000\u2028", "<U+D800><U+E000><U+2028>", "<U+D800><U+E000><U+2028>"),
    ],
)
def test_what_cannot_be_seen_is_written_out_and_on_one_line_its_ends_too(text: str, shown: str, line: str) -> None:
    assert (visible(text), visible_line(text)) == (shown, line)


@given(st.text())
def test_nothing_unseen_is_left(text: str) -> None:
    assert is_visible("".join(one for one in visible_line(text) if one.isascii() or not one.isspace()))
    assert all(one in "\n\t" or not one.isascii() or one.isprintable() for one in visible(text))
