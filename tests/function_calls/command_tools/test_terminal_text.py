"""Conversion of program output to plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from function_calls.command_tools.machine import Tail, readable


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"caf\xe9 \xe5\xa5\xbd", "caf\ufffd 好"),
        (b"a\x00b\x08c\td", "abc\td"),
    ],
)
def test_only_what_is_text_is_left(data: bytes, text: str) -> None:
    assert readable(data, 100) == (text, False)


@given(data=st.binary(max_size=60))
def test_whatever_a_program_writes_can_be_shown(data: bytes) -> None:
    text, _ = readable(data, 100)
    assert all(one in "\n\t" or ord(one) >= 32 for one in text)
    assert "\x1b" not in text


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert readable(b"x" * 200, 100) == ("x" * 100, True)


def test_the_tail_is_the_last_line_that_says_something() -> None:
    tail = Tail()
    assert tail.line == ""
    tail.add(b"first\nsec")
    tail.add(b"ond\n\n")
    assert tail.line == "second"
    for number in range(1000):
        tail.add(b"line %d\n" % number)
    assert tail.line == "line 999"
