"""What looks like a time within a Chinese sentence and is none: 一点都不, 今日头条, 三点建议, 晚上好."""

from __future__ import annotations

import re

from services.times.chinese_letters import LETTERS
from services.times.readings import Kind, Reading


def begins_a_time(text: str, at: int) -> bool:
    """Whether a time can begin at `at`: not within a number."""
    before, letter = text[at - 1 : at], text[at]
    if letter.isdecimal():
        return not (before.isdecimal() or before in (".", ":", "/", "第") or before.isascii() and before.isalpha())
    return not (letter in LETTERS and before and (before in LETTERS or before in "第.点"))


def is_a_time(text: str, start: int, end: int, reading: Reading) -> bool:
    """Whether what was read from `start` to `end` is meant as a time."""
    return True
